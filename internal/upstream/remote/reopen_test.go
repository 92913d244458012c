package remote

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestReinitialize: one new session for all who wait, with what the client had
// set, and each call runs once.
func TestReinitialize(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.stateful()
		srv := w.server(reinitialize)
		defer srv.Close()
		c := open(t, srv)
		must(t, c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		set := []string{
			`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"info"}}`,
			`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}`,
			`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"file:///b"}}`,
			`{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"file:///\u0061"}}`,
			`{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":"debug"}}`,
		}
		for _, raw := range set {
			c.call(raw)
		}
		s.forget("second")
		before := s.count("")
		var wg sync.WaitGroup
		for i := range 20 {
			sink, _ := c.start(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, 100+i))
			wg.Go(func() {
				if err := sink.end(); err != nil {
					t.Errorf("call %d: %v", i, err)
				} else if got := sink.frame(); got != result(fmt.Sprint(100+i), `{"from":"`+s.addr+`"}`) {
					t.Errorf("call %d: %s", i, got)
				}
			})
		}
		wg.Wait()
		after := s.all("")[before:]
		seenAt := make(map[string]int)
		ran := make(map[string]int)
		for i, r := range after {
			if _, twice := seenAt[r.body]; !twice {
				seenAt[r.body] = i
			}
			if r.header.Get("Mcp-Session-Id") == "second" {
				ran[r.body]++
			}
		}
		want := []string{initialize, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
			`{"jsonrpc":"2.0","id":"signalbox-1","method":"logging/setLevel","params":{"level":"debug"}}`,
			`{"jsonrpc":"2.0","id":"signalbox-2","method":"resources/subscribe","params":{"uri":"file:///b"}}`}
		for i, raw := range want {
			at, ok := seenAt[raw]
			if !ok || i > 0 && at <= seenAt[want[i-1]] || i > 0 && ran[raw] != 1 {
				t.Errorf("%s: at %d, %d times", raw, at, ran[raw])
			}
		}
		for i := range 20 {
			raw := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, 100+i)
			if ran[raw] != 1 {
				t.Errorf("call %d ran %d times", i, ran[raw])
			}
		}
		if n := s.count("initialize"); n != 2 {
			t.Errorf("initialized %d times", n)
		}
		if ran[set[0]]+ran[set[1]]+ran[set[3]] != 0 {
			t.Error("what was changed or taken back later was set again")
		}
		if st := c.conn.(upstream.Movable).State(); st.Session != "second" {
			t.Errorf("state %+v", st)
		}
		if c.events.ended() || counts(srv)["http://"+s.addr] != 1 {
			t.Errorf("sessions %v", counts(srv))
		}
	})
}

// TestReinitializeElsewhere: the session of a dead address begins anew at
// another, with its stream; one that may have run is not repeated.
func TestReinitializeElsewhere(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		for _, s := range sites {
			s.stateful()
			s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
				stream(w)("id: of-" + s.addr + "\n" + data(logMs))
				<-r.Context().Done()
			})
		}
		srv := w.server(reinitialize)
		defer srv.Close()
		c := open(t, srv)
		c.listen(true)
		c.events.frame()
		old := w.sites[c.home()]
		old.handle("tools/call", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		running, _ := c.start(tool)
		synctest.Wait()
		old.setUp(false)
		_ = old.srv.Close()
		running.fails("outcome_unknown", "may have run")
		time.Sleep(time.Minute)
		home := c.home()
		if home == old.addr {
			t.Error("it did not move")
		}
		c.events.frame() // of the new stream
		if got := w.sites[home].all("GET"); len(got) != 1 || got[0].header.Get("Last-Event-Id") != "" || got[0].header.Get("Mcp-Session-Id") != "sess-"+home {
			t.Errorf("GET %v", got)
		}
		for _, s := range sites {
			if n := s.count("tools/call"); s == old && n != 1 || s != old && n != 0 {
				t.Errorf("%s: the tool was called %d times", s.addr, n)
			}
		}
		if n := counts(srv); n["http://"+home] != 1 || n["http://"+old.addr] != 0 {
			t.Errorf("sessions %v", n)
		}
	})
}

