package remote

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestResume: a stream that ends before its answer goes on from the last event
// id, when the server wants it to.
func TestResume(t *testing.T) {
	for name, brk := range map[string]http.HandlerFunc{"closed": func(http.ResponseWriter, *http.Request) {}, "cut off": cutOff} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					send := stream(w)
					send("id: 5\nretry: 3000\ndata:\n\n")
					send("id: 6\n" + data(prog))
					brk(w, r)
				})
				s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
					send := stream(w)
					if r.Header.Get("Last-Event-Id") == "6" {
						send("id: 7\n" + data(logMs))
						brk(w, r)
						return
					}
					send(data(result("2", "{}")))
				})
				began := time.Now()
				sink, _ := c.start(tool)
				must(t, sink.end())
				for _, want := range []string{prog, logMs, result("2", "{}")} {
					if got := sink.frame(); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				}
				if took := time.Since(began); took < 6*time.Second || took > 9*time.Second {
					t.Errorf("took %v", took)
				}
				got := s.all("GET")
				if len(got) != 2 || got[0].header.Get("Last-Event-Id") != "6" || got[1].header.Get("Last-Event-Id") != "7" {
					t.Fatalf("GETs %v", got)
				}
				for _, r := range got {
					if r.header.Get("Mcp-Session-Id") != s.session || r.header.Get("Accept") != "text/event-stream" || r.uri != "/base/mcp?tenant=a%2Fb" {
						t.Errorf("GET %+v", r)
					}
				}
				if n := s.count("tools/call"); n != 1 {
					t.Errorf("the tool was called %d times", n)
				}
			})
		})
	}
}

// TestResumeInitialize: the session id was in the head of the first answer.
func TestResumeInitialize(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		s.handle("initialize", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Mcp-Session-Id", "early")
			stream(w)("id: 1\ndata:\n\n")
		})
		s.handle("GET", writeAs("text/event-stream", data(result("0", `{"protocolVersion":"2025-11-25"}`))))
		c := open(t, srv)
		c.call(list)
		for _, what := range []string{"GET", "tools/list"} {
			if got := s.all(what)[0].header.Get("Mcp-Session-Id"); got != "early" {
				t.Errorf("%s of session %q", what, got)
			}
		}
	})
}

func TestResumeFails(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		part   string
		most   int // GETs
	}{
		{"405", status(405), "HTTP 405", 1},
		{"400", status(400), "HTTP 400", 1},
		{"404", status(404), "lost the session", 1},
		{"202", status(202), "HTTP 202", 1},
		{"JSON", writeAs("application/json", result("2", "{}")), "HTTP 200", 1},
		{"500", status(500), "could not be resumed", resumeTries},
		{"reset", cutOff, "could not be resumed", resumeTries + 1}, // the first one on a connection that had been idle
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server(func(cfg *Config) { cfg.CallTimeout = time.Hour })
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/call", writeAs("text/event-stream", "id: 5\ndata:\n\n"))
				s.handle("GET", tt.answer)
				sink, _ := c.start(tool)
				err := sink.end()
				if e := upstream.RPCError(err); e.Reason != "stream_ended" || !strings.Contains(e.Message, tt.part) || !strings.Contains(e.Message, "outcome unknown") {
					t.Errorf("error %v", err)
				}
				if n := s.count("GET"); n != tt.most || s.count("tools/call") != 1 {
					t.Errorf("%d GETs, want %d", n, tt.most)
				}
			})
		})
	}
}

// TestResumeAtARestart: an address that refuses connections has some seconds to
// come back. Then the call is over, and the session may go on elsewhere.
func TestResumeAtARestart(t *testing.T) {
	for name, back := range map[string]time.Duration{"comes back": 2 * time.Second, "stays away": 0} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server(func(cfg *Config) { cfg.CallTimeout = time.Hour })
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					stream(w)("id: 5\ndata:\n\n")
					s.setUp(false)
					cutOff(w, r)
				})
				s.handle("GET", writeAs("text/event-stream", data(result("2", "{}"))))
				began := time.Now()
				sink, _ := c.start(tool)
				if back > 0 {
					time.Sleep(back)
					s.setUp(true)
					must(t, sink.end())
				} else if e := upstream.RPCError(sink.end()); e.Reason != "stream_ended" {
					t.Errorf("error %v", e)
				}
				if took := time.Since(began); took > 12*time.Second {
					t.Errorf("the call ended after %v", took)
				}
			})
		})
	}
}

