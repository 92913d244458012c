package remote

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestTimeouts: silence ends a call in time, and the server is told.
func TestTimeouts(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tests := []struct {
		name   string
		call   string
		answer http.HandlerFunc
		want   error
		after  time.Duration
	}{
		{"no head", tool, hang, upstream.CallTimeout, time.Minute},
		{"head and no body", tool, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			hang(w, r)
		}, upstream.CallTimeout, time.Minute},
		{"silent stream", tool, func(w http.ResponseWriter, r *http.Request) { stream(w); hang(w, r) }, upstream.CallTimeout, time.Minute},
		{"comments are no progress", tool, ticking(": x\n\n"), upstream.CallTimeout, time.Minute},
		{"log messages are no progress", tool, ticking(data(logMs)), upstream.CallTimeout, time.Minute},
		{"progress, up to the limit", tool, ticking(data(prog)), upstream.CallLimit, time.Hour},
		{"tasks/result blocks", `{"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"t"}}`, hang, upstream.CallLimit, time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/call", tt.answer)
				s.handle("tasks/result", tt.answer)
				// A server that hangs does so with cancels, too: they hold nobody up.
				s.handle("notifications/cancelled", hang)
				began := time.Now()
				sink, _ := c.start(tt.call)
				if err := sink.end(); err != tt.want || time.Since(began) != tt.after {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				synctest.Wait()
				if got := s.all("notifications/cancelled"); len(got) != 1 || !strings.Contains(got[0].body, `"requestId":2,`) {
					t.Errorf("cancels: %v", got)
				}
			})
		})
	}
}

// ticking sends an event every 20 seconds.
func ticking(event string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		send := stream(w)
		for {
			select {
			case <-time.After(20 * time.Second):
				send(event)
			case <-r.Context().Done():
				return
			}
		}
	}
}

func TestStartTimeout(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		s.handle("initialize", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		began := time.Now()
		c, reply := begin(t, srv)
		reply.fails("timeout", "--start-timeout")
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("took %v", took)
		}
		synctest.Wait()
		if n := s.count("notifications/cancelled"); n != 0 {
			t.Error("initialize must not be cancelled")
		}
		c.conn.End(upstream.ErrClosed)
	})
}

// TestOwed: while the client owes the server an answer, the clocks of the
// session's calls stand still.
func TestOwed(t *testing.T) {
	tests := []struct {
		name   string
		settle func(c *client, events chan<- string)
	}{
		{"answered", func(c *client, _ chan<- string) {
			must(c.t, c.send(`{"jsonrpc":"2.0","id":"q\u0031","result":{}}`))
		}},
		{"taken back by the server", func(_ *client, events chan<- string) {
			events <- data(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}`)
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				events := make(chan string, 1)
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					send := stream(w)
					time.Sleep(20 * time.Second)
					send(data(ask))
					for {
						select {
						case e := <-events:
							send(e)
						case <-r.Context().Done():
							return
						}
					}
				})
				s.handle("tools/list", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
				asking, _ := c.start(tool)
				silent, _ := c.start(list) // waits for its head
				asking.next()
				time.Sleep(30 * time.Minute)
				if asking.ended() || silent.ended() {
					t.Fatal("a call ended while the client was thinking")
				}
				tt.settle(c, events)
				synctest.Wait()
				began := time.Now()
				for _, sink := range []*sink{asking, silent} {
					if err := sink.end(); err != upstream.CallTimeout || time.Since(began) != 40*time.Second {
						t.Errorf("%v after %v, of a minute 20 s were used up", err, time.Since(began))
					}
				}
			})
		})
	}
}

// TestOwedByNobody: what no client has read stops no clock, and the limit
// counts always.
func TestOwedByNobody(t *testing.T) {
	asks := func(w http.ResponseWriter, r *http.Request) { stream(w)(data(ask)); <-r.Context().Done() }
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c, reply := beginWith(t, srv, newSink(t), newSink(t).waiting())
		must(t, reply.end())
		s.handle("tools/call", asks)
		began := time.Now()
		sink, _ := c.startWith(tool, newSink(t).refusing())
		if err := sink.end(); err != upstream.CallTimeout || time.Since(began) != time.Minute {
			t.Errorf("waiting: %v after %v", err, time.Since(began))
		}
		began = time.Now()
		sink, _ = c.start(tool)
		if err := sink.end(); err != upstream.CallLimit || time.Since(began) != time.Hour {
			t.Errorf("owed: %v after %v", err, time.Since(began))
		}
		// With the call its question has gone: the next one has its usual time.
		s.handle("tools/call", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		began = time.Now()
		sink, _ = c.start(tool)
		if err := sink.end(); err != upstream.CallTimeout || time.Since(began) != time.Minute {
			t.Errorf("after: %v after %v", err, time.Since(began))
		}
	})
}

// waiting takes what waits and nothing else, as a session without a reader.
func (s *sink) waiting() *sink {
	s.takes = func(f upstream.Frame) upstream.Verdict {
		if f.Relation == upstream.Waiting {
			return upstream.Taken
		}
		return upstream.NoTaker
	}
	return s
}
