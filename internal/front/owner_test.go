package front

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/guard"
)

// legacyAs opens /sse with a credential.
func (r *authRig) legacyAs(credential string) (endpoint string, s *stream) {
	r.t.Helper()
	s = r.stream("GET", "/sse", "", events, bearer(credential))
	return string(s.next().Data), s
}

// TestRefreshedToken: a session is its subject's, whatever token proves that.
func TestRefreshedToken(t *testing.T) {
	inAuthBubble(t, setup{}, func(t *testing.T, r *authRig) {
		open := r.do("POST", "/mcp", initBody("2025-03-26"), bearer(r.issuer.Token(nil)))
		id := "Mcp-Session-Id: " + open.header.Get("Mcp-Session-Id")
		endpoint, s := r.legacyAs(r.issuer.Token(nil))
		answers := make(chan string) // read all the time, or the stream would end for want of a reader
		go func() {
			defer close(answers)
			for {
				e, err := s.events.Next()
				if err != nil {
					return
				}
				answers <- string(e.Data)
			}
		}()
		r.do("POST", endpoint, initBody("2025-03-26"), bearer(r.issuer.Token(nil)))
		<-answers
		for _, step := range []func(){
			func() {},
			func() { time.Sleep(4 * time.Minute) },
			func() { r.issuer.Rotate("RS256") },
			func() { r.issuer.Publish(r.issuer.Rotate("EdDSA")); time.Sleep(10 * time.Second) },
		} {
			step()
			fresh := r.issuer.Token(map[string]any{"jti": "x", "aud": []string{base + "/mcp", "other"}, "scope": "more"})
			if got := r.do("POST", "/mcp", ping, id, bearer(fresh)); got.status != 200 {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if got := r.do("POST", endpoint, ping, bearer(fresh)); got.status != 202 {
				t.Errorf("over HTTP+SSE: %d %s", got.status, got.body)
			}
			if got := <-answers; !strings.Contains(got, `"id":5,"result"`) {
				t.Errorf("over HTTP+SSE: %q", got)
			}
			if got := r.do("POST", "/mcp", ping, id, bearer(r.issuer.Token(map[string]any{"sub": "bob"}))); got.status != 404 {
				t.Errorf("bob: %d %s", got.status, got.body)
			}
		}
		expired := r.issuer.Token(map[string]any{"exp": time.Now().Unix() - 1})
		if got := r.do("POST", "/mcp", ping, id, bearer(expired)); got.status != 401 || !strings.Contains(got.header.Get("WWW-Authenticate"), `error="invalid_token"`) {
			t.Errorf("expired: %d %v", got.status, got.header)
		}
		s.close()
		for range answers {
		}
	})
}

// TestTokenForEitherEndpoint: clients are told of the URL that they were given,
// and some go from /mcp to /sse with the same token.
func TestTokenForEitherEndpoint(t *testing.T) {
	inAuthBubble(t, setup{names: []string{"a", "b"}}, func(t *testing.T, r *authRig) {
		for _, aud := range []string{base, base + "/servers/a/mcp", base + "/servers/a/sse"} {
			token := bearer(r.issuer.Token(map[string]any{"aud": aud}))
			if got := r.do("POST", "/servers/a/mcp", initBody(rev), token); got.status != 200 {
				t.Errorf("%s at /mcp: %d %s", aud, got.status, got.body)
			}
			s := r.stream("GET", "/servers/a/sse", "", events, token)
			if got := r.do("POST", string(s.next().Data), initBody(rev), token); got.status != 202 {
				t.Errorf("%s at /messages: %d %s", aud, got.status, got.body)
			}
			s.close()
			for _, path := range []string{"/servers/b/mcp", "/servers/b/sse", "/servers/b/messages?session_id=x"} {
				if got := r.do("GET", path, "", token, events); aud != base && got.status != http.StatusUnauthorized {
					t.Errorf("%s at %s: %d %s", aud, path, got.status, got.body)
				}
			}
		}
		for path, at := range map[string]string{"/servers/a/mcp": "/servers/a/mcp", "/servers/a/sse": "/servers/a/sse", "/servers/a/messages": "/servers/a/sse"} {
			want := `resource_metadata="` + base + "/.well-known/oauth-protected-resource" + at + `"`
			if got := r.do("GET", path, ""); got.status != 401 || !strings.Contains(got.header.Get("WWW-Authenticate"), want) {
				t.Errorf("%s: %d %s, want %s", path, got.status, got.header.Get("WWW-Authenticate"), want)
			}
		}
	})
}

// TestAnonymousSessions: where authorization comes or goes over the same sessions,
// those of nobody are not a principal's, nor the reverse.
func TestAnonymousSessions(t *testing.T) {
	inAuthBubble(t, setup{}, func(t *testing.T, r *authRig) {
		a, g := r.front.cfg.Auth, r.front.cfg.Guard
		open := func(headers ...string) string {
			got := r.do("POST", "/mcp", initBody(rev), headers...)
			if got.status != 200 {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			return "Mcp-Session-Id: " + got.header.Get("Mcp-Session-Id")
		}
		hers := open(bearer(r.alice))
		r.settle()
		r.front.cfg.Auth, r.front.cfg.Guard = nil, guard.New(nil, nil, nil, r.front.cfg.Log)
		nobodys := open()
		for _, headers := range [][]string{{hers}, {hers, bearer(r.alice)}, {hers, bearer("anonymous")}} {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				if got := r.do(method, "/mcp", body(method), headers...); got.status != 404 {
					t.Fatalf("alice's session without authorization: %s %d %s", method, got.status, got.body)
				}
			}
		}
		r.settle()
		r.front.cfg.Auth, r.front.cfg.Guard = a, g
		for _, with := range []string{r.alice, r.issuer.Token(nil), r.issuer.Token(map[string]any{"sub": "anonymous"})} {
			for _, method := range []string{"POST", "GET", "DELETE"} {
				if got := r.do(method, "/mcp", body(method), nobodys, bearer(with)); got.status != 404 {
					t.Fatalf("nobody's session with a credential: %s %d %s", method, got.status, got.body)
				}
			}
		}
		if got := r.do("POST", "/mcp", ping, hers, bearer(r.alice)); got.status != 200 {
			t.Errorf("her session: %d %s", got.status, got.body)
		}
	})
}

func body(method string) string {
	if method == "POST" {
		return ping
	}
	return ""
}

// TestNamesOfServers: who has no credential is not told what there is.
func TestNamesOfServers(t *testing.T) {
	inAuthBubble(t, setup{names: []string{"secret", "other"}}, func(t *testing.T, r *authRig) {
		for _, path := range []string{"/mcp", "/", "/servers/x/mcp", auth.WellKnown + "/mcp", auth.WellKnown + "/servers/x/mcp"} {
			for _, header := range []string{"X-None: x", bearer("sbx_unknown")} {
				if got := r.do("POST", path, ping, header); got.status != 404 || strings.Contains(got.body, "secret") {
					t.Errorf("%s: %d %s", path, got.status, got.body)
				}
			}
		}
		if got := r.do("POST", "/mcp", ping, bearer(r.alice)); got.status != 404 || !strings.Contains(got.body, "/servers/secret/mcp") {
			t.Errorf("with a key: %d %s", got.status, got.body)
		}
	})
}
