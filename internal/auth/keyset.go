package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/subtle"
	"errors"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

const (
	maxKeys    = 100  // of one issuer that are looked at
	minRSABits = 2048 // RFC 7518 section 3.3
)

// keySet is what an issuer signs with at one time. It is never changed.
type keySet struct {
	fetched time.Time
	keys    []*publicKey
}

// publicKey is one usable key of an issuer.
type publicKey struct {
	kid   string
	alg   string // the only algorithm it may be used with, or "" if it does not say
	value any    // *rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey
	print []byte // RFC 7638 thumbprint
}

var errNoKeys = errors.New("its key set has no key that can be used (RSA of 2048 bits or more, P-256, P-384, P-521 or Ed25519, for signatures)")

// parseKeySet reads a JWK set (RFC 7517 section 5). A key that is not for
// verifying signatures, or not understood, is passed over, as the RFC says, and
// so is one whose private half was published too.
func parseKeySet(doc []byte, now time.Time) (*keySet, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(doc, &set); err != nil {
		return nil, errors.New("its key set is no JSON document of keys")
	}
	s := &keySet{fetched: now}
	for _, raw := range set.Keys[:min(len(set.Keys), maxKeys)] {
		if key := parseKey(raw); key != nil {
			s.keys = append(s.keys, key)
		}
	}
	if len(s.keys) == 0 {
		return nil, errNoKeys
	}
	return s, nil
}

func parseKey(raw json.RawMessage) *publicKey {
	var uses struct {
		Ops []string `json:"key_ops"`
	}
	var jwk jose.JSONWebKey
	if json.Unmarshal(raw, &uses) != nil || json.Unmarshal(raw, &jwk) != nil || !jwk.IsPublic() || !jwk.Valid() {
		return nil
	}
	if jwk.Use != "" && jwk.Use != "sig" || uses.Ops != nil && !slices.Contains(uses.Ops, "verify") {
		return nil
	}
	if rsaKey, ok := jwk.Key.(*rsa.PublicKey); ok && rsaKey.N.BitLen() < minRSABits {
		return nil
	}
	print, err := jwk.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil
	}
	return &publicKey{kid: jwk.KeyID, alg: jwk.Algorithm, value: jwk.Key, print: print}
}

// fits tells whether the key may verify a signature of alg. An algorithm
// belongs to one type of key and, for ES, to one curve (RFC 8725 section 3.1).
func (k *publicKey) fits(alg jose.SignatureAlgorithm) bool {
	if k.alg != "" && k.alg != string(alg) {
		return false
	}
	switch key := k.value.(type) {
	case *rsa.PublicKey:
		return alg[0] == 'R' || alg[0] == 'P'
	case *ecdsa.PublicKey:
		curve := map[jose.SignatureAlgorithm]string{jose.ES256: "P-256", jose.ES384: "P-384", jose.ES512: "P-521"}[alg]
		return key.Curve.Params().Name == curve
	case ed25519.PublicKey:
		return alg == jose.EdDSA
	}
	return false
}

// same tells whether two keys are the same in all that counts.
func (k *publicKey) same(other *publicKey) bool {
	return k.kid == other.kid && k.alg == other.alg && subtle.ConstantTimeCompare(k.print, other.print) == 1
}

// has tells whether the key is in the set.
func (s *keySet) has(key *publicKey) bool {
	return slices.ContainsFunc(s.keys, key.same)
}

// verify finds the key that signed t. known tells whether the set has a key of
// that name at all.
func (s *keySet) verify(t *token) (key *publicKey, known bool) {
	signed, err := jose.ParseSignedCompact(t.compact, algorithms)
	if err != nil {
		return nil, false
	}
	for _, k := range s.keys {
		if t.kid != "" && k.kid != t.kid {
			continue
		}
		known = true
		if !k.fits(t.alg) {
			continue
		}
		if _, err := signed.Verify(k.value); err == nil {
			return k, true
		}
	}
	return nil, known
}