// TestNoStorm: a server that closes each stream at once, with what it says of
// waiting, is not asked more than ten times a minute.
func TestNoStorm(t *testing.T) {
	for name, event := range map[string]string{
		"nothing": ": x\n\n", "priming": "id: %d\ndata:\n\n", "short retry": "retry: 1\nid: %d\ndata:\n\n", "zero retry": "retry: 0\nid: %d\ndata:\n\n",
	} {
		for _, kind := range []string{"call", "listener"} {
			if kind == "call" && name == "nothing" {
				continue // without an id there is no coming back
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world, s *site) {
					srv := w.server(func(cfg *Config) { cfg.CallTimeout = time.Hour })
					defer srv.Close()
					c := open(t, srv)
					var n atomic.Int32
					answer := func(w http.ResponseWriter, r *http.Request) {
						send := stream(w)
						if strings.Contains(event, "%d") {
							send(event, n.Add(1))
						} else {
							send(event)
						}
					}
					s.handle("tools/call", answer)
					s.handle("GET", answer)
					var sink *sink
					if kind == "call" {
						sink, _ = c.start(tool)
					} else {
						c.listen(true)
					}
					time.Sleep(time.Minute)
					if got := s.count("GET"); got < 4 || got > 10 {
						t.Errorf("%d GETs", got)
					}
					time.Sleep(20 * time.Minute)
					if got := s.count("GET"); got < 30 || got > 60 {
						t.Errorf("%d GETs in 21 minutes", got)
					}
					srv.addrs.mu.Lock()
					pool := srv.addrs.list[0].pool
					srv.addrs.mu.Unlock()
					if open, idle := pool.Stats(); open > 2 || idle > 2 {
						t.Errorf("%d connections are open, %d idle", open, idle)
					}
					if sink != nil && sink.ended() {
						t.Error("the call ended")
					}
				})
			})
		}
	}
}

// TestPolling: a server that closes on purpose and says when to come back
// (SEP-1699) is polled as it wants, for as long as the call has time.
func TestPolling(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server(func(cfg *Config) { cfg.CallTimeout = 10 * time.Minute })
		defer srv.Close()
		c := open(t, srv)
		var n int
		answer := func(w http.ResponseWriter, r *http.Request) {
			if n++; n == 200 {
				writeAs("text/event-stream", data(result("2", "{}")))(w, r)
				return
			}
			stream(w)("id: %d\nretry: 2000\ndata:\n\n", n)
		}
		s.handle("tools/call", answer)
		s.handle("GET", answer)
		began := time.Now()
		sink, _ := c.start(tool)
		must(t, sink.end())
		if took := time.Since(began); took < 398*time.Second || took > 500*time.Second {
			t.Errorf("took %v", took)
		}

		n = 1000 // and never an answer
		began = time.Now()
		sink, _ = c.start(tool)
		if err := sink.end(); err != upstream.CallTimeout || time.Since(began) != 10*time.Minute {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
	})
}

// TestCancelWhileResuming: nothing of a call is left when it was cancelled in
// the pause between two streams.
func TestCancelWhileResuming(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("tools/call", writeAs("text/event-stream", "id: 5\nretry: 20000\ndata:\n\n"))
		sink, call := c.start(tool)
		synctest.Wait()
		call.Cancel(upstream.ErrCancelled)
		must(t, ignore(sink.end(), upstream.ErrCancelled))
		time.Sleep(time.Minute)
		if n := s.count("GET"); n != 0 {
			t.Errorf("%d GETs", n)
		}
	})
}

// TestManyEvents: the order of a stream is the order of its frames.
func TestManyEvents(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("tools/call", func(w http.ResponseWriter, _ *http.Request) {
			send := stream(w)
			for i := range 1000 {
				send(data(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}`), i)
			}
			send(data(result("2", "{}")))
		})
		sink, _ := c.start(tool)
		for i := range 1000 {
			if got, want := sink.frame(), fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%d}}`, i); got != want {
				t.Fatalf("got %s, want %s", got, want)
			}
		}
		must(t, sink.end())
	})
}
