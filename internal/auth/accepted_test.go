package auth

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

func TestAccepted(t *testing.T) {
	tests := []struct {
		name string
		make func(*authtest.Issuer) *http.Request
	}{
		{"a plain token", claimsOf(nil)},
		{"lower-case scheme", headersOf(func(g string) []string { return []string{"Authorization", "bearer " + g} })},
		{"upper-case scheme", headersOf(func(g string) []string { return []string{"Authorization", "BEARER " + g} })},
		{"two spaces", headersOf(func(g string) []string { return []string{"Authorization", "Bearer  " + g} })},
		{"the same header twice", headersOf(func(g string) []string {
			return []string{"Authorization", "Bearer " + g, "Authorization", "Bearer " + g}
		})},
		{"an empty X-API-Key beside it", headersOf(func(g string) []string { return []string{"Authorization", "Bearer " + g, "X-API-Key", ""} })},
		{"a query of the server's own", func(i *authtest.Issuer) *http.Request {
			q := bearer(i.Token(nil))
			q.URL.RawQuery = "key=abc&upstream_access_token=x"
			return q
		}},
		{"no typ", headerOf(m{"typ": nil})},
		{"typ JWT", headerOf(m{"typ": "JWT"})},
		{"typ application/at+jwt", headerOf(m{"typ": "application/at+JWT"})},
		{"no kid", headerOf(m{"kid": nil})},
		{"an x5t", headerOf(m{"x5t": "abc"})},
		{"a jku that is not looked at", headerOf(m{"jku": "https://attacker.example/keys"})},
		{"aud a list", claimsOf(m{"aud": []string{"https://other.example", resource}})},
		{"aud with a slash more", claimsOf(m{"aud": resource + "/"})},
		{"aud the public URL", claimsOf(m{"aud": publicURL})},
		{"aud the public URL with a slash", claimsOf(m{"aud": publicURL + "/"})},
		{"no iat", claimsOf(m{"iat": nil})},
		{"nbf now", func(i *authtest.Issuer) *http.Request { return bearer(i.Token(m{"nbf": in(0)})) }},
		{"nbf within the leeway", func(i *authtest.Issuer) *http.Request { return bearer(i.Token(m{"nbf": in(20 * time.Second)})) }},
		{"iat within the leeway", func(i *authtest.Issuer) *http.Request { return bearer(i.Token(m{"iat": in(20 * time.Second)})) }},
		{"exp a fraction", claimsOf(m{"exp": float64(time.Now().Unix()) + 60.5})},
		{"exp in the year 9999", claimsOf(m{"exp": lastDate})},
		{"claims of its own", claimsOf(m{"groups": []string{"a"}, "big": 9007199254740993})},
	}
	r := newRig(t, nil)
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r.t = t
			q := c.make(r.issuer)
			for range 2 { // verified, then known
				p := r.accepted(q)
				if p.Kind != KindToken || p.Issuer != issuerName || p.Subject != "alice" || p.Expires.IsZero() {
					t.Errorf("principal %+v", p)
				}
			}
		})
	}
}

func TestAlgorithms(t *testing.T) {
	for _, alg := range algorithms {
		t.Run(string(alg), func(t *testing.T) {
			r := newRig(t, nil)
			r.issuer.Publish(r.issuer.Rotate(string(alg)))
			r.accepted(bearer(r.issuer.Token(nil)))
		})
	}
}

