package remote

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestDetect: only 400, 404 and 405 to the first initialize lead to one GET, and
// what was found out is remembered.
func TestDetect(t *testing.T) {
	for _, code := range []int{400, 404, 405} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				o := s.old("/m")
				old := s.srv.Handler
				s.srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost && strings.HasPrefix(r.RequestURI, "/base") {
						_, _ = io.Copy(io.Discard, r.Body)
						s.mu.Lock()
						s.seen = append(s.seen, seen{what: "refused"})
						s.mu.Unlock()
						http.Error(w, "<html>", code)
						return
					}
					old.ServeHTTP(w, r)
				})
				srv := w.withLegacy()
				defer srv.Close()
				c, init := begin(t, srv)
				early, _ := c.start(list) // waits, and goes to the other transport
				c.listen(true)
				c.initialized()
				must(t, init.end())
				must(t, early.end())
				c.listen(false)
				if got := early.frame(); got != result("1", `{"did":"tools/list"}`) {
					t.Errorf("got %s", got)
				}
				c.call(tool)
				open(t, srv)
				if s.count("refused") != 1 || s.count("GET") != 2 || o.streams != 2 {
					t.Errorf("%d refused POSTs, %d GETs", s.count("refused"), s.count("GET"))
				}
				c.conn.End(upstream.ErrClosed)
				must(t, ignore(c.events.end(), upstream.ErrClosed))
				synctest.Wait()
				if n := counts(srv)["http://"+s.addr]; n != 1 || len(srv.conns) != 0 {
					t.Errorf("%d sessions, %d conns", n, len(srv.conns))
				}
			})
		})
	}
}

func TestDetectFails(t *testing.T) {
	tests := []struct {
		name         string
		post         http.HandlerFunc
		reason, part string
		gets         int
	}{
		{"400, and no stream", status(400), "http_status", "HTTP 400", 1},
		{"404, and no stream", status(404), "http_status", "HTTP 404", 1},
		{"401", status(401), "unauthorized", "", 0},
		{"403", status(403), "unauthorized", "", 0},
		{"500", status(500), "http_status", "HTTP 500", 0},
		{"502", status(502), "http_status", "HTTP 502", 0},
		{"429", status(429), "server_busy", "", 0},
		{"301", status(301), "redirect", "", 0},
		{"reset", cutOff, "outcome_unknown", "", 0},
		{"HTML", writeAs("text/html", "x"), "bad_answer", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				s.handle("initialize", tt.post)
				srv := w.withLegacy()
				defer srv.Close()
				c, reply := begin(t, srv)
				reply.fails(tt.reason, tt.part)
				synctest.Wait()
				if n := s.count("GET"); n != tt.gets {
					t.Errorf("%d GETs", n)
				}
				c.conn.End(upstream.ErrClosed)
				_ = c.events.end()
				// When the server is as it should be, nothing stands in its way.
				s.handle("initialize", nil)
				open(t, srv)
				if srv.kind != Streamable {
					t.Error("not remembered")
				}
			})
		})
	}
}

// TestNoSecondGuess: a server that has spoken Streamable HTTP is not taken for
// an old one because it refuses a session; nor is one that is configured so.
func TestNoSecondGuess(t *testing.T) {
	for name, change := range map[string]func(*Config){"detected": func(*Config) {}, "configured": func(cfg *Config) { cfg.Kind = Streamable }} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.withLegacy(change)
				defer srv.Close()
				open(t, srv)
				s.handle("initialize", status(400))
				_, reply := begin(t, srv)
				reply.fails("http_status", "HTTP 400")
				if n := s.count("GET"); n != 0 {
					t.Errorf("%d GETs", n)
				}
			})
		})
	}
}

// TestRelearn: a server that no longer speaks HTTP+SSE is looked at anew.
func TestRelearn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.old("/m")
		srv := w.withLegacy()
		defer srv.Close()
		open(t, srv)
		s.srv.Handler = s // it was upgraded
		_, reply := begin(t, srv)
		reply.fails("start_failed", "HTTP 405")
		c := open(t, srv)
		if got := c.home(); got != s.addr {
			t.Errorf("at %s", got)
		}
	})
}
