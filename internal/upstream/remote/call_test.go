package remote

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestJSONReply(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		// Bytes pass as they are: digits, escapes, spaces, unknown members.
		odd := "{ \"id\" : 9007199254740993,\n \"jsonrpc\":\"2.0\", \"x\":1e400, \"result\":{\"a\":\"\\u00e9\\/\"} }"
		s.handle("tools/call", writeAs("application/json", odd))
		got := c.call(`{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"\u0078"}}`)
		if got != odd {
			t.Errorf("got  %s\nwant %s", got, odd)
		}
		if sent := s.all("tools/call")[0].body; sent != `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"\u0078"}}` {
			t.Errorf("sent %s", sent)
		}
	})
}

func TestContentTypes(t *testing.T) {
	for contentType, ok := range map[string]bool{
		"application/json": true, "application/json; charset=utf-8": true, "Application/JSON;charset=UTF-8": true, "application/json;": true,
		"application/json; charset": true, "text/html": false, "": false, "text/plain; application/json": false, "application/jsonx": false,
	} {
		t.Run(contentType, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/list", func(w http.ResponseWriter, _ *http.Request) {
					w.Header()["Content-Type"] = []string{contentType}
					_, _ = w.Write([]byte(result("1", "{}")))
				})
				sink, _ := c.start(list)
				if !ok {
					sink.fails("bad_answer", "instead of JSON or an event stream")
				} else if err := sink.end(); err != nil || sink.frame() != result("1", "{}") {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestStreamReply(t *testing.T) {
	for _, contentType := range []string{"text/event-stream", "Text/Event-Stream; charset=utf-8"} {
		inWorld(t, func(t *testing.T, w *world, s *site) {
			srv := w.server()
			defer srv.Close()
			c := open(t, srv)
			s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
				send := stream(w)
				w.Header().Set("Content-Type", contentType)
				send(": hello\n\n")
				send("id: 0\ndata:\n\n")
				send(data(prog))
				send("event: ping\ndata: no json\n\n")
				send("event: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata: \"method\":\"notifications/message\"}\r\n\r\n")
				send(data("no json"))
				send(data(result(`"2"`, `"another type of id"`)))
				send(data(result("2", "{}")))
			})
			sink, _ := c.start(tool)
			must(t, sink.end())
			for i, want := range []string{prog, "{\"jsonrpc\":\"2.0\",\n\"method\":\"notifications/message\"}", result("2", "{}")} {
				f := sink.next()
				relation := upstream.Own
				if i == 2 {
					relation = upstream.Reply
				}
				if string(f.Data) != want || f.Relation != relation {
					t.Errorf("frame %d: %s (%d)", i, f.Data, f.Relation)
				}
			}
			if len(sink.got)+len(c.events.got) > 0 {
				t.Error("more frames")
			}
		})
	}
}

