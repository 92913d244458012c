package front

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

// legacy opens a stream of HTTP+SSE and returns where to post.
func (r *rig) legacy(prefix string) (endpoint string, events *stream) {
	r.t.Helper()
	s := r.stream("GET", prefix+"/sse", "", "Accept: text/event-stream")
	e := s.next()
	if e.Type != "endpoint" || e.HasID {
		r.t.Fatalf("first event: %+v", e)
	}
	return string(e.Data), s
}

func (r *rig) legacyReady() (endpoint string, events *stream) {
	r.t.Helper()
	endpoint, s := r.legacy("")
	if got := r.do("POST", endpoint, initBody("2024-11-05")); got.status != 202 || got.body != "" {
		r.t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	if e := s.next(); e.Type != "message" || e.HasID || !strings.Contains(string(e.Data), `"id":0,"result"`) {
		r.t.Fatalf("initialize: %+v", e)
	}
	if got := r.do("POST", endpoint, initialized); got.status != 202 {
		r.t.Fatalf("initialized: %d", got.status)
	}
	return endpoint, s
}

func TestLegacy(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		endpoint, s := r.legacyReady()
		p := r.procs.last()
		begin := time.Now()
		got := r.do("POST", endpoint, `{"jsonrpc":"2.0","id":4,"method":"slow","params":{"_meta":{"progressToken":"t"}}}`)
		if got.status != 202 || got.body != "" || time.Since(begin) > 0 {
			t.Errorf("call: %d %s after %v", got.status, got.body, time.Since(begin))
		}
		msg := p.next()
		p.progress(msg, 1)
		if e := s.next(); !strings.Contains(string(e.Data), `"progressToken":"t"`) {
			t.Errorf("progress: %s", e.Data)
		}
		p.say(`{"jsonrpc":"2.0","id":77,"method":"roots/list"}`)
		if e := s.next(); !strings.Contains(string(e.Data), `"id":77`) {
			t.Errorf("request of the server: %s", e.Data)
		}
		if got := r.do("POST", endpoint, `{"jsonrpc":"2.0","id":77,"result":{}}`); got.status != 202 || !p.saw(`"id":77,"result"`) {
			t.Errorf("response: %d", got.status)
		}
		p.answer(msg, `{"done":1}`)
		if e := s.next(); string(e.Data) != `{"jsonrpc":"2.0","id":4,"result":{"done":1}}` || e.Type != "message" {
			t.Errorf("answer: %s", e.Data)
		}
		r.do("POST", endpoint, initBody("2024-11-05"))
		if e := s.next(); lookup(string(e.Data), "error", "data", "reason") != `"initialized"` {
			t.Errorf("second initialize: %s", e.Data)
		}
		for name, c := range map[string]struct {
			path, body string
			status     int
		}{
			"parse error":     {endpoint, "{", 400},
			"batch":           {endpoint, "[" + ping + "]", 400},
			"no session":      {"/messages", ping, 400},
			"unknown session": {"/messages?session_id=dead", ping, 404},
			"sessionId, too":  {strings.Replace(endpoint, "session_id", "sessionId", 1), ping, 202},
			"/message, too":   {strings.Replace(endpoint, "messages", "message", 1), ping, 202},
			"slash":           {strings.Replace(endpoint, "messages", "messages/", 1), ping, 202},
		} {
			if got := r.do("POST", c.path, c.body); got.status != c.status {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		s.close()
		synctest.Wait()
		if got := r.do("POST", endpoint, ping); got.status != 404 {
			t.Errorf("after the stream: %d", got.status)
		}
		if !p.isStopped() {
			t.Error("the process lives on")
		}
	})
}

func TestLegacyBeforeInitialize(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		endpoint, s := r.legacy("")
		for reason, body := range map[string]string{
			"not_initialized":     ping,
			"unsupported_version": `{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		} {
			if got := r.do("POST", endpoint, body); got.status != 202 {
				t.Errorf("%s: %d %s", reason, got.status, got.body)
			}
			if e := string(s.next().Data); replyID(e) != "5" || lookup(e, "error", "data", "reason") != `"`+reason+`"` {
				t.Errorf("%s: %s", reason, e)
			}
		}
		for name, body := range map[string]string{"notification": initialized, "unsupported header": ping} {
			headers := map[string]string{"notification": "X: y", "unsupported header": "MCP-Protocol-Version: abc"}
			if got := r.do("POST", endpoint, body, headers[name]); got.status != 400 {
				t.Errorf("%s: %d", name, got.status)
			}
		}
		if r.procs.count() != 0 {
			t.Error("a process was started for it")
		}
	})
}

// The server fails, the stream lives on, and the client tries again.
func TestLegacyInitializeAgain(t *testing.T) {
	for name, fail := range map[string]func(*proc){
		"process exits": func(p *proc) { p.next(); p.die(3) },
		"server refuses": func(p *proc) {
			msg := p.next()
			p.say(`{"jsonrpc":"2.0","id":` + string(msg.Bytes(msg.ID)) + `,"error":{"code":-32602,"message":"no"}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, r *rig) {
				endpoint, s := r.legacy("")
				r.procs.silent = true
				if got := r.do("POST", endpoint, initBody("2024-11-05")); got.status != 202 {
					t.Fatalf("first: %d %s", got.status, got.body)
				}
				fail(r.procs.last())
				if e := s.next(); !strings.Contains(string(e.Data), `"id":0,"error"`) {
					t.Fatalf("first: %s", e.Data)
				}
				r.procs.silent = false
				if got := r.do("POST", endpoint, initBody("2024-11-05")); got.status != 202 {
					t.Fatalf("second: %d %s", got.status, got.body)
				}
				if e := s.next(); !strings.Contains(string(e.Data), `"id":0,"result"`) {
					t.Fatalf("second: %s", e.Data)
				}
				r.settle()
				if !r.procs.list[0].isStopped() {
					t.Error("the first process lives on")
				}
			})
		})
	}
}

