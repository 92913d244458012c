package remote

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`

func TestListen(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		events := make(chan string)
		left := make(chan struct{}, 10)
		s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			for {
				select {
				case e := <-events:
					if e == "" {
						return
					}
					send(e)
				case <-r.Context().Done():
					left <- struct{}{}
					return
				}
			}
		})
		synctest.Wait()
		if n := s.count("GET"); n != 0 {
			t.Fatalf("%d GETs before anybody listens", n)
		}
		c.listen(true)
		c.listen(true)
		events <- "id: a\n" + data(changed)
		if f := c.events.next(); string(f.Data) != changed || f.Relation != upstream.Loose {
			t.Errorf("got %s (%d)", f.Data, f.Relation)
		}
		events <- data(result("9", "{}")) + data("no json") + "event: x\n" + data(changed) + "id: b\ndata:\n\n"
		events <- "" // the server ends it
		events <- data(logMs)
		if got := c.events.frame(); got != logMs {
			t.Errorf("got %s", got)
		}
		c.listen(false)
		<-left
		synctest.Wait()
		if n := s.count("GET"); n != 2 {
			t.Fatalf("%d GETs", n)
		}
		time.Sleep(time.Minute)
		c.listen(true) // goes on where it was
		events <- data(changed)
		c.events.frame()
		got := s.all("GET")
		if len(got) != 3 || got[0].header.Get("Last-Event-Id") != "" || got[1].header.Get("Last-Event-Id") != "b" || got[2].header.Get("Last-Event-Id") != "b" {
			t.Errorf("GETs %v", got)
		}
		c.conn.End(upstream.ErrClosed)
		<-left
	})
}

// TestListenAsks: what the server asks there is answered, as on a call's stream.
func TestListenAsks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
			stream(w)(data(ask))
			<-r.Context().Done()
		})
		c.listen(true)
		if got := c.events.frame(); got != ask {
			t.Errorf("got %s", got)
		}
		answer := `{"jsonrpc":"2.0","id":"q1","result":{}}`
		must(t, c.send(answer))
		if got := s.all("response"); len(got) != 1 || got[0].body != answer {
			t.Errorf("the server got %v", got)
		}
	})
}

// TestListenProgress: progress of a call that comes on the session's stream is
// that call's, and starts its time anew.
func TestListenProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("tools/call", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			time.Sleep(50 * time.Second)
			send(data(prog))
			send(data(strings.Replace(prog, `"p"`, `"other"`, 1)))
			<-r.Context().Done()
		})
		c.listen(true)
		began := time.Now()
		sink, _ := c.start(tool)
		if f := sink.next(); string(f.Data) != prog || f.Relation != upstream.Own {
			t.Errorf("got %s", f.Data)
		}
		if got := c.events.frame(); !strings.Contains(got, "other") {
			t.Errorf("got %s", got)
		}
		if err := sink.end(); err != upstream.CallTimeout || time.Since(began) != 110*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestListenRefused: 405 is taken for an answer; what may pass is asked again.
func TestListenRefused(t *testing.T) {
	tests := []struct {
		name        string
		answer      http.HandlerFunc
		first, then int // GETs in ten minutes; after the client has listened anew, in all
	}{
		{"405", status(405), 1, 1},
		{"404", status(404), 1, 2},
		{"401", status(401), 1, 2},
		{"501", status(501), 1, 2},
		{"400", status(400), 2, 4},
		{"200 of another type", writeAs("text/plain", "hello"), 1, 2},
		{"200 JSON", writeAs("application/json", "{}"), 1, 2},
		{"202", status(202), 1, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("GET", tt.answer)
				c.listen(true)
				time.Sleep(10 * time.Minute)
				if n := s.count("GET"); n != tt.first {
					t.Errorf("%d GETs", n)
				}
				c.listen(false)
				c.listen(true)
				time.Sleep(10 * time.Minute)
				if n := s.count("GET"); n != tt.then {
					t.Errorf("%d GETs after listening anew", n)
				}
				c.call(list)
			})
		})
	}
}

// TestListenOldID: an event id that the server no longer knows is given up.
func TestListenOldID(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Last-Event-Id") != "":
				w.WriteHeader(400)
			case s.count("GET") == 1:
				stream(w)("id: old\n" + data(changed))
			default:
				stream(w)(data(logMs))
				<-r.Context().Done()
			}
		})
		c.listen(true)
		c.events.frame()
		if got := c.events.frame(); got != logMs {
			t.Errorf("got %s", got)
		}
	})
}

// TestListenOversize: an event above the limit is not fetched again and again.
func TestListenOversize(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("GET", func(w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			if s.count("GET") == 1 {
				send("id: 1\n" + data(changed))
			}
			if r.Header.Get("Last-Event-Id") != "" || s.count("GET") == 1 {
				send("id: 2\ndata: %s\n\n", strings.Repeat("x", 2<<20))
				return
			}
			send(data(logMs))
			<-r.Context().Done()
		})
		c.listen(true)
		c.events.frame()
		if got := c.events.frame(); got != logMs {
			t.Errorf("got %s", got)
		}
		if n := s.count("GET"); n != 2 {
			t.Errorf("%d GETs", n)
		}
	})
}

// TestListenBackoff: a server that fails is asked ever more seldom, and one that
// keeps its stream for a while at once.
func TestListenBackoff(t *testing.T) {
	for name, tt := range map[string]struct {
		answer      http.HandlerFunc
		least, most int
	}{
		"500":   {status(500), 15, 45},
		"429":   {status(429), 15, 45},
		"reset": {cutOff, 15, 45},
		"cut off every 30 s": {func(w http.ResponseWriter, r *http.Request) {
			stream(w)
			select {
			case <-time.After(30 * time.Second):
			case <-r.Context().Done():
			}
		}, 28, 30},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("GET", tt.answer)
				c.listen(true)
				time.Sleep(15 * time.Minute)
				if n := s.count("GET"); n < tt.least || n > tt.most {
					t.Errorf("%d GETs in 15 minutes", n)
				}
			})
		})
	}
}
