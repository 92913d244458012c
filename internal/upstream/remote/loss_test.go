package remote

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func reinitialize(cfg *Config) { cfg.Reinitialize = true }

// stateful makes a site know its own sessions only, as a server that restarts
// forgets them: forget gives it a new id.
func (s *site) stateful() {
	s.handle("tools/list", s.known(func(w http.ResponseWriter, r *http.Request) { reply(w, r, `{"from":"`+s.addr+`"}`) }))
	s.handle("tools/call", s.known(func(w http.ResponseWriter, r *http.Request) { reply(w, r, `{"from":"`+s.addr+`"}`) }))
	s.handle("logging/setLevel", s.known(func(w http.ResponseWriter, r *http.Request) { reply(w, r, `{}`) }))
	s.handle("resources/subscribe", s.known(func(w http.ResponseWriter, r *http.Request) {
		writeAs("text/event-stream", data(result(idOf(r), "{}")))(w, r)
	}))
	s.handle("resources/unsubscribe", s.known(func(w http.ResponseWriter, r *http.Request) { reply(w, r, `{}`) }))
	s.handle("notifications/x", s.known(status(202)))
	s.handle("notifications/initialized", s.known(status(202)))
}

func (s *site) known(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		known := r.Header.Get("Mcp-Session-Id") == s.session
		s.mu.Unlock()
		if !known {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32001,"message":"Session not found"}}`, idOf(r))
			return
		}
		h(w, r)
	}
}

func (s *site) forget(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = id
}

// TestLostEnds: with on-lost: end, 404 and a dead address end the session, and
// nothing more is sent for it.
func TestLostEnds(t *testing.T) {
	for name, lose := range map[string]func(s *site){
		"404": func(s *site) { s.forget("new") },
		"dead address": func(s *site) {
			s.setUp(false)
			time.Sleep(time.Minute) // no idle connection is left
		},
	} {
		for _, by := range []string{"call", "notification"} {
			t.Run(name+", found by a "+by, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world, s *site) {
					s.stateful()
					srv := w.server()
					defer srv.Close()
					c := open(t, srv)
					c.home()
					lose(s)
					if by == "call" {
						sink, _ := c.start(tool)
						sink.fails("session_lost", "initialize again")
					} else if err := c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`); err != upstream.ErrLost {
						t.Errorf("error %v", err)
					}
					must(t, ignore(c.events.end(), upstream.ErrLost))
					before := s.count("")
					if _, err := c.conn.Start(request(t, list), newSink(t)); err != upstream.ErrClosed {
						t.Errorf("Start: %v", err)
					}
					s.setUp(true)
					time.Sleep(time.Minute)
					if n := s.count(""); n != before || s.count("DELETE") != 0 || s.count("initialize") != 1 {
						t.Errorf("sent %d more", n-before)
					}
					if n := counts(srv)["http://"+s.addr]; n != 0 {
						t.Errorf("%d sessions", n)
					}
				})
			})
		}
	}
}

// TestLostEndsOthers: calls that are open when a session is lost end, too.
func TestLostEndsOthers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.stateful()
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("resources/read", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		other, _ := c.start(`{"jsonrpc":"2.0","id":9,"method":"resources/read","params":{"uri":"x"}}`)
		synctest.Wait()
		s.forget("new")
		sink, _ := c.start(tool)
		sink.fails("session_lost", "")
		other.fails("session_lost", "")
	})
}

// TestLostAgain: a server that answers 404 to the new session as well ends it.
func TestLostAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server(reinitialize)
		defer srv.Close()
		c := open(t, srv)
		s.handle("tools/call", status(404))
		sink, _ := c.start(tool)
		sink.fails("session_lost", "")
		must(t, ignore(c.events.end(), upstream.ErrLost))
		if s.count("initialize") != 2 || s.count("tools/call") != 2 {
			t.Errorf("initialized %d times, called %d times", s.count("initialize"), s.count("tools/call"))
		}
	})
}

// TestStatelessMoves: without a session id there is nothing to lose; the calls
// of a dead address go to another, whatever on-lost says.
func TestStatelessMoves(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		for _, s := range sites {
			s.session = ""
		}
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		first := w.sites[c.home()]
		first.setUp(false)
		time.Sleep(time.Minute)
		second := w.sites[c.home()]
		if second == first {
			t.Fatal("it did not move")
		}
		second.setUp(false)
		time.Sleep(time.Minute)
		must(t, c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`))
		third := w.sites[c.home()]
		third.setUp(false)
		time.Sleep(time.Minute)
		sink, _ := c.start(tool)
		sink.fails("unreachable", "")
		third.setUp(true)
		if got := c.home(); got != third.addr || c.events.ended() {
			t.Errorf("at %s", got)
		}
		inits := 0
		for _, s := range sites {
			inits += s.count("initialize")
			for _, r := range s.all("") {
				if r.header.Get("Mcp-Session-Id") != "" {
					t.Errorf("session %q", r.header.Get("Mcp-Session-Id"))
				}
			}
		}
		if total := counts(srv); inits != 1 || total["http://"+third.addr] != 1 {
			t.Errorf("initialized %d times, sessions %v", inits, total)
		}
	})
}

// TestKilledServer: a killed server's other connections, and its listening
// socket, live on for a moment. The next call must not fall for them: the
// client has had its error.
func TestKilledServer(t *testing.T) {
	for name, killed := range map[string]http.HandlerFunc{
		"before an answer": cutOff,
		"within an answer": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"jsonrpc"`)
			_ = http.NewResponseController(w).Flush()
			cutOff(w, r)
		},
		"within a stream": func(w http.ResponseWriter, r *http.Request) {
			stream(w)(data(`{"jsonrpc":"2.0","method":"notifications/x"}`))
			cutOff(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server(reinitialize)
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/call", killed)
				began := time.Now()
				sink, _ := c.start(tool)
				if err := sink.end(); err == nil || !strings.Contains(err.Error(), "outcome unknown") {
					t.Fatalf("got %v", err)
				}
				dialled := len(w.dialled())
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					if took := time.Since(began); took < vanishTime {
						t.Errorf("the next call came after %v", took)
					}
					reply(w, r, "{}")
				})
				c.call(tool)
				if n := len(w.dialled()); n != dialled+1 {
					t.Errorf("the next call dialled %d times", n-dialled)
				}
			})
		})
	}
}