func TestLegacyStartFailure(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.fail = errNoStart
		endpoint, s := r.legacy("")
		r.do("POST", endpoint, initBody("2024-11-05"))
		if e := s.next(); !strings.Contains(string(e.Data), `"reason":"start_failed"`) {
			t.Errorf("got %s", e.Data)
		}
	})
}

func TestLegacyEndsWithItsProcess(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		endpoint, s := r.legacyReady()
		r.do("POST", endpoint, `{"jsonrpc":"2.0","id":4,"method":"slow"}`)
		p := r.procs.last()
		p.next()
		p.die(3)
		if left := s.rest(); len(left) != 1 || !strings.Contains(left[0], `"id":4,"error"`) || !strings.Contains(left[0], "exited (code 3)") {
			t.Errorf("got %q", left)
		}
	})
}

func TestLegacyEndpointHasThePublicPrefix(t *testing.T) {
	for public, want := range map[string]string{
		"":                                 "/messages?session_id=",
		"https://mcp.example.com":          "/messages?session_id=",
		"https://mcp.example.com/team/a/":  "/team/a/messages?session_id=",
		"https://mcp.example.com:8443/a b": "/a%20b/messages?session_id=",
	} {
		inBubble(t, setup{public: public, names: []string{"x"}}, func(t *testing.T, r *rig) {
			endpoint, _ := r.legacy("")
			if !strings.HasPrefix(endpoint, want) {
				t.Errorf("%s: %s", public, endpoint)
			}
			endpoint, _ = r.legacy("/servers/x")
			if want := strings.Replace(want, "/messages", "/servers/x/messages", 1); !strings.HasPrefix(endpoint, want) {
				t.Errorf("%s: %s", public, endpoint)
			}
		})
	}
}

func TestLegacyBatch(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		endpoint, s := r.legacy("")
		r.do("POST", endpoint, initBody("2025-03-26"))
		s.next()
		if got := r.do("POST", endpoint, "["+ping+","+initialized+`,{"jsonrpc":"2.0","id":6,"method":"echo","params":{}}]`); got.status != 202 {
			t.Fatalf("got %d %s", got.status, got.body)
		}
		if a, b := s.next(), s.next(); !strings.Contains(string(a.Data), `"id":5`) || !strings.Contains(string(b.Data), `"id":6`) {
			t.Errorf("got %s and %s", a.Data, b.Data)
		}
		if got := r.do("POST", endpoint, `[1,{"jsonrpc":"2.0","id":7,"method":"echo","params":{}}]`); got.status != 202 {
			t.Errorf("a batch with a bad element: %d", got.status)
		}
		if a, b := s.next(), s.next(); !strings.Contains(string(a.Data), `"id":null,"error"`) || !strings.Contains(string(b.Data), `"id":7,"result"`) {
			t.Errorf("got %s and %s", a.Data, b.Data)
		}
	})
}

func TestLegacyProcessLimit(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.fail = child.ErrTooMany
		endpoint, s := r.legacy("")
		r.do("POST", endpoint, initBody("2024-11-05"))
		if e := s.next(); !strings.Contains(string(e.Data), `"reason":"process_limit"`) {
			t.Errorf("got %s", e.Data)
		}
	})
}