// TestBadAnswers: each ends the call promptly with an error, and the session
// lives on.
func TestBadAnswers(t *testing.T) {
	header := func(code int, name, value string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(name, value)
			w.WriteHeader(code)
		}
	}
	html := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte("<html><secret>"))
	}
	withBody := func(code int, contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	huge := strings.Repeat(" ", 1<<20+1)
	tests := []struct {
		name         string
		answer       http.HandlerFunc
		reason, part string
	}{
		{"500", status(500), "http_status", "HTTP 500"},
		{"502 HTML", html, "http_status", "HTTP 502"},
		{"500 text", withBody(500, "text/plain; charset=utf-8", " database is down\n"), "http_status", "HTTP 500: database is down"},
		{"400 JSON-RPC error without id", withBody(400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"say please"}}`), "http_status", "HTTP 400: say please"},
		{"200 error without id", writeAs("application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"say please"}}`), "bad_answer", "names no request: say please"},
		{"error without id on a stream", writeAs("text/event-stream", data(`{"jsonrpc":"2.0","error":{"code":-32600,"message":"say please"}}`)), "bad_answer", "say please"},
		{"401", header(401, "WWW-Authenticate", `Bearer resource_metadata="http://secret/"`), "unauthorized", "credentials of signalbox (HTTP 401)"},
		{"403", status(403), "unauthorized", "HTTP 403"},
		{"429", header(429, "Retry-After", "7"), "server_busy", "wait 7 (Retry-After)"},
		{"503", header(503, "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT"), "server_busy", "wait Fri"},
		{"503 without", status(503), "server_busy", "HTTP 503"},
		{"202", status(202), "bad_answer", "gave no answer (HTTP 202)"},
		{"204", status(204), "bad_answer", "gave no answer (HTTP 204)"},
		{"200 empty", status(200), "bad_answer", "instead of JSON"},
		{"wrong id", writeAs("application/json", result("3", "{}")), "bad_answer", "another id"},
		{"wrong type of id", writeAs("application/json", result(`"2"`, "{}")), "bad_answer", "another id"},
		{"no id", writeAs("application/json", `{"jsonrpc":"2.0","result":{}}`), "bad_answer", ""},
		{"a request", writeAs("application/json", tool), "bad_answer", "a request instead"},
		{"an array", writeAs("application/json", "["+result("2", "{}")+"]"), "bad_answer", "no JSON-RPC message"},
		{"no JSON", writeAs("application/json", "<html>"), "bad_answer", "no JSON-RPC message"},
		{"empty JSON", writeAs("application/json", ""), "bad_answer", "no JSON-RPC message"},
		{"two values", writeAs("application/json", result("2", "{}")+result("2", "{}")), "bad_answer", "no JSON-RPC message"},
		{"compressed", header(200, "Content-Encoding", "gzip"), "bad_answer", "Content-Encoding: gzip"},
		{"oversize", writeAs("application/json", huge), "oversize", "1048576 bytes (--max-message)"},
		{"oversize event", writeAs("text/event-stream", "data: "+huge+"\n\n"), "oversize", "--max-message"},
		{"reset before headers", cutOff, "outcome_unknown", "outcome unknown"},
		{"reset after headers", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
			_ = http.NewResponseController(w).Flush()
			cutOff(w, r)
		}, "outcome_unknown", "outcome unknown"},
		{"stream ended without the answer", writeAs("text/event-stream", ": hello\n\n"), "stream_ended", "outcome unknown"},
		{"no HTTP", func(w http.ResponseWriter, _ *http.Request) {
			c, _, _ := http.NewResponseController(w).Hijack()
			_, _ = c.Write([]byte("SSH-2.0-x\r\n"))
			_ = c.Close()
		}, "bad_answer", "no HTTP/1.1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/call", tt.answer)
				began := time.Now()
				sink, _ := c.start(tool)
				sink.fails(tt.reason, tt.part)
				if took := time.Since(began); took > time.Second {
					t.Errorf("took %v", took)
				}
				if n := s.count("tools/call"); n != 1 {
					t.Errorf("the tool was called %d times", n)
				}
				if got := c.call(list); got != result("1", `{"from":"10.0.0.1:80"}`) {
					t.Errorf("the session is no longer good: %s", got)
				}
				if strings.Contains(w.log.String(), "secret") {
					t.Errorf("log: %s", w.log.String())
				}
			})
		})
	}
}

// TestErrorReplies: a JSON-RPC error under the call's id is the server's
// answer, with any status.
func TestErrorReplies(t *testing.T) {
	for _, code := range []int{200, 400, 404, 500} {
		inWorld(t, func(t *testing.T, w *world, s *site) {
			s.session = "" // with one, 404 says something else
			srv := w.server()
			defer srv.Close()
			c := open(t, srv)
			answer := `{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no"}}`
			s.handle("tools/call", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				_, _ = w.Write([]byte(answer))
			})
			if got := c.call(tool); got != answer {
				t.Errorf("HTTP %d: %s", code, got)
			}
		})
	}
}

// TestStreamLeftOpen: the call is over with its response; the connection is used
// again only if the stream ends soon.
func TestStreamLeftOpen(t *testing.T) {
	for name, ends := range map[string]bool{"ends": true, "stays": false} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				synctest.Wait() // its connection is back
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					send := stream(w)
					send(data(result("2", "{}")))
					if ends {
						time.Sleep(100 * time.Millisecond)
						send(": bye\n\n")
						return
					}
					for r.Context().Err() == nil {
						send(": still here\n\n")
						select {
						case <-time.After(300 * time.Millisecond):
						case <-r.Context().Done():
						}
					}
				})
				began := time.Now()
				sink, _ := c.start(tool)
				must(t, sink.end())
				if took := time.Since(began); took > 0 {
					t.Errorf("took %v", took)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				dials := len(w.dialled())
				c.call(list)
				if reused := len(w.dialled()) == dials; reused != ends {
					t.Errorf("reused: %v", reused)
				}
			})
		})
	}
}
