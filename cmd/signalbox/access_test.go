package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

// bearer sends a message with a credential.
func bearer(t *testing.T, url, session, token, body string) (status int, answer string, header http.Header) {
	t.Helper()
	var headers []string
	if token != "" {
		headers = []string{"Authorization", "Bearer " + token}
	}
	res, answer := say(t, http.DefaultClient, url, session, body, headers...)
	return res.StatusCode, answer, res.Header
}

func openAs(t *testing.T, url, token string) string {
	t.Helper()
	status, answer, header := bearer(t, url, "", token, initialize)
	if status != 200 || header.Get("Mcp-Session-Id") == "" {
		t.Fatalf("initialize: %d %s", status, answer)
	}
	return header.Get("Mcp-Session-Id")
}

func TestAccessRules(t *testing.T) {
	dir := t.TempDir()
	keys := map[string]string{}
	var file strings.Builder
	for name, scopes := range map[string][]string{"reader": {"read"}, "admin": {"read", "admin"}, "nobody": nil} {
		key, entry, err := auth.NewKey(name, scopes)
		if err != nil {
			t.Fatal(err)
		}
		keys[name] = key
		file.WriteString(entry)
	}
	keyFile := filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(keyFile, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	_, base := serveFile(t, configFile(t, dir, `
mcpServers:
  s: {SELF, tools: {deny: [read_all]}, access: [{scopes: [admin]}, {scopes: [read], tools: ["read*"]}]}
  closed: {SELF, access: [{keys: admin}]}
`), "--auth-keys", keyFile)
	url := base + "/servers/s/mcp"
	if status, _, header := bearer(t, url, "", "", initialize); status != 401 || !strings.Contains(header.Get("WWW-Authenticate"), `resource_metadata="`+base+`/.well-known/oauth-protected-resource/servers/s/mcp"`) {
		t.Errorf("without a key: %d %v", status, header)
	}
	if status, answer, _ := bearer(t, url, "", keys["nobody"], initialize); status != 403 || !strings.Contains(answer, `"reason":"access"`) {
		t.Errorf("whom no rule fits: %d %s", status, answer)
	}
	for name, want := range map[string]string{
		"admin":  `[{"name":"read", "n":1.0},{"name":"write"}]`,
		"reader": `[{"name":"read", "n":1.0}]`,
	} {
		session := openAs(t, url, keys[name])
		if _, list, _ := bearer(t, url, session, keys[name], `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); !strings.Contains(list, `"tools":`+want) {
			t.Errorf("%s sees %s", name, list)
		}
		for tool, allowed := range map[string]bool{"read": true, "write": name == "admin", "read_all": false} {
			_, answer, _ := bearer(t, url, session, keys[name], `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`"}}`)
			if strings.Contains(answer, `"result"`) != allowed {
				t.Errorf("%s calls %s: %s", name, tool, answer)
			}
		}
		// Nobody takes over the session of another.
		for other, key := range keys {
			if other == name {
				continue
			}
			if status, _, _ := bearer(t, url, session, key, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); status != 404 {
				t.Errorf("the session of %s by %s: %d", name, other, status)
			}
		}
	}
	if status, _, _ := bearer(t, base+"/servers/closed/mcp", "", keys["reader"], initialize); status != 403 {
		t.Errorf("a server that is closed to it: %d", status)
	}
	openAs(t, base+"/servers/closed/mcp", keys["admin"])
}

// tokenHost is an MCP server that wants a token and notes what it is told of
// clients, beside the issuer of that token.
type tokenHost struct {
	*httptest.Server

	mu     sync.Mutex
	issued int
	valid  string
	users  []string
}

func newTokenHost(t *testing.T) *tokenHost {
	h := &tokenHost{}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	return h
}

func (h *tokenHost) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/token" {
		if id, secret, _ := r.BasicAuth(); id != "signalbox" || secret != "s3cret" || r.FormValue("resource") != "urn:crm" {
			w.WriteHeader(400)
			fmt.Fprint(w, `{"error":"invalid_client"}`)
			return
		}
		h.issued++
		h.valid = fmt.Sprintf("token-%d", h.issued)
		fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, h.valid)
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+h.valid {
		w.WriteHeader(401)
		return
	}
	h.users = append(h.users, r.Method+" "+r.Header.Get("X-User"))
	var msg struct{ ID json.RawMessage }
	if json.NewDecoder(r.Body).Decode(&msg) != nil || msg.ID == nil {
		w.WriteHeader(202)
		return
	}
	w.Header().Set("Mcp-Session-Id", "s")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}}`, msg.ID)
}

// Signalbox logs in with a token of its own, and tells the server who asks.
func TestCredentialsAndClaims(t *testing.T) {
	t.Setenv("CRM_SECRET", "s3cret")
	host := newTokenHost(t)
	issuer := authtest.Start(t, "urn:box")
	path := configFile(t, t.TempDir(), `
auth: {issuer: `+issuer.Name+`, audience: "urn:box"}
mcpServers:
  far:
    url: `+host.URL+`/mcp
    client-credentials: {token-url: `+host.URL+`/token, client-id: signalbox, client-secret: "${CRM_SECRET}", audience: "urn:crm"}
    claim-headers: {X-User: email}
  near: {SELF, claim-env: {USER_EMAIL: email}, header-env: {LIKES: Accept, LACKS: X-Nothing}}
`)
	_, base := serveFile(t, path)
	token := issuer.Token(map[string]any{"email": "ada@example.org"})
	url := base + "/servers/far/mcp"
	session := openAs(t, url, token)
	for range 2 {
		if status, answer, _ := bearer(t, url, session, token, `{"jsonrpc":"2.0","id":5,"method":"ping"}`); status != 200 || !strings.Contains(answer, "result") {
			t.Errorf("got %d %s", status, answer)
		}
		host.mu.Lock()
		host.valid = "withdrawn" // the next call has to get another one
		host.mu.Unlock()
	}
	host.mu.Lock()
	if host.issued != 2 || len(host.users) != 3 {
		t.Errorf("%d tokens, %q", host.issued, host.users)
	}
	for _, user := range host.users {
		if user != "POST ada@example.org" {
			t.Errorf("the server is told %q", user)
		}
	}
	host.mu.Unlock()

	url = base + "/servers/near/mcp"
	_, env, _ := bearer(t, url, openAs(t, url, token), token, `{"jsonrpc":"2.0","id":1,"method":"env"}`)
	if !strings.Contains(env, `USER_EMAIL=ada@example.org`) || !strings.Contains(env, childMode+"=1") || !strings.Contains(env, `LIKES=application/json\n`) || !strings.Contains(env, `LACKS=\n`) || strings.Contains(env, "s3cret") {
		t.Errorf("the server's environment is %s", env)
	}
}

func TestClientCredentialsThatFail(t *testing.T) {
	host := newTokenHost(t)
	issuer := authtest.Start(t, "urn:box")
	_, base := serveFile(t, configFile(t, t.TempDir(), `
auth: {issuer: `+issuer.Name+`, audience: "urn:box"}
mcpServers:
  far:
    url: `+host.URL+`/mcp
    client-credentials: {token-url: `+host.URL+`/token, client-id: signalbox, client-secret: wrong}
`))
	token := issuer.Token(nil)
	begin := time.Now()
	status, answer, _ := bearer(t, base+"/mcp", "", token, initialize)
	if status != 200 || !strings.Contains(answer, "client-credentials") || !strings.Contains(answer, "invalid_client") || strings.Contains(answer, "wrong") {
		t.Errorf("got %d %s", status, answer)
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("after %v", d)
	}
}
