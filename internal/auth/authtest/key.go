package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
)

// Key is a key that tokens are signed with.
type Key struct {
	ID  string
	Alg string

	private crypto.Signer
}

// NewKey makes a key for an algorithm: RS256 to RS512, PS256 to PS512, ES256 to
// ES512 or EdDSA. It panics on another.
func NewKey(id, alg string) *Key {
	var private crypto.Signer
	var err error
	switch {
	case alg == "EdDSA":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	case alg == "ES256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case alg == "ES384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case alg == "ES512":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case alg[:1] == "R" || alg[:1] == "P":
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		err = fmt.Errorf("authtest: no algorithm %q", alg)
	}
	if err != nil {
		panic(err)
	}
	return &Key{ID: id, Alg: alg, private: private}
}

// FixedKey is an EdDSA key that is the same in every process, and so are its
// signatures: for fuzz targets, which run in several.
func FixedKey(id string) *Key {
	seed := sha256.Sum256([]byte(id))
	return &Key{ID: id, Alg: "EdDSA", private: ed25519.NewKeyFromSeed(seed[:])}
}

// NewWeakKey makes an RSA key of 1024 bits, which nobody should take.
func NewWeakKey(id string) *Key {
	private, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		panic(err)
	}
	return &Key{ID: id, Alg: "RS256", private: private}
}

// Public is the public key.
func (k *Key) Public() crypto.PublicKey { return k.private.Public() }

// JWK is the public key as a member of a JWK set (RFC 7517).
func (k *Key) JWK() map[string]any {
	jwk := map[string]any{"kid": k.ID, "use": "sig", "alg": k.Alg}
	if k.ID == "" {
		delete(jwk, "kid")
	}
	switch pub := k.private.Public().(type) {
	case *rsa.PublicKey:
		jwk["kty"], jwk["n"], jwk["e"] = "RSA", encode(pub.N.Bytes()), encode(big.NewInt(int64(pub.E)).Bytes())
	case *ecdsa.PublicKey:
		size := (pub.Curve.Params().BitSize + 7) / 8
		point, err := pub.Bytes() // 4, x, y
		if err != nil {
			panic(err)
		}
		jwk["kty"], jwk["crv"] = "EC", pub.Curve.Params().Name
		jwk["x"], jwk["y"] = encode(point[1:1+size]), encode(point[1+size:])
	case ed25519.PublicKey:
		jwk["kty"], jwk["crv"], jwk["x"] = "OKP", "Ed25519", encode(pub)
	}
	return jwk
}

// Sign makes a token of header and payload, which are taken as they are: they
// need not be JSON, nor name this key or its algorithm.
func (k *Key) Sign(header, payload []byte) string {
	input := encode(header) + "." + encode(payload)
	return input + "." + encode(k.signature([]byte(input)))
}

func (k *Key) signature(input []byte) []byte {
	hash := map[string]crypto.Hash{"256": crypto.SHA256, "384": crypto.SHA384, "512": crypto.SHA512}[k.Alg[2:]]
	if k.Alg == "EdDSA" {
		return must(k.private.Sign(rand.Reader, input, crypto.Hash(0)))
	}
	h := hash.New()
	h.Write(input)
	sum := h.Sum(nil)
	switch private := k.private.(type) {
	case *rsa.PrivateKey:
		if k.Alg[0] == 'P' {
			return must(rsa.SignPSS(rand.Reader, private, hash, sum, nil))
		}
		return must(rsa.SignPKCS1v15(rand.Reader, private, hash, sum))
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, private, sum)
		if err != nil {
			panic(err)
		}
		size := (private.Curve.Params().BitSize + 7) / 8
		both := make([]byte, 2*size)
		r.FillBytes(both[:size])
		s.FillBytes(both[size:])
		return both
	}
	panic("authtest: no such key")
}

// HMAC makes a token with a shared secret (HS256).
func HMAC(secret, header, payload []byte) string {
	input := encode(header) + "." + encode(payload)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(input))
	return input + "." + encode(mac.Sum(nil))
}

// JSON encodes v, which must be possible.
func JSON(v any) []byte { return must(json.Marshal(v)) }

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
