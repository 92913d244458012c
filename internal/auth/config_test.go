package auth

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "broken")
	if err := os.WriteFile(file, []byte("- nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	const public = "http://127.0.0.1:8080"
	tests := map[string]struct {
		cfg  Config
		says string // "" if it is good
	}{
		"off":                      {Config{}, ""},
		"an issuer":                {Config{Issuers: []string{"https://a.example"}, PublicURLs: []string{public}}, ""},
		"the same issuer twice":    {Config{Issuers: []string{"https://a.example", "https://a.example"}, PublicURLs: []string{public}}, ""},
		"plain http to loopback":   {Config{Issuers: []string{"http://127.0.0.1:9", "http://[::1]:9", "http://localhost:9"}, PublicURLs: []string{public}}, ""},
		"an audience":              {Config{Issuers: []string{"https://a.example"}, Audiences: []string{"api://x"}}, ""},
		"plain http":               {Config{Issuers: []string{"http://a.example"}, PublicURLs: []string{public}}, "--auth-issuer"},
		"a name like loopback":     {Config{Issuers: []string{"http://127.0.0.1.a.example"}, PublicURLs: []string{public}}, "--auth-issuer"},
		"localhost as a part":      {Config{Issuers: []string{"http://localhost.a.example"}, PublicURLs: []string{public}}, "--auth-issuer"},
		"no URL":                   {Config{Issuers: []string{"a.example"}, PublicURLs: []string{public}}, "--auth-issuer"},
		"another scheme":           {Config{Issuers: []string{"file:///etc"}, PublicURLs: []string{public}}, "--auth-issuer"},
		"an issuer with a query":   {Config{Issuers: []string{"https://a.example/?x"}, PublicURLs: []string{public}}, "query"},
		"an issuer with user":      {Config{Issuers: []string{"https://u:secret@a.example/"}, PublicURLs: []string{public}}, "user"},
		"an issuer and nobody":     {Config{Issuers: []string{"https://a.example"}}, "--auth-audience"},
		"an empty audience":        {Config{Issuers: []string{"https://a.example"}, Audiences: []string{""}}, "--auth-audience"},
		"an empty public URL":      {Config{Issuers: []string{"https://a.example"}, PublicURLs: []string{""}}, "--public-url"},
		"a scope with a space":     {Config{Issuers: []string{"https://a.example"}, PublicURLs: []string{public}, Scopes: []string{"a b"}}, "--auth-scope"},
		"scopes without the rest":  {Config{Scopes: []string{"a"}}, "--auth-scope"},
		"a key file that is not":   {Config{KeysFile: filepath.Join(dir, "none")}, "none"},
		"a key file that is a dir": {Config{KeysFile: dir}, "regular"},
		"a broken key file":        {Config{KeysFile: file}, "line 1"},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			c.cfg.Log, c.cfg.Metrics = slog.New(slog.DiscardHandler), NewMetrics()
			a, err := New(c.cfg)
			if err == nil {
				a.Close()
			}
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "u:secret@") {
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
}

// TestOff: without a setting everybody is anonymous, whatever they send.
func TestOff(t *testing.T) {
	off := newRig(t, func(c *Config) { c.KeysFile, c.Issuers = "", nil })
	for name, a := range map[string]*Authenticator{"nil": nil, "no settings": off.Authenticator} {
		for _, q := range []*http.Request{request(), bearer("x"), request("X-API-Key", "x", "Authorization", "Basic x")} {
			p, err := a.Check(q, resource, []string{"read"})
			if err != nil || p != Anonymous() {
				t.Errorf("%s: %v, %v", name, p, err)
			}
		}
		if a.Enabled() || a.Metadata(resource) != nil || a.Authorize(Anonymous(), resource, []string{"x"}) != nil {
			t.Errorf("%s: not off", name)
		}
	}
}

func TestMetadata(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Scopes = []string{"mcp"} })
	if got, want := string(r.Metadata(resource, "read", "mcp")), `{"resource":"https://mcp.example.com/mcp","authorization_servers":["https://issuer.example/tenant"],"scopes_supported":["mcp","read"],"bearer_methods_supported":["header"]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	keysOnly := newRig(t, func(c *Config) { c.Issuers = nil })
	if got, want := string(keysOnly.Metadata(resource)), `{"resource":"https://mcp.example.com/mcp","bearer_methods_supported":["header"]}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for in, want := range map[string]string{
		"https://h":               "https://h/.well-known/oauth-protected-resource",
		"https://h/":              "https://h/.well-known/oauth-protected-resource",
		"https://h/team/a/mcp":    "https://h/.well-known/oauth-protected-resource/team/a/mcp",
		"http://[::1]:8080/mcp/":  "http://[::1]:8080/.well-known/oauth-protected-resource/mcp",
		"https://h/a%2Fb/mcp?x=1": "https://h/.well-known/oauth-protected-resource/a%2Fb/mcp?x=1",
		"/mcp":                    "",
		"file:///mcp":             "",
		"":                        "",
	} {
		if got := MetadataURL(in); got != want {
			t.Errorf("MetadataURL(%q) = %q, want %q", in, got, want)
		}
	}
}