// TestKeyOfOtherUse: keys that an issuer publishes for something else, or that
// are too weak, verify nothing.
func TestKeyOfOtherUse(t *testing.T) {
	sets := map[string]func(*authtest.Key) m{
		"for encryption": func(k *authtest.Key) m { jwk := k.JWK(); jwk["use"] = "enc"; return jwk },
		"for signing only": func(k *authtest.Key) m {
			jwk := k.JWK()
			jwk["key_ops"] = []string{"sign"}
			return jwk
		},
		"for another algorithm": func(k *authtest.Key) m { jwk := k.JWK(); jwk["alg"] = "PS256"; return jwk },
		"a weak key":            (*authtest.Key).JWK,
		"a shared secret":       func(*authtest.Key) m { return m{"kty": "oct", "kid": "key-2", "k": "c2VjcmV0"} },
	}
	for name, jwk := range sets {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			good := r.issuer.Key()
			k := r.issuer.Rotate("RS256")
			if name == "a weak key" {
				k = authtest.NewWeakKey("weak")
				r.issuer.Use(k)
			}
			other := jwk(k)
			r.issuer.Handle("/tenant/keys", func(w http.ResponseWriter, _ *http.Request) {
				w.Write(authtest.JSON(m{"keys": []any{"no key", other, m{"kty": "future"}, good.JWK()}}))
			})
			_, err := r.Check(bearer(r.issuer.Token(nil)), resource, nil)
			if f, ok := err.(*Failure); !ok || f.Status != http.StatusUnauthorized && f.Reason != reasonKid {
				t.Fatalf("got %v", err)
			}
			// The good key beside it works.
			h := authtest.JSON(m{"alg": good.Alg, "kid": good.ID})
			r.accepted(bearer(good.Sign(h, authtest.JSON(r.issuer.Claims(nil)))))
		})
	}
}

func TestAudiences(t *testing.T) {
	configured := func(audiences ...string) func(*Config) {
		return func(c *Config) { c.Audiences = audiences }
	}
	several := func(c *Config) { c.PublicURLs = []string{"http://127.0.0.1:8080", "http://localhost:8080/"} }
	tests := []struct {
		name     string
		change   func(*Config)
		resource string
		aud      string
		ok       bool
	}{
		{"the resource asked for", nil, publicURL + "/servers/a/mcp", publicURL + "/servers/a/mcp", true},
		{"another server's", nil, publicURL + "/servers/a/mcp", publicURL + "/servers/b/mcp", false},
		{"a resource that a Host header made up", nil, "https://evil.example/mcp", "https://evil.example/mcp", false},
		{"a host that begins as ours", nil, publicURL + ".evil.example/mcp", publicURL + ".evil.example/mcp", false},
		{"our host as a user", nil, publicURL + "@evil.example/mcp", publicURL + "@evil.example/mcp", false},
		{"our host with another port", nil, publicURL + ":8443/mcp", publicURL + ":8443/mcp", false},
		{"no resource", nil, "", publicURL, true},
		{"an empty aud and no resource", nil, "", "", false},
		{"one of several public URLs", several, "http://localhost:8080/mcp", "http://localhost:8080/mcp", true},
		{"another of them", several, "http://localhost:8080/mcp", "http://127.0.0.1:8080", true},
		{"none of them", several, "http://localhost:8081/mcp", "http://localhost:8081/mcp", false},
		{"configured", configured("api://a", "api://b"), resource, "api://b", true},
		{"configured ones replace the public URL", configured("api://a"), resource, resource, false},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.change)
			q := bearer(r.issuer.Token(m{"aud": c.aud}))
			for range 2 {
				if _, err := r.Check(q, c.resource, nil); (err == nil) != c.ok {
					t.Fatalf("got %v", err)
				}
			}
		})
	}
}

// TestAudienceOfKnownToken: that a token is known for one server does not make
// it good for another.
func TestAudienceOfKnownToken(t *testing.T) {
	r := newRig(t, nil)
	q := bearer(r.issuer.Token(nil))
	r.accepted(q)
	_, err := r.Check(q, publicURL+"/servers/other/mcp", nil)
	if f, ok := err.(*Failure); !ok || f.Reason != reasonAudience {
		t.Fatalf("got %v", err)
	}
	r.accepted(q)
}

// TestKnownTokenAsKey: a token is none for X-API-Key, known or not.
func TestKnownTokenAsKey(t *testing.T) {
	r := newRig(t, nil)
	token := r.issuer.Token(nil)
	r.accepted(bearer(token))
	r.refused(bad, reasonUnknownKey, request("X-API-Key", token))
}

