package front

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/live"
)

// However a session id is wrong, the answer is the same, so that ids cannot be
// probed.
func TestSessionNotFound(t *testing.T) {
	inBubble(t, setup{names: []string{"a", "b"}}, func(t *testing.T, r *rig) {
		open := func(server string) string {
			got := r.do("POST", "/servers/"+server+"/mcp", initBody(rev))
			return "Mcp-Session-Id: " + got.header.Get("Mcp-Session-Id")
		}
		deleted := open("a")
		if got := r.do("DELETE", "/servers/a/mcp", "", deleted); got.status != 204 || got.body != "" {
			t.Fatalf("DELETE: %d %s", got.status, got.body)
		}
		expired := open("a")
		time.Sleep(10 * time.Minute) // its handshake was never finished
		foreign := open("b")
		legacy, events := r.legacy("/servers/a")
		defer events.close()
		_, legacyID, _ := strings.Cut(legacy, "session_id=")
		var bodies []string
		for name, session := range map[string]string{
			"unknown": "Mcp-Session-Id: dead", "deleted": deleted, "expired": expired, "of another server": foreign,
			"of the other transport": "Mcp-Session-Id: " + legacyID, "two joined": deleted + ", x", "overlong": "Mcp-Session-Id: " + strings.Repeat("x", 10_000),
		} {
			for _, accept := range []string{"application/json", "text/event-stream", "application/json, text/event-stream"} {
				got := r.do("POST", "/servers/a/mcp", `{"jsonrpc":"2.0","id":"q","method":"tools/list"}`, session, "Accept: "+accept)
				if got.status != 404 || replyID(got.body) != `"q"` || got.header.Get("Content-Type") != "application/json" {
					t.Errorf("%s: %d %s", name, got.status, got.body)
				}
				bodies = append(bodies, got.body)
			}
			for _, c := range []struct{ method, body string }{
				{"GET", ""}, {"DELETE", ""}, {"POST", initialized}, {"POST", `{"jsonrpc":"2.0","id":7,"result":{}}`}, {"POST", "[" + ping + "]"}, {"POST", "junk"},
				{"POST", `{"jsonrpc":"2.0","id":5,"method":"x","params":"` + strings.Repeat("x", echoLimit) + `"}`}, // too large for an id to be looked for
			} {
				got := r.do(c.method, "/servers/a/mcp", c.body, session)
				if got.status != 404 || replyID(got.body) != "null" || lookup(got.body, "error", "code") != "-32001" {
					t.Errorf("%s, %s %.30s: %d %s", name, c.method, c.body, got.status, got.body)
				}
			}
		}
		for _, b := range bodies {
			if b != bodies[0] {
				t.Errorf("answers differ: %s and %s", bodies[0], b)
			}
		}
		if lookup(bodies[0], "error", "message") != `"Session not found"` {
			t.Errorf("got %s", bodies[0])
		}
		// The other way round: a Streamable HTTP id is none of /messages.
		_, id, _ := strings.Cut(open("a"), ": ")
		if got := r.do("POST", "/servers/a/messages?session_id="+id, ping); got.status != 404 || replyID(got.body) != "5" {
			t.Errorf("/messages: %d %s", got.status, got.body)
		}
		// An initialize with a dead id starts anew.
		got := r.do("POST", "/servers/a/mcp", initBody(rev), deleted)
		if id := got.header.Get("Mcp-Session-Id"); got.status != 200 || id == "" || strings.Contains(deleted, id) {
			t.Errorf("initialize with a dead id: %d %s", got.status, got.body)
		}
		if got := r.do("POST", "/servers/b/mcp", ping, foreign); got.status != 200 {
			t.Errorf("the session that was probed for: %d %s", got.status, got.body)
		}
	})
}

func TestInitializeWithSessionIDOpensAnother(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		got := r.do("POST", "/mcp", initBody(rev), session)
		if id := got.header.Get("Mcp-Session-Id"); got.status != 200 || id == "" || strings.Contains(session, id) {
			t.Errorf("got %d %q", got.status, id)
		}
		if got := r.do("POST", "/mcp", ping, session); got.status != 200 {
			t.Errorf("the first: %d", got.status)
		}
		if n := r.procs.count(); n != 2 {
			t.Errorf("%d processes", n)
		}
	})
}

