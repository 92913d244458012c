package front

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/live"
)

// TestAudit: each call and each session leaves its line, and none holds a secret.
func TestAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, err := audit.Open("-", audit.Options{Stderr: &out})
		if err != nil {
			t.Fatal(err)
		}
		r := newAuthRig(t, setup{manager: func(c *live.Config) { c.Audit = log }})
		r.settle = synctest.Wait
		r.ready()
		token := r.issuer.Token(map[string]any{"sub": "carol@example.com"})
		open := r.do("POST", "/mcp", initBody(rev), bearer(token))
		id := open.header.Get("Mcp-Session-Id")
		r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"danger","arguments":{"password":"hunter2"}}}`, bearer(token), "Mcp-Session-Id: "+id)
		r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","arguments":{"password":"hunter2"}}}`, bearer(token), "Mcp-Session-Id: "+id)
		r.do("DELETE", "/mcp", "", bearer(token), "Mcp-Session-Id: "+id)
		r.settle()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, want := range []string{
			`"event":"opened","principal":"key alice","server":"srv",`,
			`"transport":"sse"`,
			`"event":"call","principal":"token of https://issuer.example/tenant, subject `,
			`"method":"initialize","outcome":"ok"`,
			`"method":"tools/call","tool":"danger","outcome":"refused:policy"`,
			`"method":"tools/call","tool":"safe","outcome":"ok"`,
			`"event":"ended","principal":"token of`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("no %s in\n%s", want, text)
			}
		}
		for _, secret := range []string{"carol", "hunter2", "password", token, r.alice, id, r.session, r.legacyID} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is in the audit log:\n%s", secret, text)
			}
		}
	})
}