func TestScopes(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Scopes = []string{"mcp"} })
	tests := []struct {
		claims m
		needs  []string
		ok     bool
	}{
		{m{"scope": "mcp"}, nil, true},
		{m{"scope": "a mcp  b"}, []string{"b", "a"}, true},
		{m{"scp": []string{"mcp", "a"}}, []string{"a"}, true},
		{m{"scp": "mcp a"}, []string{"a"}, true},
		{m{"scope": []string{"mcp", "a"}}, []string{"a"}, true},
		{m{"scope": "mcp", "scp": "a"}, []string{"a"}, true},
		{nil, nil, false},
		{m{"scope": ""}, nil, false},
		{m{"scope": "MCP"}, nil, false},
		{m{"scope": "mcpx"}, nil, false},
		{m{"scope": "a,mcp"}, nil, false},
		{m{"scope": "mcp"}, []string{"a"}, false},
		{m{"scope": "a"}, []string{"a"}, false},
	}
	for _, c := range tests {
		q := bearer(r.issuer.Token(c.claims))
		if c.ok {
			r.accepted(q, c.needs...)
			continue
		}
		f := r.refused(http.StatusForbidden, reasonScope, q, c.needs...)
		want := `scope="` + strings.Join(append([]string{"mcp"}, c.needs...), " ") + `"`
		if !strings.Contains(f.Challenge, `error="insufficient_scope"`) || !strings.Contains(f.Challenge, want) {
			t.Errorf("challenge %s, want %s in it", f.Challenge, want)
		}
	}
	r.refused(http.StatusForbidden, reasonScope, request("X-API-Key", r.key))
	p := &Principal{Kind: KindToken, Scopes: []string{"mcp", "a"}}
	if err := r.Authorize(p, resource, []string{"a"}); err != nil {
		t.Error(err)
	}
	err := r.Authorize(p, resource, []string{"a", "b"})
	if f, ok := err.(*Failure); !ok || f.Status != http.StatusForbidden || !strings.Contains(f.Challenge, `scope="mcp a b"`) {
		t.Errorf("Authorize: %v", err)
	}
	if r.counted(reasonScope) != 9 {
		t.Errorf("%v failures counted, want 9", r.counted(reasonScope))
	}
}

// TestChallenge is the text of the header, for a client that reads it with a
// regular expression.
func TestChallenge(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Scopes = []string{"mcp"} })
	const where = `resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp"`
	f := r.refused(bad, reasonMissing, request(), "read")
	if want := `Bearer scope="mcp read", ` + where; f.Challenge != want {
		t.Errorf("got  %s\nwant %s", f.Challenge, want)
	}
	f = r.refused(bad, reasonExpired, bearer(r.issuer.Token(m{"exp": 1})))
	if want := `Bearer error="invalid_token", error_description="the token has expired; get a new one", scope="mcp", ` + where; f.Challenge != want {
		t.Errorf("got  %s\nwant %s", f.Challenge, want)
	}
	f = r.refused(no, reasonTwo, request("Authorization", "Bearer a", "X-API-Key", "b"))
	if f.Challenge != "" {
		t.Errorf("a challenge beside 400: %s", f.Challenge)
	}
	_, err := r.Check(request(), "https://h/\"x\r\n\\/mcp", []string{`a"b`, "c\r\nd", `e\f`})
	if c := err.(*Failure).Challenge; strings.ContainsAny(c, "\r\n\\") || strings.Count(c, `"`) != 2 {
		t.Errorf("challenge %q", c)
	}
}

func TestClaims(t *testing.T) {
	r := newRig(t, nil)
	p := r.accepted(bearer(r.issuer.Token(m{"groups": []string{"a", "b"}, "scope": "x y"})))
	if !strings.Contains(string(p.Claims()), `"groups":["a","b"]`) || !slices.Equal(p.Scopes, []string{"x", "y"}) {
		t.Errorf("claims %s, scopes %v", p.Claims(), p.Scopes)
	}
}
