package auth

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

// FuzzToken: no text is accepted but what the issuer signed.
func FuzzToken(f *testing.F) {
	r := newRig(f, nil)
	r.issuer.Use(authtest.FixedKey("fixed"))
	signed := make(map[string]bool) // header and payload that the issuer signed
	for _, change := range []m{nil, {"aud": []string{"x", resource}}, {"scope": "a b"}} {
		claims := m{"exp": lastDate, "iat": 0}
		maps.Copy(claims, change)
		text := r.issuer.Token(claims)
		signed[text[:strings.LastIndex(text, ".")]] = true
		f.Add(text)
	}
	for _, c := range refusals {
		switch text := strings.TrimPrefix(c.make(r.issuer).Header.Get("Authorization"), "Bearer "); c.reason {
		case reasonMissing, reasonQuery, reasonTwo, reasonScheme, reasonUnknownKey: // where the token may be good
		default:
			f.Add(text)
		}
	}
	for _, seed := range []string{"", ".", "..", "...", "a.b.c", "e30.e30.e30", b64(`{"alg":"ES256"}`) + "." + b64(`{}`) + ".AA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r.limit = newLimiter()
		p, err := r.Check(bearer(text), resource, nil)
		if (p == nil) == (err == nil) {
			t.Fatalf("%v and %v", p, err)
		}
		if err == nil && !signed[text[:strings.LastIndex(text, ".")]] {
			t.Fatalf("accepted: %q as %v", text, p)
		}
		if f, _ := err.(*Failure); f != nil && f.Status != http.StatusUnauthorized && f.Reason != reasonKid {
			t.Fatalf("%q: %+v", text, err)
		}
	})
}

// FuzzClaims: whatever an issuer signs, a principal has a name, an expiry in
// the future, and our audience.
func FuzzClaims(f *testing.F) {
	i := authtest.New(issuerName, resource)
	good := string(authtest.JSON(i.Claims(m{"exp": lastDate, "scope": "a b", "aud": []string{resource, "x"}})))
	f.Add(good)
	for _, s := range []string{`{}`, `[]`, `null`, `{"exp":1e300}`, strings.Replace(good, "alice", `\ud83d`, 1), strings.Replace(good, `"sub"`, `"\u0073ub"`, 1)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, payload string) {
		c, failure := parseClaims([]byte(payload))
		if failure != nil {
			return
		}
		if !plain(c.issuer) || !plain(c.subject) || c.expires.IsZero() || c.expires.Year() > 9999 {
			t.Fatalf("%q: %+v", payload, c)
		}
		key := (&Principal{Kind: KindToken, Issuer: c.issuer, Subject: c.subject}).Key()
		if !strings.HasPrefix(key, "token/") || !strings.Contains(key, c.subject) {
			t.Fatalf("key %q", key)
		}
	})
}

// FuzzKeyFile: no file makes the reader panic, and what it takes is complete.
func FuzzKeyFile(f *testing.F) {
	for _, s := range []string{"", "[]", "- name: a\n  hash: " + hashA, "- {name: a, hash: '" + hashA + "', scopes: [x]}",
		"- &a {name: b}\n- *a", "- !!str a", "- ? a\n  : b", "- name: |\n    a\n  hash: " + hashA, "---\n---\n", "%YAML 1.2\n---\n[]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		keys, err := parseKeyFile(text)
		if err != nil {
			return
		}
		for _, p := range keys {
			if p.Kind != KindKey || !keyName.MatchString(p.Subject) || p.Key() == "" {
				t.Fatalf("%q: %+v", text, p)
			}
			for _, s := range p.Scopes {
				if !scopeToken.MatchString(s) {
					t.Fatalf("scope %q", s)
				}
			}
		}
	})
}

// FuzzKeySet: whatever an issuer publishes, its usable keys are public ones.
func FuzzKeySet(f *testing.F) {
	i := authtest.New(issuerName, resource)
	f.Add(i.KeySet())
	for _, alg := range []string{"EdDSA", "ES384"} {
		f.Add(authtest.JSON(m{"keys": []any{authtest.NewKey("a", alg).JWK()}}))
	}
	f.Add([]byte(`{"keys":[{"kty":"RSA","n":"AQ","e":"AQ"},{"kty":"oct","k":"AA"}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		set, err := parseKeySet(doc, time.Now())
		if err != nil {
			return
		}
		for _, k := range set.keys {
			fits := 0
			for _, alg := range algorithms {
				if k.fits(alg) {
					fits++
				}
			}
			if fits > 6 || !set.has(k) {
				t.Fatalf("%q: a key of %d algorithms", doc, fits)
			}
		}
	})
}
