package remote

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestOldServerFailsToStart(t *testing.T) {
	for name, tt := range map[string]struct {
		get   http.HandlerFunc
		part  string
		after time.Duration
	}{
		"404":               {status(404), "HTTP 404", 0},
		"401":               {status(401), "credentials of signalbox", 0},
		"JSON":              {writeAs("application/json", "{}"), "instead of an event stream", 0},
		"ended":             {writeAs("text/event-stream", ": x\n\n"), "ended before it began", 0},
		"reset":             {cutOff, "ended before it began", 0},
		"no endpoint event": {func(w http.ResponseWriter, r *http.Request) { stream(w); <-r.Context().Done() }, "", 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				s.handle("GET", tt.get)
				srv := w.withLegacy(isSSE)
				defer srv.Close()
				began := time.Now()
				c, reply := begin(t, srv)
				reply.fails("start_failed", tt.part)
				if took := time.Since(began); took != tt.after {
					t.Errorf("took %v", took)
				}
				if c.events.end() == nil {
					t.Error("the events ended without a reason")
				}
				synctest.Wait()
				if n := counts(srv)["http://"+s.addr]; n != 0 || s.count("") != 1 {
					t.Errorf("%d sessions, %d requests", n, s.count(""))
				}
			})
		})
	}
}

// TestOldServerElsewhere: an address that cannot be reached is no reason to fail.
func TestOldServerElsewhere(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		for _, s := range sites {
			s.old("/m")
			s.setUp(s == sites[1])
		}
		srv := w.withLegacy(isSSE)
		defer srv.Close()
		for range 3 {
			open(t, srv)
		}
		if n := counts(srv)["http://10.0.0.2:80"]; n != 3 {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestOldServerStreamEnds: with its stream the session is over, and every call
// says so.
func TestOldServerStreamEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		o := s.old("/m")
		srv := w.withLegacy(isSSE)
		defer srv.Close()
		c := open(t, srv)
		c.initialized()
		o.handle("tools/call", func(w http.ResponseWriter, _ string) { w.WriteHeader(202) })
		sink, _ := c.start(tool)
		synctest.Wait()
		close(o.end)
		sink.fails("process_exited", "its event stream ended")
		if err := c.events.end(); err == nil || !strings.Contains(err.Error(), "its event stream ended") {
			t.Errorf("events: %v", err)
		}
		if _, err := c.conn.Start(request(t, list), newSink(t)); err == nil {
			t.Error("a call after the end")
		}
		synctest.Wait()
		if open, _ := srv.addrs.list[0].pool.Stats(); open > 2 {
			t.Errorf("%d connections", open)
		}
	})
}

func TestOldServerOversize(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		o := s.old("/m")
		srv := w.withLegacy(isSSE)
		defer srv.Close()
		c := open(t, srv)
		c.initialized()
		o.handle("tools/call", func(w http.ResponseWriter, id string) {
			w.WriteHeader(202)
			o.say("%s", data(result(id, `"`+strings.Repeat("x", 2<<20)+`"`)))
		})
		sink, _ := c.start(tool)
		sink.fails("process_exited", "(--max-message)")
	})
}

// TestOldServerPosts: what the server says to a POST other than yes is the
// answer to its request.
func TestOldServerPosts(t *testing.T) {
	tests := []struct {
		name         string
		answer       func(w http.ResponseWriter, id string)
		reason, part string
	}{
		{"500", func(w http.ResponseWriter, _ string) { w.WriteHeader(500) }, "http_status", "HTTP 500"},
		{"404", func(w http.ResponseWriter, _ string) { w.WriteHeader(404) }, "http_status", "HTTP 404"},
		{"400 text", func(w http.ResponseWriter, _ string) { http.Error(w, "session is gone", 400) }, "http_status", "session is gone"},
		{"429", func(w http.ResponseWriter, _ string) { w.Header().Set("Retry-After", "3"); w.WriteHeader(429) }, "server_busy", "wait 3"},
		{"elsewhere", func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "http://evil.test/")
			w.WriteHeader(307)
		}, "redirect", "evil.test"},
		{"cut off", func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) }, "outcome_unknown", "outcome unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				o := s.old("/m")
				srv := w.withLegacy(isSSE)
				defer srv.Close()
				c := open(t, srv)
				c.initialized()
				o.handle("tools/call", tt.answer)
				sink, _ := c.start(`{"jsonrpc":"2.0","id":"\u0041","method":"tools/call","params":{}}`)
				must(t, sink.end())
				got := sink.frame()
				if !strings.Contains(got, `"id":"\u0041"`) || !strings.Contains(got, `"reason":"`+tt.reason+`"`) || !strings.Contains(got, tt.part) {
					t.Errorf("got %s", got)
				}
				if n := s.count("tools/call"); n != 1 {
					t.Errorf("posted %d times", n)
				}
				c.call(list) // the session lives
			})
		})
	}
}

