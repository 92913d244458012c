package stdio

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestBadLineIsNoEnd(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(`{oops`, ping)
		r.wants(`"id":null`, `"code":-32700`)
		r.wants(`{"jsonrpc":"2.0","id":2,"result":{}}`)
		r.write(initLine)
		r.wants(`{"jsonrpc":"2.0","id":"i","result":` + version + `}`)
		r.write(`{oops`, `{"jsonrpc":"2.0","id":1.5,"method":"x"}`, `{"jsonrpc":"2.0","id":9,"method":""}`, "", "  ", "\xef\xbb\xbf"+ping+"\r")
		r.wants(`-32700`)
		r.wants(`"id":null`, `-32600`)
		r.wants(`"id":9`, `-32600`)
		r.wants(`notifications/progress`)
		r.wants(`{"jsonrpc":"2.0","id":2,"result":"ping"}`)
		r.nothing()
	})
}

func TestEarly(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, initialized, `{"jsonrpc":"2.0","id":1,"result":{}}`,
			`{"jsonrpc":"2.0","id":"d","method":"server/discover"}`, `[`+ping+`]`)
		r.wants(`"id":1`, `-32600`, `send initialize first`, `"source":"signalbox"`)
		r.wants(`"id":"d"`, `-32601`)
		r.wants(`"id":null`, `-32600`, `2025-03-26`)
		r.nothing()
		if len(r.srv.conns) != 0 {
			t.Error("a session was opened")
		}
	})
}

