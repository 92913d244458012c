package remote

import (
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestServerRequests: what the server asks on a call's stream goes to the
// call's client, and the answer back to the server.
func TestServerRequests(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		answered := make(chan struct{})
		s.handle("response", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(202)
			close(answered)
		})
		s.handle("tools/call", func(w http.ResponseWriter, _ *http.Request) {
			send := stream(w)
			send(data(ask))
			<-answered
			send(data(result("2", "{}")))
		})
		sink, _ := c.start(tool)
		if f := sink.next(); string(f.Data) != ask || f.Relation != upstream.Own {
			t.Fatalf("frame %s", f.Data)
		}
		answer := `{"jsonrpc":"2.0","id":"q1","result":{"action":"accept"}}`
		must(t, c.send(answer))
		must(t, sink.end())
		if got := s.all("response"); len(got) != 1 || got[0].body != answer || got[0].header.Get("Mcp-Session-Id") != s.session {
			t.Errorf("the server got %v", got)
		}
	})
}

// TestJSONOnlyClient: what its call cannot take goes to the session's stream,
// and waits there if it means anything later; a request that nobody takes is
// answered.
func TestJSONOnlyClient(t *testing.T) {
	ping := `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	tests := []struct {
		name, msg string
		takes     upstream.Relation // what the session's own stream takes; 0: nothing
		answer    string            // by Signalbox, to the server
	}{
		{"progress to a reader", prog, upstream.Loose, ""},
		{"progress does not wait", prog, upstream.Waiting, ""},
		{"log message waits", logMs, upstream.Waiting, ""},
		{"request waits", ask, upstream.Waiting, ""},
		{"request that nobody takes", ask, 0, `"code":-32601`},
		{"ping to a reader", ping, upstream.Loose, ""},
		{"ping does not wait", ping, upstream.Waiting, result("7", "{}")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				c.events.takes = func(f upstream.Frame) upstream.Verdict {
					if f.Relation == tt.takes {
						return upstream.Taken
					}
					return upstream.NoTaker
				}
				s.handle("tools/call", writeAs("text/event-stream", data(tt.msg)+data(result("2", "{}"))))
				sink, _ := c.startWith(tool, newSink(t).refusing())
				must(t, sink.end())
				if got := sink.frame(); got != result("2", "{}") {
					t.Errorf("the call got %s", got)
				}
				waits := tt.takes == upstream.Waiting && tt.msg != prog && tt.msg != ping
				if got := len(c.events.got); (got == 1) != (tt.takes == upstream.Loose || waits) {
					t.Errorf("the session's stream got %d frames", got)
				}
				got := s.all("response")
				if (len(got) == 1) != (tt.answer != "") || len(got) == 1 && !strings.Contains(got[0].body, tt.answer) {
					t.Errorf("the server got %v", got)
				}
			})
		})
	}
}

// TestPingBeforeReply: a server may ping while it answers initialize, and wait
// for the answer.
func TestPingBeforeReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		ponged := make(chan struct{})
		s.handle("response", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(202)
			close(ponged)
		})
		s.handle("initialize", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Mcp-Session-Id", "early")
			send := stream(w)
			send(data(`{"jsonrpc":"2.0","id":7,"method":"ping"}`))
			<-ponged
			send(data(result("0", `{"protocolVersion":"2025-06-18"}`)))
		})
		c, reply := beginWith(t, srv, newSink(t).refusing(), newSink(t).refusing())
		must(t, reply.end())
		if got := s.all("response")[0]; got.header.Get("Mcp-Session-Id") != "early" || got.body != result("7", "{}") {
			t.Errorf("the server got %v", got)
		}
		c.call(list)
		if got := s.all("tools/list")[0].header.Get("Mcp-Session-Id"); got != "early" {
			t.Errorf("session %q", got)
		}
	})
}
