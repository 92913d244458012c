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

// TestEnd: a session ends with DELETE, once, whatever the server says to it.
func TestEnd(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, answer := range map[string]http.HandlerFunc{
		"200": status(200), "204": status(204), "404": status(404), "405": status(405), "501": status(501), "500": status(500), "reset": cutOff, "silence": hang,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("DELETE", answer)
				s.handle("tools/call", hang)
				sink, _ := c.start(tool)
				synctest.Wait()
				began := time.Now()
				for range 3 {
					c.conn.End(upstream.ErrClosed)
				}
				must(t, ignore(sink.end(), upstream.ErrClosed))
				must(t, ignore(c.events.end(), upstream.ErrClosed))
				if took := time.Since(began); took > 0 {
					t.Errorf("took %v", took)
				}
				if _, err := c.conn.Start(request(t, list), newSink(t)); err != upstream.ErrClosed {
					t.Errorf("Start: %v", err)
				}
				if err := c.send(logMs); err != upstream.ErrClosed {
					t.Errorf("Send: %v", err)
				}
				c.listen(true)
				time.Sleep(farewell)
				synctest.Wait()
				if got := s.all("DELETE"); len(got) != 1 || got[0].header.Get("Mcp-Session-Id") != s.session {
					t.Errorf("DELETE %v", got)
				}
				if a := srv.addrs.list[0]; a.sessions != 0 {
					t.Errorf("%d sessions are counted", a.sessions)
				}
				if len(srv.conns) != 0 {
					t.Error("the server still has it")
				}
			})
		})
	}
}

// TestEndWithoutSession: a stateless server has nothing to delete.
func TestEndWithoutSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.session = ""
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		c.conn.End(upstream.ErrClosed)
		synctest.Wait()
		if s.count("DELETE") != 0 || srv.addrs.list[0].sessions != 0 {
			t.Errorf("%d DELETEs, %d sessions", s.count("DELETE"), srv.addrs.list[0].sessions)
		}
	})
}

// TestEndDuringInitialize: a session that the server opens while the client
// leaves is closed there, too.
func TestEndDuringInitialize(t *testing.T) {
	for name, cancel := range map[string]bool{"end": false, "cancel and end": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				s.handle("initialize", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				c, reply := begin(t, srv)
				synctest.Wait()
				if cancel {
					srv.mu.Lock()
					var k *call
					for conn := range srv.conns {
						for k = range conn.calls {
						}
					}
					srv.mu.Unlock()
					k.Cancel(upstream.ErrCancelled)
				}
				c.conn.End(upstream.ErrClosed)
				if err := reply.end(); err == nil {
					t.Error("no error")
				}
				_ = c.events.end()
				synctest.Wait()
				if a := srv.addrs.list[0]; a.sessions != 0 || s.count("notifications/cancelled") > 0 {
					t.Errorf("%d sessions, %d cancels", a.sessions, s.count("notifications/cancelled"))
				}
			})
		})
	}
}

// TestEndRaces: whatever ends a call and a session at one moment, each sink
// ends once and the counts come out even.
func TestEndRaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			send(data(prog))
			send(data(result(idOf(r), "{}")))
		})
		srv := w.server()
		defer srv.Close()
		for round := range 100 {
			c, reply := begin(t, srv)
			if round%2 == 0 {
				must(t, reply.end())
			}
			var sinks []*sink
			var wg sync.WaitGroup
			for i := range 4 {
				sink, call := c.start(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, i))
				sinks = append(sinks, sink)
				wg.Go(func() { call.Cancel(upstream.ErrCancelled) })
			}
			wg.Go(func() { _ = c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`) })
			wg.Go(func() { c.conn.End(upstream.ErrClosed) })
			wg.Go(func() { c.listen(true) })
			wg.Wait()
			for _, sink := range append(sinks, reply, c.events) {
				_ = sink.end()
			}
		}
		time.Sleep(farewell)
		synctest.Wait()
		if a := srv.addrs.list[0]; a.sessions != 0 || len(srv.conns) != 0 {
			t.Errorf("%d sessions, %d conns", a.sessions, len(srv.conns))
		}
		if opened, deleted := s.count("initialize"), s.count("DELETE"); deleted > opened {
			t.Errorf("%d opened, %d deleted", opened, deleted)
		}
	})
}

// TestCancelAfterReply: a late Cancel must not break a connection that serves
// somebody else by now.
func TestCancelAfterReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		synctest.Wait() // its connection is back
		first, call := c.start(list)
		must(t, first.end())
		synctest.Wait()
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			reply(w, r, "{}")
		})
		second, _ := c.start(tool)
		synctest.Wait()
		dials := len(w.dialled())
		call.Cancel(upstream.ErrCancelled)
		must(t, second.end())
		if len(w.dialled()) != dials || dials != 1 {
			t.Errorf("dials %v", w.dialled())
		}
		if s.count("notifications/cancelled") != 0 {
			t.Error("an answered call was cancelled")
		}
	})
}

func TestCancel(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) { stream(w); <-r.Context().Done() }
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061","reason":"r"}}`
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("tools/call", hang)
		sink, _ := c.start(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{}}`)
		synctest.Wait()
		must(t, c.send(cancel)) // the client's: as it is
		must(t, ignore(sink.end(), upstream.ErrCancelled))
		must(t, c.send(cancel)) // nothing open: not passed on
		if got := s.all("notifications/cancelled"); len(got) != 1 || got[0].body != cancel {
			t.Errorf("the server got %v", got)
		}

		a, _ := c.start(tool)
		b, call := c.start(tool)
		synctest.Wait()
		must(t, c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)) // which one?
		must(t, c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"2"}}`))
		if a.ended() || b.ended() {
			t.Error("a cancel that names no call, or two, has hit one")
		}
		call.Cancel(upstream.ErrTimeout) // Signalbox's own
		call.Cancel(upstream.ErrTimeout)
		must(t, ignore(b.end(), upstream.ErrTimeout))
		synctest.Wait()
		got := s.all("notifications/cancelled")
		if len(got) != 2 || !strings.Contains(got[1].body, `"requestId":2,"reason":"the server did not answer in time"`) {
			t.Errorf("the server got %v", got)
		}
		if a.ended() {
			t.Error("the other one ended")
		}
	})
}

func TestClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		a, b := open(t, srv), open(t, srv)
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		call, _ := a.start(tool)
		s.handle("initialize", func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		c, reply := begin(t, srv)
		synctest.Wait()
		srv.Close()
		for _, sink := range []*sink{a.events, b.events, c.events, call, reply} {
			must(t, ignore(sink.end(), upstream.ErrShutdown))
		}
		if n := s.count("DELETE"); n != 2 {
			t.Errorf("%d DELETEs", n)
		}
		if _, err := srv.Open(request(t, initialize), newSink(t), newSink(t)); err != upstream.ErrShutdown {
			t.Errorf("Open: %v", err)
		}
	})
}
