package remote

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestAskAddresses: each request goes to an address that is up and has least to do.
func TestAskAddresses(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		two := w.site("10.0.0.2:80")
		w.name("mcp.test", "10.0.0.1", "10.0.0.2")
		release := make(chan struct{})
		hang := func(w http.ResponseWriter, r *http.Request) { <-release; reply(w, r, `{}`) }
		s.handle("tools/call", hang)
		two.handle("tools/call", hang)
		a, _ := lone(t, srv, askTool)
		b, _ := lone(t, srv, askTool)
		synctest.Wait()
		if s.count("tools/call") != 1 || two.count("tools/call") != 1 {
			t.Errorf("%d and %d calls", s.count("tools/call"), two.count("tools/call"))
		}
		close(release)
		must(t, a.end())
		must(t, b.end())
		s.setUp(false)
		srv.addrs.list[0].pool.Doubt() // no idle connection is left
		for range 4 {
			asked(t, srv, askTool)
		}
		if s.count("tools/call") != 1 || two.count("tools/call") != 5 {
			t.Errorf("one is down: %d and %d calls", s.count("tools/call"), two.count("tools/call"))
		}
		two.setUp(false)
		srv.addrs.list[1].pool.Doubt()
		sink, _ := lone(t, srv, askTool)
		sink.fails("unreachable", "cannot be reached")
		s.setUp(true)
		asked(t, srv, askTool)
	})
}

// TestAskFindsNewAddresses: the names are looked up anew, and nobody waits for it.
func TestAskFindsNewAddresses(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		w.name("mcp.test")
		sink, _ := lone(t, srv, askList)
		sink.fails("unreachable", "cannot be found")
		w.name("mcp.test", "10.0.0.1")
		asked(t, srv, askList)
		two := w.site("10.0.0.2:80")
		w.name("mcp.test", "10.0.0.2")
		time.Sleep(resolveEvery)
		began := time.Now()
		asked(t, srv, askList)
		if took := time.Since(began); took > 0 {
			t.Errorf("a request waited for %v", took)
		}
		time.Sleep(2 * time.Second)
		asked(t, srv, askList)
		if s.count("") != 2 || two.count("") != 1 {
			t.Errorf("%d and %d requests", s.count(""), two.count(""))
		}
	}, slowNames)
}

// slowNames makes each look at the names take a second.
func slowNames(cfg *Config) {
	resolve := cfg.resolve
	cfg.resolve = func(ctx context.Context, host string) ([]string, error) {
		time.Sleep(time.Second)
		return resolve(ctx, host)
	}
}

// TestAskOnStaleConnection: what an idle connection that is closed may have taken is
// repeated where that does nothing.
func TestAskOnStaleConnection(t *testing.T) {
	for raw, repeats := range map[string]bool{askList: true, askTool: false, askListen: true} {
		alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
			asked(t, srv, strings.Replace(askList, `"tools/list"`, `"prompts/list"`, 1))
			n := 0
			for _, what := range []string{"tools/list", "tools/call", "subscriptions/listen"} {
				s.handle(what, func(w http.ResponseWriter, r *http.Request) {
					if n++; n == 1 {
						cutOff(w, r)
					}
					reply(w, r, `{}`)
				})
			}
			sink, _ := lone(t, srv, raw)
			want := 1
			if repeats {
				want = 2
				must(t, sink.end())
			} else {
				sink.fails("outcome_unknown", "may have run")
			}
			if n != want {
				t.Errorf("%s came %d times", raw, n)
			}
		})
	}
}

// TestAskBroken: a stream that ends too soon is not resumed, and its request not
// repeated. What comes next waits until the server is gone or there to stay.
func TestAskBroken(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"stream ends": func(w http.ResponseWriter, _ *http.Request) {
			stream(w)("retry: 1\nid: 1\ndata:\n\nid: 2\n" + data(prog))
		},
		"stream breaks":  func(w http.ResponseWriter, r *http.Request) { stream(w)("id: 2\n" + data(prog)); cutOff(w, r) },
		"no head at all": cutOff,
	} {
		for _, method := range []string{"tools/call", "subscriptions/listen"} {
			t.Run(name+", "+method, func(t *testing.T) {
				alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
					s.handle(method, answer)
					raw, reason := askTool, "stream_ended"
					if method == "subscriptions/listen" {
						raw = askListen
					}
					if name == "no head at all" {
						reason = "outcome_unknown"
					}
					sink, _ := lone(t, srv, raw)
					err := sink.end()
					if e := upstream.RPCError(err); e.Reason != reason {
						t.Errorf("error %v (%s), want %s", err, e.Reason, reason)
					}
					began := time.Now()
					asked(t, srv, askList)
					if took := time.Since(began); took != vanishTime {
						t.Errorf("the next one waited for %v", took)
					}
					if s.count("GET") != 0 || s.count(method) != 1 || s.count("") != 2 {
						t.Errorf("sent: %v", s.all(""))
					}
				}, reinitialize)
			})
		}
	}
}

// TestAskWithoutToken: the server was not asked, and nowhere else is it otherwise.
func TestAskWithoutToken(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		sink, _ := lone(t, srv, askTool)
		sink.fails("unauthorized", "no access token")
		if n := s.count(""); n != 0 {
			t.Errorf("%d requests", n)
		}
	}, func(cfg *Config) { cfg.Authorizer = noToken{} })
}

type noToken struct{}

func (noToken) Token(context.Context) (string, error) { return "", errors.New("the issuer is down") }
func (noToken) Refused(string)                        {}

// TestAskGoesOnWhereItBegan: a request that goes on with something goes to the
// address that has it, while that is one of the server's.
func TestAskGoesOnWhereItBegan(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		two := w.site("10.0.0.2:80")
		w.name("mcp.test", "10.0.0.1", "10.0.0.2")
		to := func(address string) {
			t.Helper()
			sink := newSink(t)
			req := request(t, askTool)
			req.Address = address
			_, err := srv.Ask(req, sink)
			must(t, err)
			must(t, sink.end())
		}
		asked(t, srv, askTool)
		before := s.count("tools/call") + two.count("tools/call")
		one := s.count("tools/call")
		for range 5 {
			to("http://10.0.0.2:80")
		}
		if s.count("tools/call") != one || two.count("tools/call") != before-one+5 {
			t.Errorf("%d and %d calls", s.count("tools/call"), two.count("tools/call"))
		}
		to("http://10.0.0.9:80") // none of the server's: any will do
		if got := s.count("tools/call") + two.count("tools/call"); got != before+6 {
			t.Errorf("%d calls, want %d", got, before+6)
		}
	})
}
