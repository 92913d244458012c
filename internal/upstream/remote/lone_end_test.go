package remote

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestAskCancel: the end of the connection is all that the server hears.
func TestAskCancel(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"no head": func(http.ResponseWriter) {},
		"stream":  func(w http.ResponseWriter) { stream(w)(data(prog)) },
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
				heard := make(chan struct{})
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					begin(w)
					<-r.Context().Done()
					close(heard)
				})
				sink, call := lone(t, srv, askTool)
				synctest.Wait()
				call.Cancel(upstream.ErrCancelled)
				call.Cancel(upstream.ErrShutdown)
				if err := sink.end(); err != upstream.ErrCancelled {
					t.Errorf("ended with %v", err)
				}
				<-heard
				asked(t, srv, askList)
				if s.count("") != 2 || len(w.dialled()) != 2 {
					t.Errorf("dialled %v, sent %v", w.dialled(), s.all(""))
				}
			})
		})
	}
}

func TestAskTimeouts(t *testing.T) {
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tests := []struct {
		name   string
		answer http.HandlerFunc
		want   error
		after  time.Duration
	}{
		{"no head", hang, upstream.CallTimeout, time.Minute},
		{"silent stream", func(w http.ResponseWriter, r *http.Request) { stream(w); hang(w, r) }, upstream.CallTimeout, time.Minute},
		{"comments are no progress", ticking(": x\n\n"), upstream.CallTimeout, time.Minute},
		{"requests stop no clock", ticking(data(ask)), upstream.CallTimeout, time.Minute},
		{"progress, up to the limit", ticking(data(prog)), upstream.CallLimit, time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
				heard := make(chan struct{})
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) { tt.answer(w, r); close(heard) })
				began := time.Now()
				sink, _ := lone(t, srv, askTool)
				if err := sink.end(); err != tt.want || time.Since(began) != tt.after {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				<-heard
				if n := s.count(""); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

// TestAskListen: a subscription has no end but its own.
func TestAskListen(t *testing.T) {
	for _, inline := range []bool{false, true} {
		alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
			asked(t, srv, askList) // there is a connection
			s.handle("subscriptions/listen", func(w http.ResponseWriter, r *http.Request) {
				send := stream(w)
				send(data(acked))
				time.Sleep(72 * time.Hour)
				send(data(listChange))
				time.Sleep(72 * time.Hour)
				send(data(result(`"l"`, `{"resultType":"complete"}`)))
			})
			sink := newSink(t)
			req := request(t, askListen)
			req.Inline = inline
			call, err := srv.Ask(req, sink)
			must(t, err)
			if inline {
				asking, until := time.Now(), time.Now().Add(time.Minute)
				for call.(upstream.Runner).Run(until) {
				}
				if took := time.Since(asking); took != 0 && took != time.Minute {
					t.Errorf("whoever waits was held for %v", took)
				}
			}
			began := time.Now()
			<-sink.done
			must(t, sink.err)
			if took := time.Since(began); took < 143*time.Hour {
				t.Errorf("ended after %v", took)
			}
			for _, want := range []string{acked, listChange, result(`"l"`, `{"resultType":"complete"}`)} {
				if f := sink.next(); string(f.Data) != want || f.Relation == upstream.Loose {
					t.Errorf("got %s, want %s", f.Data, want)
				}
			}
		})
	}
}

// TestAskListenCancelled: some servers end a subscription by a cancel and not by a
// response; its client gets that. A cancel of anything else ends nothing.
func TestAskListenCancelled(t *testing.T) {
	cancel := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`
	}
	for name, last := range map[string]func(r *http.Request){
		"and closes": func(*http.Request) {},
		"and stays":  func(r *http.Request) { <-r.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
				s.handle("subscriptions/listen", func(w http.ResponseWriter, r *http.Request) {
					stream(w)(data(acked) + data(cancel(`"other"`)) + data(listChange) + data(cancel(`"\u006c"`)))
					last(r)
				})
				sink, _ := lone(t, srv, askListen)
				must(t, sink.end())
				for _, want := range []string{acked, cancel(`"other"`), listChange, string(upstream.ListenEnd([]byte(`"l"`)))} {
					if got := sink.frame(); got != want {
						t.Errorf("got %s, want %s", got, want)
					}
				}
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					stream(w)(data(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`) + data(result("2", "{}")))
				})
				if got := asked(t, srv, askTool); !strings.Contains(got, "cancelled") {
					t.Errorf("a call got %s", got)
				}
			})
		})
	}
}

func TestAskAfterClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		heard := 0
		s.handle("subscriptions/listen", func(w http.ResponseWriter, r *http.Request) {
			stream(w)(data(acked))
			<-r.Context().Done()
			heard++
		})
		sink, _ := lone(t, srv, askListen)
		sink.frame()
		began := time.Now()
		srv.Close()
		if took := time.Since(began); took > 0 {
			t.Errorf("Close took %v", took)
		}
		if err := sink.end(); err != upstream.ErrShutdown {
			t.Errorf("ended with %v", err)
		}
		synctest.Wait()
		if heard != 1 {
			t.Error("the server still serves the subscription")
		}
		if _, err := srv.Ask(request(t, askList), newSink(t)); err != upstream.ErrShutdown {
			t.Errorf("Ask: %v", err)
		}
		if _, _, err := srv.Probe(t.Context()); err != upstream.ErrShutdown {
			t.Errorf("Probe: %v", err)
		}
		if n := s.count(""); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}
