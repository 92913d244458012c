package remote

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestAskInline: a call runs in the goroutine that waits for it, until it has waited
// for long.
func TestAskInline(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		asked(t, srv, askList) // there is a connection
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			send(data(prog))
			time.Sleep(time.Second)
			send(data(logMs))
			time.Sleep(40 * time.Second)
			send(data(result(idOf(r), `{}`)))
		})
		start := func() (*sink, upstream.Runner) {
			sink := newSink(t)
			req := request(t, askTool)
			req.Inline = true
			call, err := srv.Ask(req, sink)
			must(t, err)
			return sink, call.(upstream.Runner)
		}
		sink, run := start()
		until := time.Now().Add(30 * time.Second)
		for _, want := range []string{prog, logMs} {
			if !run.Run(until) {
				t.Fatal("the call went on by itself")
			}
			if len(sink.got) != 1 {
				t.Errorf("%d frames", len(sink.got))
			}
			if got := sink.frame(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		if run.Run(until) || !time.Now().Equal(until) {
			t.Errorf("after its time the call does not go on by itself, at %v", time.Now())
		}
		must(t, sink.end())
		if got := sink.frame(); got != result("2", `{}`) {
			t.Errorf("got %s", got)
		}

		sink, run = start() // whoever waits has gone
		run.Go()
		must(t, sink.end())

		big := strings.Replace(askTool, `"x"`, `"x","arguments":{"a":"`+strings.Repeat("y", inlineMost)+`"}`, 1)
		req := request(t, big)
		req.Inline = true
		sink = newSink(t)
		call, err := srv.Ask(req, sink)
		must(t, err)
		if call.(upstream.Runner).Run(until) {
			t.Error("a large request runs inline")
		}
		must(t, sink.end())
	})
}

// TestAskInlineHoldsNobody: what may take long before anything is sent is done in a
// goroutine of its own.
func TestAskInlineHoldsNobody(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		inline := func() *sink {
			t.Helper()
			sink := newSink(t)
			req := request(t, askList)
			req.Inline = true
			call, err := srv.Ask(req, sink)
			must(t, err)
			began := time.Now()
			if call.(upstream.Runner).Run(began.Add(time.Minute)) || time.Since(began) > 0 {
				t.Errorf("held for %v", time.Since(began))
			}
			return sink
		}
		must(t, inline().end()) // its addresses are looked up
		s.handle("tools/call", cutOff)
		sink, _ := lone(t, srv, askTool)
		sink.fails("outcome_unknown", "may have run")
		must(t, inline().end()) // it waits until the server is gone or there to stay
	}, slowNames)
}
