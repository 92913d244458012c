package front

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth"
)

// refused is what a client sends and must not get through with. The request may
// name what authRig.expand knows. docs/refusals.md lists the rows.
type refused struct {
	name   string
	status int    // of the first answer; 0: the connection is closed without one
	reason string // error.data.reason; "": refused before there is a message
	send   string
}

// run sends the request in a setup of its own.
func (c refused) run(t *testing.T, r *authRig) {
	t.Helper()
	if strings.HasPrefix(c.name, "without authorization: ") {
		r.open()
	}
	r.ready()
	text := r.expand(c.send) // no body has a name in it: its length was counted before
	pieces, pause := []string{text}, time.Duration(0)
	if head, drip, ok := strings.Cut(text, dripMark); ok {
		pieces, pause = append([]string{head}, strings.Split(drip, "")...), 10*time.Second
	}
	all, err := r.exchange(pieces, pause)
	if err != nil {
		t.Fatalf("the server neither answers nor closes the connection: %v", err)
	}
	r.settle()
	for _, m := range r.reached() {
		if !strings.Contains(m, `"allowed"`) {
			t.Errorf("the server got %s", m)
		}
	}
	c.judge(t, all)
	r.sessionsAreWell(t)
}

// dripMark stands before what is sent one byte each ten seconds.
const dripMark = "{drip}"

func (c refused) judge(t *testing.T, all []reply) {
	t.Helper()
	if len(all) == 0 {
		if c.status != 0 {
			t.Errorf("closed without an answer, want %d", c.status)
		}
		return
	}
	got := all[0]
	if got.status != c.status {
		t.Errorf("got %d %s, want %d", got.status, got.body, c.status)
	}
	if c.reason != "" && !strings.Contains(got.body, `"reason":"`+c.reason+`"`) {
		t.Errorf("got %s, want the reason %s", got.body, c.reason)
	}
	if c.status == 401 && !strings.HasPrefix(got.header.Get("WWW-Authenticate"), "Bearer ") {
		t.Errorf("401 with the challenge %q", got.header.Get("WWW-Authenticate"))
	}
	for _, r := range all {
		if r.status >= 500 && r.status != 501 && r.status != 505 {
			t.Errorf("an answer with %d: %s", r.status, r.body)
		}
	}
	for _, r := range all[1:] {
		if r.status < 400 {
			t.Errorf("a second answer with %d: %s", r.status, r.body)
		}
	}
}

// sessionsAreWell: whatever was sent, alice goes on, and nobody else has begun one.
func (r *authRig) sessionsAreWell(t *testing.T) {
	t.Helper()
	if got := r.do("POST", "/mcp", ping, bearer(r.alice), "Mcp-Session-Id: "+r.session); got.status != 200 {
		t.Errorf("the session is broken: %d %s", got.status, got.body)
	}
	if got := r.do("POST", "/messages?session_id="+r.legacyID, ping, bearer(r.alice)); got.status != 202 {
		t.Errorf("the session over HTTP+SSE is broken: %d %s", got.status, got.body)
	}
	if n := r.metric("signalbox_sessions", ""); n != 2 {
		t.Errorf("%v sessions, want 2", n)
	}
}

// refusals is every row, also for the document.
func refusals() []refused {
	return slices.Concat(sessionRefusals(), credentialRefusals, pathRefusals, originRefusals, openRefusals, wireRefusals(), sizeRefusals(), policyRefusals)
}

func TestRefusals(t *testing.T) {
	names := make(map[string]bool)
	rows := refusals()
	for _, c := range rows {
		if names[c.name] {
			t.Errorf("two rows are named %q", c.name)
		}
		names[c.name] = true
		t.Run(c.name, func(t *testing.T) { inAuthBubble(t, setup{}, c.run) })
	}
	if len(rows) < 60 {
		t.Errorf("only %d rows", len(rows))
	}
}

// TestNothingIsRefusedForNothing: the requests that the tables spoil are good ones.
func TestNothingIsRefusedForNothing(t *testing.T) {
	for name, send := range map[string]string{
		"POST":            req("POST /mcp", ping, "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}"),
		"lower case":      req("POST /mcp", ping, "mcp-session-id: {hers}", "authorization: bearer {alice}"),
		"X-API-Key":       req("POST /mcp", ping, "Mcp-Session-Id: {hers}", "X-API-Key: {alice}"),
		"trailing slash":  req("POST /mcp/", ping, "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}"),
		"escaped path":    req("POST /%6dcp", ping, "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}"),
		"absolute target": req("POST http://localhost/mcp", ping, "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}"),
		"twice the same":  req("POST /mcp", ping, "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}", "Authorization: Bearer {alice}"),
		"chunked":         req("POST /mcp", "28\r\n"+ping+"\r\n0\r\n\r\n", "Transfer-Encoding: chunked", "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}"),
		"messages":        req("POST /messages?session_id={old}", ping, "Authorization: Bearer {alice}"),
		"DELETE":          req("DELETE /mcp", "", "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}"),
		"initialize":      req("POST /mcp", initBody(rev), "Authorization: Bearer {token}"),
		"a tool":          req("POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe"}}`, "Mcp-Session-Id: {hers}", "Authorization: Bearer {alice}"),
	} {
		t.Run(name, func(t *testing.T) {
			inAuthBubble(t, setup{}, func(t *testing.T, r *authRig) {
				r.ready()
				all, err := r.exchange([]string{r.expand(send)}, 0)
				if err != nil || len(all) != 1 || all[0].status >= 300 || strings.Contains(all[0].body, `"error"`) {
					t.Errorf("got %+v, %v", all, err)
				}
				r.settle()
				if len(r.reached()) == 0 && name != "DELETE" {
					t.Error("the server got nothing")
				}
			})
		})
	}
}

// TestMetadataNeedsNothing: the documents, under a public URL with and without a path.
func TestMetadataNeedsNothing(t *testing.T) {
	for public, want := range map[string][2]string{ // path → resource
		"":                               {"/mcp", "http://localhost/mcp"},
		"https://mcp.example.com":        {"/mcp", "https://mcp.example.com/mcp"},
		"https://mcp.example.com/team/a": {"/team/a/mcp", "https://mcp.example.com/team/a/mcp"},
		"https://mcp.example.com/team/":  {"/team/sse/", "https://mcp.example.com/team/sse"},
	} {
		inAuthBubble(t, setup{public: public}, func(t *testing.T, r *authRig) {
			got := r.do("GET", auth.WellKnown+want[0], "")
			if got.status != 200 || lookup(got.body, "resource") != `"`+want[1]+`"` || lookup(got.body, "authorization_servers") != `["`+issuerName+`"]` {
				t.Errorf("%s: %d %s", public, got.status, got.body)
			}
			root := r.do("GET", auth.WellKnown, "")
			if whole := strings.TrimSuffix(public, "/"); public != "" && lookup(root.body, "resource") != `"`+whole+`"` {
				t.Errorf("%s: %s", public, root.body)
			}
			path := "/" + want[0][strings.LastIndex(strings.TrimSuffix(want[0], "/"), "/")+1:]
			refused := r.do("GET", path, "")
			where := want[1][:strings.Index(want[1][8:], "/")+8] + auth.WellKnown + strings.TrimSuffix(want[0], "/")
			if challenge := refused.header.Get("WWW-Authenticate"); refused.status != 401 || challenge != `Bearer resource_metadata="`+where+`"` {
				t.Errorf("%s: %d %s, want %s", public, refused.status, challenge, where)
			}
		})
	}
}