// TestReinitializeRefused: a server that does not open the session as it was
// ends it.
func TestReinitializeRefused(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"error":              writeAs("application/json", `{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}`),
		"another revision":   initialized("second", `{"protocolVersion":"2024-11-05"}`),
		"unusable id":        initialized("a b", `{"protocolVersion":"2025-06-18"}`),
		"500":                status(500),
		"HTML":               writeAs("text/html", "<html>"),
		"stream that ends":   writeAs("text/event-stream", ": x\n\n"),
		"reset":              cutOff,
		"revision with CRLF": initialized("second", `{"protocolVersion":"2025-06-18\r\nX: y"}`),
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				s.stateful()
				srv := w.server(reinitialize)
				defer srv.Close()
				c := open(t, srv)
				s.forget("second")
				s.handle("initialize", answer)
				a, _ := c.start(tool)
				b := newSink(t)
				if _, err := c.conn.Start(request(t, list), b); err == nil {
					b.fails("session_lost", "")
				} else if err != upstream.ErrClosed { // the first one was faster
					t.Errorf("error %v", err)
				}
				a.fails("session_lost", "")
				must(t, ignore(c.events.end(), upstream.ErrLost))
				if n := s.count("initialize"); n != 2 {
					t.Errorf("initialized %d times", n)
				}
			})
		})
	}
}

// TestReinitializeLater: while nothing can be reached calls fail, and the
// session begins anew when something can.
func TestReinitializeLater(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.stateful()
		srv := w.server(reinitialize)
		defer srv.Close()
		c := open(t, srv)
		s.setUp(false)
		time.Sleep(time.Minute)
		sink, _ := c.start(tool)
		sink.fails("unreachable", "connection refused")
		if err := c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`); upstream.RPCError(err).Reason != "unreachable" {
			t.Errorf("Send: %v", err)
		}
		s.setUp(true)
		s.forget("second")
		c.home()
		must(t, c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`))
		if n := s.count("initialize"); n != 2 || c.events.ended() {
			t.Errorf("initialized %d times", n)
		}
	})
}

// TestReinitializeByNotification: one that means something is sent again, an
// answer to the old session is not.
func TestReinitializeByNotification(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.stateful()
		s.handle("response", s.known(status(202)))
		srv := w.server(reinitialize)
		defer srv.Close()
		c := open(t, srv)
		s.forget("second")
		must(t, c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`))
		s.forget("third")
		must(t, c.send(`{"jsonrpc":"2.0","id":"q1","result":{}}`))
		if s.count("initialize") != 3 || s.count("notifications/x") != 2 || s.count("response") != 1 {
			t.Errorf("initialized %d times, x %d, responses %d", s.count("initialize"), s.count("notifications/x"), s.count("response"))
		}
	})
}

// TestEndWhileReopening: the session that is being opened anew for nobody is
// closed at the server.
func TestEndWhileReopening(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.stateful()
		srv := w.server(reinitialize)
		defer srv.Close()
		c := open(t, srv)
		s.forget("second")
		s.handle("initialize", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Second)
			initialized("second", `{"protocolVersion":"2025-06-18"}`)(w, r)
		})
		sink, _ := c.start(tool)
		time.Sleep(time.Second)
		c.conn.End(upstream.ErrClosed)
		must(t, ignore(sink.end(), upstream.ErrClosed))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		var deleted []string
		for _, r := range s.all("DELETE") {
			deleted = append(deleted, r.header.Get("Mcp-Session-Id"))
		}
		if got := strings.Join(deleted, " "); got != "sess-10.0.0.1:80 second" {
			t.Errorf("deleted %s", got)
		}
		if n := counts(srv)["http://"+s.addr]; n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}
