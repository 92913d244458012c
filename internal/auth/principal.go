package auth

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"
)

// Kind is how a principal was recognized.
type Kind string

// The kinds of principals.
const (
	KindAnonymous Kind = "anonymous" // authorization is off
	KindKey       Kind = "key"       // a static key
	KindToken     Kind = "token"     // an access token of an issuer
	KindCert      Kind = "cert"      // a client certificate
)

// Principal is who a request is from. It may be shared between goroutines and
// is never changed after it was made.
type Principal struct {
	Kind    Kind
	Issuer  string    // of a token: iss, as configured; of a certificate: see nameOf; else ""
	Subject string    // of a token: sub; of a key: its name; of a certificate: see nameOf; else ""
	Scopes  []string  // granted
	Expires time.Time // of a token: exp; of a certificate: notAfter; else zero

	key      string
	audience []string
	claims   []byte
}

var anonymous = &Principal{Kind: KindAnonymous}

// Anonymous is the principal of every request where authorization is off.
func Anonymous() *Principal { return anonymous }

// Key names the principal: two are the same exactly where their keys are equal.
// A session belongs to a Key, so a refreshed token of the same subject keeps it.
// Parts are written with their lengths, so no choice of names makes two meet.
// It is an identity, not a credential, but it holds the subject: not for logs.
func (p *Principal) Key() string {
	switch {
	case p.key != "":
		return p.key
	case p.Kind == KindAnonymous:
		return string(KindAnonymous)
	case p.Kind == KindKey:
		return framed(p.Kind, p.Subject)
	}
	return framed(p.Kind, p.Issuer, p.Subject)
}

// framed writes KIND/LENGTH:PART,... with lengths in bytes.
func framed(kind Kind, parts ...string) string {
	b := append([]byte(kind), '/')
	for _, part := range parts {
		b = strconv.AppendInt(b, int64(len(part)), 10)
		b = append(append(append(b, ':'), part...), ',')
	}
	return string(b)
}

// HasScopes tells whether all of the scopes were granted. An anonymous
// principal has every scope: where authorization is off nothing is asked.
func (p *Principal) HasScopes(scopes ...string) bool {
	if p.Kind == KindAnonymous {
		return true
	}
	for _, s := range scopes {
		if !slices.Contains(p.Scopes, s) {
			return false
		}
	}
	return true
}

// Claims returns the token's claims as the issuer wrote them, a JSON object
// without duplicate members; nil for other kinds. The caller must not change it.
func (p *Principal) Claims() []byte { return p.claims }

// Claim returns what the token says under name: a text, the texts of a list, or
// the JSON of anything else; nil where it says nothing, or is no token.
func (p *Principal) Claim(name string) []string {
	var all map[string]json.RawMessage
	if p.claims == nil || json.Unmarshal(p.claims, &all) != nil {
		return nil
	}
	raw, ok := all[name]
	if !ok {
		return nil
	}
	var text string
	var list []string
	switch {
	case json.Unmarshal(raw, &text) == nil:
		return []string{text}
	case json.Unmarshal(raw, &list) == nil:
		return list
	}
	return []string{string(raw)}
}

// String is for logs: a subject, which is often a mail address, appears as
// eight hex digits of its SHA-256.
func (p *Principal) String() string {
	switch p.Kind {
	case KindKey:
		return "key " + p.Subject
	case KindToken:
		sum := sha256.Sum256([]byte(p.Subject))
		return "token of " + p.Issuer + ", subject " + hex.EncodeToString(sum[:4])
	case KindCert:
		sum := sha256.Sum256([]byte(p.Subject))
		return "certificate of " + p.Issuer[:min(8, len(p.Issuer))] + ", subject " + hex.EncodeToString(sum[:4])
	}
	return string(p.Kind)
}

// LogValue implements slog.LogValuer.
func (p *Principal) LogValue() slog.Value { return slog.StringValue(p.String()) }

// peerForm is a principal between replicas.
type peerForm struct {
	Kind     Kind            `json:"kind"`
	Issuer   string          `json:"issuer,omitempty"`
	Subject  string          `json:"subject,omitempty"`
	Scopes   []string        `json:"scopes,omitempty"`
	Expires  time.Time       `json:"expires,omitzero"`
	Audience []string        `json:"audience,omitempty"`
	Claims   json.RawMessage `json:"claims,omitempty"`
}

// MarshalText writes the principal, claims included, in base64url, which fits
// in a header between replicas. Whoever can write it can be anyone: accept it
// only from a peer that proved itself.
func (p *Principal) MarshalText() ([]byte, error) {
	form, err := json.Marshal(peerForm{Kind: p.Kind, Issuer: p.Issuer, Subject: p.Subject, Scopes: p.Scopes,
		Expires: p.Expires, Audience: p.audience, Claims: p.claims})
	if err != nil {
		return nil, fmt.Errorf("auth: principal: %w", err)
	}
	return base64.RawURLEncoding.AppendEncode(nil, form), nil
}

// UnmarshalText reads what MarshalText wrote.
func (p *Principal) UnmarshalText(text []byte) error {
	form, err := base64.RawURLEncoding.DecodeString(string(text))
	if err != nil {
		return errors.New("auth: principal of a peer: not base64url")
	}
	var f peerForm
	if json.Unmarshal(form, &f) != nil {
		return errors.New("auth: principal of a peer: malformed")
	}
	switch f.Kind {
	case KindAnonymous, KindKey, KindToken, KindCert:
	default:
		return fmt.Errorf("auth: principal of a peer: unknown kind %q", f.Kind)
	}
	*p = Principal{Kind: f.Kind, Issuer: f.Issuer, Subject: f.Subject, Scopes: f.Scopes, Expires: f.Expires, audience: f.Audience, claims: f.Claims}
	p.key = p.Key()
	return nil
}