// TestIDs: the ids of answers are the client's, digit for digit.
func TestIDs(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(initLine)
		r.wants(`"i"`)
		for _, id := range []string{`-1`, `0`, `9007199254740993`, `"9007199254740993"`, `"\u00e9\/"`, `""`} {
			r.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"x"}`)
			r.wants(`notifications/progress`)
			r.wants(`{"jsonrpc":"2.0","id":` + id + `,"result":"x"}`)
		}
	})
}

func TestOversize(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(initLine)
		r.wants(`"i"`)
		r.write(`{"jsonrpc":"2.0","id":77,"method":"x","params":["`+strings.Repeat("x", 2000)+`"]}`, ping)
		r.wants(`"id":77`, `-32600`, `limit of 1024`, `--max-message`)
		r.wants(`notifications/progress`)
		r.wants(`"id":2`)
	})
}

func TestBatches(t *testing.T) {
	batch := `[` + ping + `,` + initialized + `, {"jsonrpc":"2.0","id":3,"method":"x"},{"bad":1}]`
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(initLine, batch)
		r.wants(`"i"`)
		r.wants(`"id":null`, `-32600`, `batches exist only in revision 2025-03-26`)
		r.nothing()
	})
	serve(t, &fakeServer{init: `{"protocolVersion":"2025-03-26"}`}, func(r *run) {
		r.write(initLine, batch, `[]`, `[`, `[`+initLine+`]`)
		r.wants(`"i"`)
		r.wants(`progress`)
		r.wants(`"id":2`, `"ping"`)
		r.wants(`progress`)
		r.wants(`"id":3`, `"x"`)
		r.wants(`"id":null`, `-32600`)
		r.wants(`-32600`) // empty
		r.wants(`-32700`)
		r.wants(`"i"`, `has been initialized`)
		r.nothing()
		c := r.srv.conn(0)
		if got := strings.Join(c.got, "\n"); got != ping+"\n"+initialized+"\n"+`{"jsonrpc":"2.0","id":3,"method":"x"}` {
			t.Errorf("the server got %s", got)
		}
	})
}

// TestSecondInitialize is refused, and does no harm to the session.
func TestSecondInitialize(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(initLine, initLine, ping)
		r.wants(`"i"`, `"result"`)
		r.wants(`"i"`, `"error"`, `has been initialized`)
		r.wants(`progress`)
		r.wants(`"id":2`, `"ping"`)
		if len(r.srv.conns) != 1 || r.srv.conn(0).ended {
			t.Error("the session is gone")
		}
	})
}

// TestInitializeAgain: an initialize that failed, in whatever way, may be
// repeated, and leaves no session behind.
func TestInitializeAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		srv   *fakeServer
		wants string
	}{
		"Open fails":      {&fakeServer{refuse: errGone}, `internal`},
		"the call fails":  {&fakeServer{fail: upstream.CallTimeout}, `--call-timeout`},
		"an error answer": {&fakeServer{}, `-32602`},
	} {
		t.Run(name, func(t *testing.T) {
			serve(t, tt.srv, func(r *run) {
				r.write(initLine)
				r.wants(`"i"`, `"error"`, tt.wants)
				r.write(`{"jsonrpc":"2.0","id":1,"method":"x"}`)
				r.wants(`"id":1`, `send initialize first`)
				r.srv.mu.Lock()
				for _, c := range r.srv.conns {
					if !c.ended {
						t.Error("the failed session was not ended")
					}
				}
				r.srv.refuse, r.srv.fail, r.srv.init = nil, nil, version
				r.srv.mu.Unlock()
				r.write(initLine, ping)
				r.wants(`"i"`, `"result"`)
				r.wants(`progress`)
				r.wants(`"id":2`)
				r.nothing()
			})
		})
	}
}

// TestSessionLost: open calls end with the reason, later ones say it, too, and
// a new initialize begins anew.
func TestSessionLost(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(initLine, hang)
		r.wants(`"i"`)
		synctest.Wait()
		first := r.srv.conn(0)
		first.End(upstream.ErrLost)
		r.wants(`"id":7`, `session_lost`, `initialize again`)
		r.write(`{"jsonrpc":"2.0","id":8,"method":"x"}`, ping, initLine, hang)
		r.wants(`"id":8`, `session_lost`)
		r.wants(`"id":2`, `{}`)
		r.wants(`"i"`, `"result"`)
		synctest.Wait()
		first.End(upstream.ErrClosed)
		first.events.End(nil) // late: means nothing to the new session
		r.srv.conn(1).answer()
		r.wants(`"id":7`, `"late"`)
		r.nothing()
	})
}

func TestCancel(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
		r.write(initLine, hang, cancel, ping)
		r.wants(`"i"`)
		r.wants(`progress`)
		r.wants(`"id":2`) // and nothing for 7: none is owed
		r.nothing()
	})
}

// TestEvents: what the server sends unasked is written, and its answers passed.
func TestEvents(t *testing.T) {
	serve(t, &fakeServer{init: version, listens: true}, func(r *run) {
		r.write(initLine)
		r.wants(`"i"`)
		c := r.srv.conn(0)
		if len(c.listening) != 0 {
			t.Error("it listens before the handshake is complete")
		}
		r.write(initialized)
		synctest.Wait()
		if len(c.listening) != 1 || !c.listening[0] {
			t.Errorf("listening: %v", c.listening)
		}
		for _, rel := range []upstream.Relation{upstream.Loose, upstream.Waiting} {
			if v := c.events.Deliver(upstream.Frame{Data: []byte("{\"jsonrpc\":\"2.0\",\n\"id\":1,\"method\":\"roots/list\"}"), Relation: rel}); v != upstream.Taken {
				t.Errorf("verdict %d", v)
			}
			r.wants(`{"jsonrpc":"2.0", "id":1,"method":"roots/list"}`)
		}
		r.write(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
		synctest.Wait()
		if got := c.got[len(c.got)-1]; got != `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}` {
			t.Errorf("the server got %s", got)
		}
	})
}

// TestManyMessages: everything is written once, in order, whatever is large.
func TestManyMessages(t *testing.T) {
	serve(t, &fakeServer{init: version}, func(r *run) {
		r.write(initLine)
		r.wants(`"i"`)
		synctest.Wait()
		c := r.srv.conn(0)
		for i := range 2000 {
			pad := strings.Repeat("x", i%7*10_000)
			c.events.Deliver(upstream.Frame{Data: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"x","params":[%d,"%s"]}`, i, pad)})
		}
		for i := range 2000 {
			r.wants(fmt.Sprintf(`"params":[%d,`, i))
		}
	})
}

// TestDeliverAfterEnd: a frame that is late for its call is not written.
func TestDeliverAfterEnd(t *testing.T) {
	c := &client{w: newWriter(io.Discard, 1), idle: make(chan struct{}, 1)}
	s := &sink{c: c, id: []byte("1")}
	s.End(nil)
	if v := s.Deliver(upstream.Frame{Data: []byte("{}")}); v != upstream.Closed {
		t.Errorf("verdict %d", v)
	}
	if len(c.w.queue) != 1 || !strings.Contains(string(c.w.queue[0]), "session_ended") {
		t.Errorf("queue %q", c.w.queue)
	}
}
