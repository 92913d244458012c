package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

const wellKnown = "/.well-known/oauth-protected-resource"

// TestAuthMetadata: what a client needs before it has a credential can be had without.
func TestAuthMetadata(t *testing.T) {
	keys := newKeyFile(t)
	reader := keys.add("reader", "--scope", "mcp:read")
	b := box.Start(t, []string{"--auth-keys", keys.path, "--auth-issuer", "https://issuer.invalid/tenant", "--auth-scope", "mcp:use"}, fakeServer(t)...)
	plain := rawclient.New(b.URL)
	defer plain.Close()
	for path, resource := range map[string]string{
		"":                        b.URL,
		"/":                       b.URL,
		"/mcp":                    b.URL + "/mcp",
		"/mcp/":                   b.URL + "/mcp",
		"/sse":                    b.URL + "/sse",
		"/servers/fakeserver/mcp": b.URL + "/servers/fakeserver/mcp",
	} {
		got := ask(t, plain, "GET", wellKnown+path, "", "Origin", "http://localhost:6274")
		want := `{"resource":"` + resource + `","authorization_servers":["https://issuer.invalid/tenant"],"scopes_supported":["mcp:use"],"bearer_methods_supported":["header"]}`
		if got.status != http.StatusOK || got.body != want {
			t.Errorf("%s: %d %s, want %s", path, got.status, got.body, want)
		}
		if cors := got.header.Get("Access-Control-Allow-Origin"); cors != "http://localhost:6274" {
			t.Errorf("%s: CORS %q", path, cors)
		}
	}
	// The challenges, and where they point to.
	for path, method := range map[string]string{"/mcp": "POST", "/sse": "GET", "/servers/fakeserver/mcp": "DELETE"} {
		got := ask(t, plain, method, path, "", "Origin", "http://localhost:6274", "Accept", "*/*")
		want := `Bearer scope="mcp:use", resource_metadata="` + b.URL + wellKnown + path + `"`
		if challenge := got.header.Get("WWW-Authenticate"); got.status != http.StatusUnauthorized || challenge != want {
			t.Errorf("%s: %d %q, want %q", path, got.status, challenge, want)
		}
		if !strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") || got.header.Get("Access-Control-Allow-Origin") == "" {
			t.Errorf("%s: a page cannot read the challenge: %v", path, got.header)
		}
	}
	got := ask(t, clientOf(t, b, reader), "POST", "/mcp", initBody)
	if challenge := got.header.Get("WWW-Authenticate"); got.status != http.StatusForbidden ||
		!strings.HasPrefix(challenge, `Bearer error="insufficient_scope"`) || !strings.Contains(challenge, `scope="mcp:use"`) || !strings.Contains(challenge, wellKnown) {
		t.Errorf("a scope is missing: %d %q", got.status, challenge)
	}
}

// TestAuthOpenPaths: probes and preflights need no credential, and nothing else is open.
func TestAuthOpenPaths(t *testing.T) {
	keys := newKeyFile(t)
	keys.add("alice")
	b := box.Start(t, []string{"--auth-keys", keys.path}, fakeServer(t)...)
	plain := rawclient.New(b.URL)
	defer plain.Close()
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/healthz", 200}, {"GET", "/readyz", 200}, {"HEAD", "/healthz", 200},
		{"GET", wellKnown, 200}, {"GET", wellKnown + "/mcp", 200}, {"GET", wellKnown + "/nothing", 404}, {"POST", wellKnown, 405},
		{"OPTIONS", "/mcp", 204}, {"OPTIONS", wellKnown + "/mcp", 204},
		{"GET", "/mcp", 401}, {"POST", "/mcp", 401}, {"DELETE", "/mcp", 401}, {"PUT", "/mcp", 401},
		{"GET", "/sse", 401}, {"POST", "/messages?session_id=x", 401}, {"POST", "/message?sessionId=x", 401},
		{"GET", "/metrics", 404}, {"GET", "/", 404},
	} {
		got := ask(t, plain, c.method, c.path, "", "Origin", "http://localhost:6274")
		if got.status != c.status {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got.status, got.body, c.status)
		}
	}
	preflight := ask(t, plain, "OPTIONS", "/mcp", "", "Origin", "http://localhost:6274",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
	if !strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), "Authorization") || preflight.header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("preflight: %v", preflight.header)
	}
	if evil := ask(t, plain, "OPTIONS", "/mcp", "", "Origin", "https://evil.example"); evil.status != http.StatusForbidden || evil.header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("preflight of another site: %d %v", evil.status, evil.header)
	}
}

// TestAuthOff: the well-known paths are a plain 404 in JSON, and no request needs or
// uses a credential.
func TestAuthOff(t *testing.T) {
	b := box.Start(t, nil, fakeServer(t)...)
	plain := rawclient.New(b.URL)
	defer plain.Close()
	for _, path := range []string{wellKnown, wellKnown + "/mcp", "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		got := ask(t, plain, "GET", path, "")
		if got.status != http.StatusNotFound || got.header.Get("Content-Type") != "application/json" || !json.Valid([]byte(got.body)) || got.header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s: %d %v %s", path, got.status, got.header, got.body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	s, err := clientOf(t, b, "whatever").Streamable(ctx, rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}
