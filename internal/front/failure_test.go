package front

import (
	"strings"
	"testing"
	"time"
)

// Whatever the server or its process does wrong is HTTP 200 with a JSON-RPC
// error under the caller's own id, in either form.
func TestServerErrorsAreHTTP200(t *testing.T) {
	for _, c := range []struct {
		name         string
		do           func(*proc)
		code, reason string
		text         string
		after        time.Duration
	}{
		{"process exits", func(p *proc) { p.die(3) }, "-32603", `"process_exited"`, "server process exited (code 3)", 0},
		{"timeout", func(*proc) {}, "-32000", `"timeout"`, "", 10 * time.Minute},
		{"answer above the limit", func(p *proc) { p.oversize() }, "-32603", `"oversize"`, "--max-message", 0},
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			t.Run(c.name+", "+accept, func(t *testing.T) {
				inBubble(t, setup{}, func(t *testing.T, r *rig) {
					session := r.open(rev)
					p := r.procs.last()
					go func() {
						p.last = p.next()
						c.do(p)
					}()
					begin := time.Now()
					got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":"mine","method":"slow"}`, session, "Accept: "+accept)
					body := got.body
					if accept == "text/event-stream" {
						_, body, _ = strings.Cut(body, "data: {")
						body = "{" + strings.TrimSpace(body)
					}
					if got.status != 200 || replyID(body) != `"mine"` || lookup(body, "error", "code") != c.code || !strings.Contains(body, c.text) {
						t.Errorf("got %d %s", got.status, got.body)
					}
					if lookup(body, "error", "data", "reason") != c.reason || lookup(body, "error", "data", "source") != `"signalbox"` {
						t.Errorf("data: %s", body)
					}
					if d := time.Since(begin).Truncate(time.Second); d != c.after {
						t.Errorf("after %v", d)
					}
				})
			})
		}
	}
}

func TestErrorsOfTheServerPassUnchanged(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		p := r.procs.last()
		go func() {
			msg := p.next()
			p.say(`{"jsonrpc":"2.0","id":` + string(msg.Bytes(msg.ID)) + `,"error":{"code":-32601,"message":"x","data":1.50}}`)
		}()
		got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":8,"method":"x/custom"}`, session)
		if got.status != 200 || got.body != `{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"x","data":1.50}}` {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})
}

func TestFailedStarts(t *testing.T) {
	for _, shared := range []bool{false, true} {
		name := map[bool]string{false: "own", true: "shared"}[shared]
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{shared: shared}, func(t *testing.T, r *rig) {
				refused := func(what, text string, got reply) {
					t.Helper()
					if got.status != 200 || replyID(got.body) != "0" || got.header.Get("Mcp-Session-Id") != "" || !strings.Contains(got.body, text) || lookup(got.body, "error", "data", "reason") != `"start_failed"` {
						t.Errorf("%s: %d %v %s", what, got.status, got.header, got.body)
					}
					r.settle()
					if r.mem.Len() != 0 || r.metric("signalbox_sessions", "") != 0 {
						t.Errorf("%s: a session is left", what)
					}
					time.Sleep(90 * time.Second) // the backoff is over
				}
				r.procs.fail = errNoStart
				refused("not found", "PATH=/bin", r.do("POST", "/mcp", initBody(rev)))
				r.procs.fail = nil
				r.procs.silent = true
				go func() {
					time.Sleep(50 * time.Millisecond)
					p := r.procs.last()
					p.next()
					p.die(7)
				}()
				refused("exits", "exited (code 7)", r.do("POST", "/mcp", initBody(rev)))
				refused("hangs", "did not answer initialize", r.do("POST", "/mcp", initBody(rev), "Accept: application/json"))
			})
		})
	}
}

func TestServerRefusesInitialize(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.silent = true
		go func() {
			time.Sleep(time.Millisecond)
			p := r.procs.last()
			msg := p.next()
			p.say(`{"jsonrpc":"2.0","id":` + string(msg.Bytes(msg.ID)) + `,"error":{"code":-32602,"message":"too old"}}`)
		}()
		got := r.do("POST", "/mcp", initBody(rev))
		if got.status != 200 || !strings.Contains(got.body, "too old") || got.header.Get("Mcp-Session-Id") != "" {
			t.Errorf("got %d %v %s", got.status, got.header, got.body)
		}
		r.settle()
		if r.mem.Len() != 0 || !r.procs.last().isStopped() {
			t.Error("something is left")
		}
	})
}

// A process of one session ends that session, and no other.
func TestProcessExitEndsItsSession(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session, other := r.open(rev), r.open(rev)
		r.procs.list[0].die(1)
		r.settle()
		if got := r.do("POST", "/mcp", ping, session); got.status != 404 {
			t.Errorf("its session: %d %s", got.status, got.body)
		}
		if got := r.do("POST", "/mcp", initialized, session); got.status != 404 {
			t.Errorf("its session: %d %s", got.status, got.body)
		}
		if got := r.do("POST", "/mcp", ping, other); got.status != 200 {
			t.Errorf("the other: %d %s", got.status, got.body)
		}
	})
}

// A notification has no answer that could tell of a failure: it is never HTTP
// 200 with a body.
func TestNotificationThatCannotBePassedOn(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		r.procs.last().gone.Store(true) // and its end is not known yet
		got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","method":"x"}`, session)
		if got.status != 503 || got.header.Get("Retry-After") == "" || replyID(got.body) != "null" {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})
}
