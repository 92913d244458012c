package auth

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

// refusals is the table of what is refused; docs lists the names.
var refusals = []refusal{
	// The request.
	{"no credential", bad, reasonMissing, func(*authtest.Issuer) *http.Request { return request() }},
	{"empty Authorization header", bad, reasonMissing, headersOf(func(string) []string { return []string{"Authorization", ""} })},
	{"Bearer without a token", bad, reasonMissing, headersOf(func(string) []string { return []string{"Authorization", "Bearer"} })},
	{"Bearer and spaces", bad, reasonMissing, headersOf(func(string) []string { return []string{"Authorization", "Bearer   "} })},
	{"empty X-API-Key", bad, reasonMissing, headersOf(func(string) []string { return []string{"X-API-Key", ""} })},
	{"Basic", bad, reasonScheme, headersOf(func(string) []string { return []string{"Authorization", "Basic YTpi"} })},
	{"a good token as Basic", bad, reasonScheme, headersOf(func(g string) []string { return []string{"Authorization", "Basic " + g} })},
	{"a good token without a scheme", bad, reasonScheme, headersOf(func(g string) []string { return []string{"Authorization", g} })},
	{"a good token as DPoP", bad, reasonScheme, headersOf(func(g string) []string { return []string{"Authorization", "DPoP " + g} })},
	{"a tab after Bearer", bad, reasonScheme, headersOf(func(g string) []string { return []string{"Authorization", "Bearer\t" + g} })},
	{"a no-break space after Bearer", bad, reasonScheme, headersOf(func(g string) []string { return []string{"Authorization", "Bearer\u00a0" + g} })},
	{"text after the token", bad, reasonMalformed, headersOf(func(g string) []string { return []string{"Authorization", "Bearer " + g + " x"} })},
	{"two tokens joined by a comma", bad, reasonMalformed, headersOf(func(g string) []string { return []string{"Authorization", "Bearer " + g + ", Bearer y"} })},
	{"two Authorization headers", no, reasonTwo, headersOf(func(g string) []string {
		return []string{"Authorization", "Bearer " + g, "Authorization", "Bearer x"}
	})},
	{"two X-API-Key headers", no, reasonTwo, headersOf(func(string) []string { return []string{"X-API-Key", "a", "X-API-Key", "b"} })},
	{"a token beside an X-API-Key", no, reasonTwo, headersOf(func(g string) []string { return []string{"Authorization", "Bearer " + g, "X-API-Key", "a"} })},
	{"Basic beside an X-API-Key", no, reasonTwo, headersOf(func(string) []string { return []string{"Authorization", "Basic YTpi", "X-API-Key", "a"} })},
	{"a token in the query", bad, reasonQuery, func(i *authtest.Issuer) *http.Request {
		q := request()
		q.URL.RawQuery = "x=1&access_token=" + i.Token(nil)
		return q
	}},
	{"a token in the query beside a header", no, reasonTwo, func(i *authtest.Issuer) *http.Request {
		q := bearer(i.Token(nil))
		q.URL.RawQuery = "access_token=" + i.Token(nil)
		return q
	}},
	{"a token in a cookie", bad, reasonMissing, headersOf(func(g string) []string { return []string{"Cookie", "access_token=" + g} })},
	{"an unknown key as bearer", bad, reasonUnknownKey, headersOf(func(string) []string { return []string{"Authorization", "Bearer sbx_unknown"} })},
	{"an unknown key as X-API-Key", bad, reasonUnknownKey, headersOf(func(string) []string { return []string{"X-API-Key", "sbx_unknown"} })},
	{"a token as X-API-Key", bad, reasonUnknownKey, headersOf(func(g string) []string { return []string{"X-API-Key", g} })},

	// The form of a token.
	{"longer than 16 KiB", bad, reasonTooLarge, claimsOf(m{"pad": strings.Repeat("x", 16<<10)})},
	{"without its signature part", bad, reasonUnknownKey, tokenOf(func(g string) string { return g[:strings.LastIndex(g, ".")] })},
	{"with an empty signature", bad, reasonSignature, tokenOf(part(2, to("")))},
	{"cut short", bad, reasonSignature, tokenOf(func(g string) string { return g[:len(g)-6] })},
	{"a fourth part", bad, reasonUnknownKey, tokenOf(func(g string) string { return g + ".x" })},
	{"encrypted (JWE)", bad, reasonMalformed, tokenOf(func(string) string { return b64(`{"alg":"dir","enc":"A128GCM"}`) + "..a.b.c" })},
	{"JWS in JSON form", bad, reasonUnknownKey, tokenOf(func(g string) string {
		p := strings.Split(g, ".")
		return `{"protected":"` + p[0] + `","payload":"` + p[1] + `","signature":"` + p[2] + `"}`
	})},
	{"standard base64 with padding", bad, reasonMalformed, tokenOf(part(0, func(s string) string { return s + "=" }))},
	{"bits left over in base64", bad, reasonMalformed, tokenOf(part(2, func(s string) string { return s[:len(s)-1] + "B" }))},
	{"a line feed within the signature", bad, reasonMalformed, tokenOf(part(2, func(s string) string { return s[:8] + "\n" + s[8:] }))},
	{"a header that is no JSON", bad, reasonMalformed, tokenOf(part(0, to(b64("hello"))))},
	{"a header that is a list", bad, reasonMalformed, tokenOf(part(0, to(b64(`["ES256"]`))))},
	{"claims that are no JSON", bad, reasonMalformed, payloadOf(to("sub=alice"))},
	{"claims that are a list", bad, reasonMalformed, payloadOf(func(g string) string { return "[" + g + "]" })},
	{"claims null", bad, reasonMalformed, payloadOf(to("null"))},
	{"a second value after the claims", bad, reasonMalformed, payloadOf(func(g string) string { return g + "{}" })},
	{"claims that are no UTF-8", bad, reasonMalformed, payloadOf(func(g string) string { return strings.Replace(g, "alice", "alice\xff", 1) })},
	{"a token within the token", bad, reasonMalformed, func(i *authtest.Issuer) *http.Request { return bearer(i.Sign(nil, []byte(i.Token(nil)))) }},
	{"a nested token by cty", bad, reasonHeader, headerOf(m{"cty": "JWT"})},

	// The header of a token.
	{"alg none", bad, reasonAlgorithm, func(i *authtest.Issuer) *http.Request {
		return bearer(b64(`{"alg":"none"}`) + "." + b64(string(authtest.JSON(i.Claims(nil)))) + ".")
	}},
	{"alg None in another case, with a signature", bad, reasonAlgorithm, headerOf(m{"alg": "NoNe"})},
	{"alg missing", bad, reasonAlgorithm, headerOf(m{"alg": nil})},
	{"alg a list", bad, reasonAlgorithm, headerOf(m{"alg": []string{"ES256"}})},
	{"HS256 with the public key as PEM", bad, reasonAlgorithm, hs256(func(i *authtest.Issuer) []byte {
		der, _ := x509.MarshalPKIXPublicKey(i.Key().Public())
		return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	})},
	{"HS256 with the public key as JWK", bad, reasonAlgorithm, hs256(func(i *authtest.Issuer) []byte { return authtest.JSON(i.Key().JWK()) })},
	{"an algorithm of another key type", bad, reasonSignature, headerOf(m{"alg": "RS256"})},
	{"an algorithm of another curve", bad, reasonSignature, headerOf(m{"alg": "ES384"})},
	{"crit with an unknown extension", bad, reasonHeader, headerOf(m{"crit": []string{"x"}, "x": 1})},
	{"crit with a known extension", bad, reasonHeader, headerOf(m{"crit": []string{"b64"}, "b64": true})},
	{"crit empty", bad, reasonHeader, headerOf(m{"crit": []string{}})},
	{"an unencoded payload (b64)", bad, reasonHeader, headerOf(m{"b64": false})},
	{"typ of a logout token", bad, reasonHeader, headerOf(m{"typ": "logout+jwt"})},
	{"typ of a DPoP proof", bad, reasonHeader, headerOf(m{"typ": "dpop+jwt"})},
	{"typ a number", bad, reasonHeader, headerOf(m{"typ": 1})},
	{"alg twice", bad, reasonMalformed, func(i *authtest.Issuer) *http.Request {
		h := `{"alg":"ES256","alg":"none","kid":"` + i.Key().ID + `"}`
		return bearer(i.Key().Sign([]byte(h), authtest.JSON(i.Claims(nil))))
	}},
	{"Alg beside alg", bad, reasonMalformed, headerOf(m{"Alg": "none"})},
	{"kid unknown", bad, reasonKid, headerOf(m{"kid": "other"})},
	{"kid a path", bad, reasonKid, headerOf(m{"kid": "../../../../dev/null"})},
	{"kid an SQL phrase", bad, reasonKid, headerOf(m{"kid": "x' UNION SELECT 'k"})},
	{"kid with a NUL", bad, reasonHeader, headerOf(m{"kid": "key-1\x00"})},
	{"kid empty", bad, reasonHeader, headerOf(m{"kid": ""})},
	{"kid a number", bad, reasonHeader, headerOf(m{"kid": 1})},
	{"kid in another case", bad, reasonKid, headerOf(m{"kid": "KEY-1"})},

	// The signature.
	{"a key of somebody else under the issuer's kid", bad, reasonSignature, foreign("ES256", func(_ *authtest.Key, i *authtest.Issuer) m { return m{"alg": "ES256", "kid": i.Key().ID} })},
	{"a key of somebody else without kid", bad, reasonSignature, foreign("ES256", func(*authtest.Key, *authtest.Issuer) m { return m{"alg": "ES256"} })},
	{"a key in the header (jwk)", bad, reasonSignature, foreign("ES256", func(k *authtest.Key, i *authtest.Issuer) m {
		jwk := k.JWK()
		jwk["kid"] = i.Key().ID
		return m{"alg": "ES256", "kid": i.Key().ID, "jwk": jwk}
	})},
	{"a key set in the header (jku)", bad, reasonKid, foreign("ES256", func(k *authtest.Key, _ *authtest.Issuer) m {
		return m{"alg": "ES256", "kid": k.ID, "jku": "https://attacker.example/keys"}
	})},
	{"a certificate in the header (x5u)", bad, reasonKid, foreign("RS256", func(k *authtest.Key, _ *authtest.Issuer) m {
		return m{"alg": "RS256", "kid": k.ID, "x5u": "https://attacker.example/cert.pem"}
	})},
	{"claims changed after signing", bad, reasonSignature, func(i *authtest.Issuer) *http.Request {
		return bearer(part(1, to(b64(string(authtest.JSON(i.Claims(m{"sub": "root"}))))))(i.Token(nil)))
	}},
	{"header changed after signing", bad, reasonSignature, func(i *authtest.Issuer) *http.Request {
		return bearer(part(0, to(b64(string(authtest.JSON(m{"alg": "ES256", "kid": i.Key().ID})))))(i.Token(nil)))
	}},
	{"a signature of zeros", bad, reasonSignature, tokenOf(part(2, to(b64(strings.Repeat("\x00", 64)))))},
	{"a signature in DER", bad, reasonSignature, tokenOf(part(2, to(b64("\x30\x06\x02\x01\x01\x02\x01\x01"))))},

	// The claims.
	{"no iss", bad, reasonClaims, claimsOf(m{"iss": nil})},
	{"iss of somebody else", bad, reasonIssuer, claimsOf(m{"iss": "https://attacker.example"})},
	{"iss of another tenant", bad, reasonIssuer, claimsOf(m{"iss": "https://issuer.example/other"})},
	{"iss with a slash more", bad, reasonIssuer, claimsOf(m{"iss": issuerName + "/"})},
	{"iss in another case", bad, reasonIssuer, claimsOf(m{"iss": "https://ISSUER.example/tenant"})},
	{"iss with a look-alike letter", bad, reasonIssuer, claimsOf(m{"iss": "https://\u0456ssuer.example/tenant"})},
	{"iss a list", bad, reasonClaims, claimsOf(m{"iss": []string{issuerName}})},
	{"Iss beside iss", bad, reasonMalformed, claimsOf(m{"Iss": "https://attacker.example"})},
	{"Iss instead of iss", bad, reasonMalformed, claimsOf(m{"iss": nil, "Iss": issuerName})},
	{"sub spelt with a long s", bad, reasonMalformed, claimsOf(m{"\u017fub": "root"})},
	{"iss twice", bad, reasonMalformed, payloadOf(func(g string) string { return `{"iss":"https://attacker.example",` + g[1:] })},
	{"sub twice, once escaped", bad, reasonMalformed, payloadOf(func(g string) string { return `{"\u0073ub":"root",` + g[1:] })},
	{"a member twice, deep inside", bad, reasonMalformed, payloadOf(func(g string) string { return `{"realm":{"a":{"r":1,"r":2}},` + g[1:] })},
	{"no sub", bad, reasonClaims, claimsOf(m{"sub": nil})},
	{"sub empty", bad, reasonClaims, claimsOf(m{"sub": ""})},
	{"sub a number", bad, reasonClaims, claimsOf(m{"sub": 7})},
	{"sub with a control character", bad, reasonClaims, claimsOf(m{"sub": "alice\n"})},
	{"sub with half a surrogate pair", bad, reasonClaims, payloadOf(func(g string) string { return strings.Replace(g, "alice", `alice\ud800`, 1) })},
	{"sub longer than 1 KiB", bad, reasonClaims, claimsOf(m{"sub": strings.Repeat("a", 1025)})},
	{"no aud", bad, reasonAudience, claimsOf(m{"aud": nil})},
	{"aud null", bad, reasonAudience, payloadOf(func(g string) string { return strings.Replace(g, `"`+resource+`"`, "null", 1) })},
	{"aud of another server", bad, reasonAudience, claimsOf(m{"aud": publicURL + "/servers/other/mcp"})},
	{"aud of a client (an ID token)", bad, reasonAudience, claimsOf(m{"aud": "client-1", "nonce": "n", "at_hash": "h"})},
	{"aud an empty list", bad, reasonAudience, claimsOf(m{"aud": []string{}})},
	{"aud empty", bad, reasonAudience, claimsOf(m{"aud": ""})},
	{"aud in another case", bad, reasonAudience, claimsOf(m{"aud": "https://MCP.example.com/mcp"})},
	{"aud a longer path", bad, reasonAudience, claimsOf(m{"aud": resource + "/x"})},
	{"aud the start of ours", bad, reasonAudience, claimsOf(m{"aud": "https://mcp.example"})},
	{"aud ours with plain http", bad, reasonAudience, claimsOf(m{"aud": "http://mcp.example.com/mcp"})},
	{"aud ours within a text", bad, reasonAudience, claimsOf(m{"aud": "x " + resource})},
	{"aud a list with a number", bad, reasonClaims, claimsOf(m{"aud": []any{resource, 1}})},
	{"aud an object", bad, reasonClaims, claimsOf(m{"aud": m{resource: true}})},
	{"no exp", bad, reasonClaims, claimsOf(m{"exp": nil})},
	{"exp null", bad, reasonClaims, payloadOf(func(g string) string { return strings.Replace(g, `"exp":`, `"exp":null,"x":`, 1) })},
	{"expired just now", bad, reasonExpired, func(i *authtest.Issuer) *http.Request { return bearer(i.Token(m{"exp": in(0)})) }},
	{"expired long ago", bad, reasonExpired, claimsOf(m{"exp": 1})},
	{"exp 0", bad, reasonExpired, claimsOf(m{"exp": 0})},
	{"exp negative", bad, reasonClaims, claimsOf(m{"exp": -1})},
	{"exp a text", bad, reasonClaims, claimsOf(m{"exp": "9999999999"})},
	{"exp in milliseconds", bad, reasonClaims, claimsOf(m{"exp": int64(1e15)})},
	{"exp beyond an integer", bad, reasonClaims, payloadOf(func(g string) string { return strings.Replace(g, `"exp":`, `"exp":1e300,"x":`, 1) })},
	{"exp beyond a float", bad, reasonMalformed, payloadOf(func(g string) string { return strings.Replace(g, `"exp":`, `"exp":1e999,"x":`, 1) })},
	{"exp true", bad, reasonClaims, claimsOf(m{"exp": true})},
	{"nbf in the future", bad, reasonNotYet, func(i *authtest.Issuer) *http.Request { return bearer(i.Token(m{"nbf": in(time.Minute)})) }},
	{"nbf a text", bad, reasonClaims, claimsOf(m{"nbf": "0"})},
	{"nbf negative", bad, reasonClaims, claimsOf(m{"nbf": -1})},
	{"nbf beyond an integer", bad, reasonClaims, payloadOf(func(g string) string { return `{"nbf":1e300,` + g[1:] })},
	{"iat in the future", bad, reasonNotYet, func(i *authtest.Issuer) *http.Request { return bearer(i.Token(m{"iat": in(time.Minute)})) }},
	{"iat a text", bad, reasonClaims, claimsOf(m{"iat": "yesterday"})},
	{"scope an object", bad, reasonClaims, claimsOf(m{"scope": m{"read": true}})},
	{"scp a list with a number", bad, reasonClaims, claimsOf(m{"scp": []any{1}})},
}