func TestNotificationsAndResponsesAreAccepted(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.initialize("2025-03-26")
		events := r.get(session)
		if got := r.do("POST", "/mcp", initialized, session); got.status != 202 || got.body != "" || got.header.Get("Content-Length") != "0" {
			t.Errorf("notification: %d %q %v", got.status, got.body, got.header)
		}
		r.procs.last().say(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
		if e := events.next(); !strings.Contains(string(e.Data), "roots/list") {
			t.Fatalf("event %s", e.Data)
		}
		for name, body := range map[string]string{
			"custom notification":    `{"jsonrpc":"2.0","method":"notifications/x/y","params":{}}`,
			"response":               `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`,
			"response to nothing":    `{"jsonrpc":"2.0","id":99,"result":{"late":true}}`,
			"error without id":       `{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}`,
			"batch of notifications": "[" + initialized + "," + initialized + "]",
		} {
			for _, accept := range []string{"application/json", "text/event-stream"} {
				if got := r.do("POST", "/mcp", body, session, "Accept: "+accept); got.status != 202 || got.body != "" || got.header.Get("Content-Type") != "" {
					t.Errorf("%s: %d %q", name, got.status, got.body)
				}
			}
		}
		p := r.procs.last()
		if !p.saw(`"id":1,"result":{"roots":[]}`) || !p.saw("notifications/x/y") || p.saw("late") {
			t.Errorf("the server saw %v", p.lines)
		}
	})
}

func TestResponseToNothingPendingInASharedProcess(t *testing.T) {
	inBubble(t, setup{shared: true}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"result":{"late":true}}`, session)
		if got.status != 400 || lookup(got.body, "error", "code") != "-32600" || replyID(got.body) != "null" || lookup(got.body, "error", "data", "reason") != `"nothing_pending"` {
			t.Errorf("got %d %s", got.status, got.body)
		}
		if r.procs.last().saw("late") {
			t.Error("the server saw it")
		}
	})
}

func TestDelete(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session, other := r.open(rev), r.open(rev)
		p := r.procs.list[0]
		call := make(chan reply)
		go func() {
			call <- r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":8,"method":"slow"}`, session, "Accept: application/json")
		}()
		p.next()
		own := r.get(session)
		if got := r.do("DELETE", "/mcp", "", session); got.status != 204 || got.body != "" {
			t.Errorf("first: %d %s", got.status, got.body)
		}
		if got := r.do("DELETE", "/mcp", "", session); got.status != 404 {
			t.Errorf("second: %d %s", got.status, got.body)
		}
		if got := <-call; got.status != 200 || replyID(got.body) != "8" || lookup(got.body, "error", "data", "reason") != `"session_ended"` {
			t.Errorf("the call: %d %s", got.status, got.body)
		}
		if left := own.rest(); len(left) != 0 {
			t.Errorf("its own stream: %q", left)
		}
		if !p.isStopped() {
			t.Error("its process was not stopped")
		}
		if got := r.do("POST", "/mcp", ping, other); got.status != 200 {
			t.Errorf("the other session: %d", got.status)
		}
	})
}

func TestSessionLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits func(*live.Limits)
		status int
		reason string
	}{
		{"in all", func(l *live.Limits) { l.MaxSessions = 10 }, 503, `"session_limit"`},
		{"of one principal", func(l *live.Limits) { l.MaxPerPrincipal = 10 }, 429, `"principal_limit"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, setup{limits: c.limits}, func(t *testing.T, r *rig) {
				r.procs.silent = true // so that all start at the same time
				answers := make(chan reply, 200)
				var wg sync.WaitGroup
				for range 200 {
					wg.Go(func() { answers <- r.do("POST", "/mcp", initBody(rev), "Accept: application/json") })
				}
				synctest.Wait()
				if n := r.procs.count(); n != 10 {
					t.Errorf("%d processes started", n)
				}
				for _, p := range r.procs.list {
					p.answer(p.next(), initResult(rev))
				}
				wg.Wait()
				close(answers)
				var opened []string
				for got := range answers {
					if got.status == 200 {
						opened = append(opened, "Mcp-Session-Id: "+got.header.Get("Mcp-Session-Id"))
						continue
					}
					if got.status != c.status || got.header.Get("Retry-After") == "" || lookup(got.body, "error", "code") != "-32000" || lookup(got.body, "error", "data", "reason") != c.reason || replyID(got.body) != "0" {
						t.Errorf("refused with %d %v %s", got.status, got.header, got.body)
					}
				}
				if len(opened) != 10 {
					t.Errorf("%d sessions", len(opened))
				}
				if got := r.do("GET", "/sse", ""); got.status != c.status || got.header.Get("Retry-After") == "" {
					t.Errorf("/sse: %d %s", got.status, got.body)
				}
				r.procs.silent = false
				for _, session := range opened { // each place is free again
					if got := r.do("DELETE", "/mcp", "", session); got.status != 204 {
						t.Errorf("DELETE: %d", got.status)
					}
					r.open(rev)
				}
			})
		})
	}
}

func TestProcessLimit(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.fail = child.ErrTooMany
		got := r.do("POST", "/mcp", initBody(rev))
		if got.status != 503 || got.header.Get("Retry-After") == "" || lookup(got.body, "error", "code") != "-32000" || !strings.Contains(got.body, "--max-processes") {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})
}

func TestCallLimit(t *testing.T) {
	inBubble(t, setup{limits: func(l *live.Limits) { l.MaxCalls = 1 }}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		go r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"slow"}`, session, "Accept: application/json")
		msg := r.procs.last().next()
		if got := r.do("POST", "/mcp", ping, session); got.status != 429 || got.header.Get("Retry-After") == "" || replyID(got.body) != "5" {
			t.Errorf("got %d %s", got.status, got.body)
		}
		r.procs.last().answer(msg, "{}")
	})
}

func TestStoreOutOfReach(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		r.store.down.Store(true)
		defer r.store.down.Store(false)
		for name, got := range map[string]reply{
			"unknown session": r.do("POST", "/mcp", ping, "Mcp-Session-Id: x"),
			"GET":             r.do("GET", "/mcp", "", "Mcp-Session-Id: x"),
			"DELETE":          r.do("DELETE", "/mcp", "", "Mcp-Session-Id: x"),
			"initialize":      r.do("POST", "/mcp", initBody(rev)),
			"/sse":            r.do("GET", "/sse", ""),
			"/messages":       r.do("POST", "/messages?session_id=x", ping),
		} {
			if got.status != 503 || got.header.Get("Retry-After") == "" || lookup(got.body, "error", "data", "reason") != `"store_unavailable"` || got.header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%s: %d %v %s", name, got.status, got.header, got.body)
			}
		}
		if got := r.do("POST", "/mcp", ping, session); got.status != 200 {
			t.Errorf("a session that lives here: %d %s", got.status, got.body)
		}
	})
}

func TestOneIDInSeveralCalls(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		var wg sync.WaitGroup
		for _, tool := range []string{"a", "b", "c"} { // one id in three calls at once
			wg.Go(func() {
				got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+tool+`"}`, session, "Accept: application/json")
				if got.status != 200 || replyID(got.body) != "1" || lookup(got.body, "result", "of") != fmt.Sprintf("%q", tool) {
					t.Errorf("%s: %d %s", tool, got.status, got.body)
				}
			})
		}
		p := r.procs.last()
		first, second, third := p.next(), p.next(), p.next()
		p.answer(third, fmt.Sprintf(`{"of":%q}`, third.MethodName()))
		p.answer(first, fmt.Sprintf(`{"of":%q}`, first.MethodName()))
		p.answer(second, fmt.Sprintf(`{"of":%q}`, second.MethodName()))
		wg.Wait()
	})
}