// TestOldServerSlowPosts: some servers answer a POST only when the tool has
// ended. Nothing waits for that: not other calls, not answers to the server.
func TestOldServerSlowPosts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		o := s.old("/m")
		srv := w.withLegacy(isSSE)
		defer srv.Close()
		c := open(t, srv)
		c.initialized()
		release := make(chan struct{})
		o.handle("tools/call", func(w http.ResponseWriter, id string) {
			<-release
			o.say("%s", data(result(id, "{}")))
			w.WriteHeader(200)
		})
		var sinks []*sink
		for i := range 100 {
			sink, _ := c.start(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{}}`, i))
			sinks = append(sinks, sink)
		}
		began := time.Now()
		c.call(list)
		o.say(data(ask))
		if got := sinks[99].frame(); got != ask { // the newest call that reads
			t.Errorf("got %s", got)
		}
		must(t, c.send(`{"jsonrpc":"2.0","id":"q1","result":{}}`))
		synctest.Wait()
		if took := time.Since(began); took > 0 || s.count("response") != 1 {
			t.Errorf("took %v", took)
		}
		close(release)
		for _, sink := range sinks {
			must(t, sink.end())
		}
	})
}

// TestOldServerOrder: messages arrive in the order in which they were sent.
func TestOldServerOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		o := s.old("/m")
		srv := w.withLegacy(isSSE)
		defer srv.Close()
		c := open(t, srv)
		c.initialized()
		o.handle("tools/call", func(w http.ResponseWriter, _ string) { w.WriteHeader(202) })
		for range 100 {
			_, call := c.start(tool)
			call.Cancel(upstream.ErrCancelled)
		}
		synctest.Wait()
		calls, cancels := 0, 0
		for _, r := range s.all("") {
			switch r.what {
			case "tools/call":
				calls++
			case "notifications/cancelled":
				if cancels++; cancels > calls {
					t.Fatal("a cancel came before its call")
				}
			}
		}
		if calls != 100 || cancels != 100 {
			t.Errorf("%d calls, %d cancels", calls, cancels)
		}
	})
}

// TestOldServerEndDropsPosts: with the session its POSTs are given up.
func TestOldServerEndDropsPosts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		o := s.old("/m")
		srv := w.withLegacy(isSSE)
		defer srv.Close()
		c := open(t, srv)
		c.initialized()
		hang := make(chan struct{})
		o.handle("tools/call", func(http.ResponseWriter, string) { <-hang })
		sink, _ := c.start(tool)
		synctest.Wait()
		c.conn.End(upstream.ErrClosed)
		must(t, ignore(sink.end(), upstream.ErrClosed))
		synctest.Wait()
		if open, idle := srv.addrs.list[0].pool.Stats(); open != idle {
			t.Errorf("%d connections are open, %d idle", open, idle)
		}
		close(hang)
	})
}

// TestPipeBounds: a server that takes no POST is not queued for without end.
func TestPipeBounds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.handle("GET", func(w http.ResponseWriter, r *http.Request) { stream(w); <-r.Context().Done() })
		srv := w.server()
		defer srv.Close()
		p, err := srv.OpenPipe(&handler{exit: make(chan child.ExitInfo, 1)}, nil)
		must(t, err)
		for range pipeOpen {
			_, err := p.Write([]byte(list))
			must(t, err)
		}
		if _, err := p.Write([]byte(list)); err != child.ErrBusy {
			t.Errorf("error %v", err)
		}
		big := []byte(`{"jsonrpc":"2.0","method":"x","params":["` + strings.Repeat("x", pipeBytes/4) + `"]}`)
		for range 3 {
			_, err := p.Write(big)
			must(t, err)
		}
		if _, err := p.Write(big); err != child.ErrBusy {
			t.Errorf("error %v", err)
		}
		if _, err := p.Write([]byte("no json")); err == nil {
			t.Error("no error")
		}
		p.Stop()
		p.Stop()
		if _, err := p.Write([]byte(list)); err != child.ErrGone {
			t.Errorf("error %v", err)
		}
		if info := <-p.h.(*handler).exit; info.Err != nil || !info.StdoutClosed {
			t.Errorf("exit %+v", info)
		}
		if p.line([]byte("{}")); p.h.(*handler).lines != 0 {
			t.Error("a line after Exit")
		}
		srv.Close()
		if _, err := srv.OpenPipe(&handler{}, nil); err != upstream.ErrShutdown {
			t.Errorf("error %v", err)
		}
	})
}

type handler struct {
	exit  chan child.ExitInfo
	lines int
}

func (h *handler) Line([]byte)                  { h.lines++ }
func (*handler) Oversize([]byte, []byte, int64) {}
func (h *handler) Exit(info child.ExitInfo)     { h.exit <- info }

// Headers of the client that are to be forwarded go out with every message of
// its, and with the request for the stream.
func TestOldServerGetsForwardedHeaders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.old("/post")
		srv := w.withLegacy(isSSE, func(cfg *Config) { cfg.ForwardHeaders = []string{"X-Tenant"} })
		defer srv.Close()
		with := func(raw, tenant string) upstream.Request {
			req := request(t, raw)
			req.Header = http.Header{"X-Tenant": {tenant}, "Cookie": {"c=1"}}
			return req
		}
		sink := newSink(t)
		conn, err := srv.Open(with(initialize, "a"), sink, newSink(t))
		must(t, err)
		must(t, sink.end())
		must(t, conn.Send(with(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "b")))
		sink = newSink(t)
		_, err = conn.Start(with(tool, "c"), sink)
		must(t, err)
		must(t, sink.end())
		for what, want := range map[string]string{"GET": "a", "initialize": "a", "notifications/initialized": "b", "tools/call": "c"} {
			if got := s.all(what); len(got) != 1 || got[0].header.Get("X-Tenant") != want || got[0].header.Get("Cookie") != "" {
				t.Errorf("%s: %v, want X-Tenant %s", what, got, want)
			}
		}
		conn.End(upstream.ErrClosed)
	})
}
