package auth

import (
	"encoding/base64"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

// refusal is a request that must not be let in.
type refusal struct {
	name   string
	status int
	reason string
	make   func(*authtest.Issuer) *http.Request
}

type m = map[string]any

// claimsOf is a token that is good but for these claims.
func claimsOf(changes m) func(*authtest.Issuer) *http.Request {
	return func(i *authtest.Issuer) *http.Request { return bearer(i.Token(changes)) }
}

// headerOf is a good token but for these members of its header.
func headerOf(changes m) func(*authtest.Issuer) *http.Request {
	return func(i *authtest.Issuer) *http.Request {
		return bearer(i.Sign(changes, authtest.JSON(i.Claims(nil))))
	}
}

// payloadOf is a token with a payload made of the text of good claims.
func payloadOf(change func(good string) string) func(*authtest.Issuer) *http.Request {
	return func(i *authtest.Issuer) *http.Request {
		return bearer(i.Sign(nil, []byte(change(string(authtest.JSON(i.Claims(nil)))))))
	}
}

// tokenOf is a good token, changed after it was signed.
func tokenOf(change func(good string) string) func(*authtest.Issuer) *http.Request {
	return func(i *authtest.Issuer) *http.Request { return bearer(change(i.Token(nil))) }
}

// headersOf is a request with headers made of a good token.
func headersOf(make func(good string) []string) func(*authtest.Issuer) *http.Request {
	return func(i *authtest.Issuer) *http.Request { return request(make(i.Token(nil))...) }
}

// foreign signs good claims with a key of an attacker, under this header.
func foreign(alg string, header func(*authtest.Key, *authtest.Issuer) m) func(*authtest.Issuer) *http.Request {
	return func(i *authtest.Issuer) *http.Request {
		k := authtest.NewKey("attacker", alg)
		return bearer(k.Sign(authtest.JSON(header(k, i)), authtest.JSON(i.Claims(nil))))
	}
}

// hs256 signs with a secret that is the issuer's public key in some form.
func hs256(form func(*authtest.Issuer) []byte) func(*authtest.Issuer) *http.Request {
	return func(i *authtest.Issuer) *http.Request {
		h := authtest.JSON(m{"alg": "HS256", "kid": i.Key().ID})
		return bearer(authtest.HMAC(form(i), h, authtest.JSON(i.Claims(nil))))
	}
}

func in(d time.Duration) int64 { return time.Now().Add(d).Unix() }

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

// part replaces one part of a token.
func part(n int, by func(string) string) func(string) string {
	return func(token string) string {
		parts := strings.Split(token, ".")
		parts[n] = by(parts[n])
		return strings.Join(parts, ".")
	}
}

func to(s string) func(string) string { return func(string) string { return s } }

const bad, no = http.StatusUnauthorized, http.StatusBadRequest
