package remote

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const (
	meta       = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":"p"}`
	askList    = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}`
	askTool    = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x",` + meta + `}}`
	askListen  = `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}`
	acked      = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`
	listChange = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}`
)

// lone asks srv.
func lone(t *testing.T, srv *Server, raw string) (*sink, upstream.Call) {
	t.Helper()
	s := newSink(t)
	call, err := srv.Ask(request(t, raw), s)
	must(t, err)
	return s, call
}

// asked is the reply to raw, which must come. Its connection is idle then.
func asked(t *testing.T, srv *Server, raw string) string {
	t.Helper()
	s, _ := lone(t, srv, raw)
	if err := s.end(); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	synctest.Wait()
	return s.frame()
}

// alone runs a test with one server, which is closed in the end, when all that it
// had open must be given back.
func alone(t *testing.T, test func(t *testing.T, w *world, s *site, srv *Server), change ...func(*Config)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server(change...)
		test(t, w, s, srv)
		srv.Close()
		for _, a := range srv.Addresses() {
			if a.Sessions != 0 {
				t.Errorf("%d requests still count at %s", a.Sessions, a.Address)
			}
		}
	})
}

type authorizer struct{ refused int }

func (a *authorizer) Token(context.Context) (string, error) {
	return fmt.Sprintf("token%d", a.refused), nil
}
func (a *authorizer) Refused(string) { a.refused++ }

// TestAskHeaders: what repeats the body is made of the body, and nothing says that
// there is a session.
func TestAskHeaders(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") == "Bearer token0" {
				w.WriteHeader(401)
				return
			}
			reply(w, r, `{}`)
		})
		req := request(t, strings.Replace(askTool, `"x"`, `"\u00fcber"`, 1))
		req.Header = http.Header{
			"Mcp-Method": {"tools/list"}, "Mcp-Name": {"theirs"}, "Mcp-Protocol-Version": {"2025-06-18"}, "Mcp-Session-Id": {"s"}, "Last-Event-Id": {"9"},
			"Mcp-Param-Region": {"eu"}, "X-Tenant": {"one"}, "Cookie": {"c"},
		}
		sink := newSink(t)
		_, err := srv.Ask(req, sink)
		must(t, err)
		must(t, sink.end())
		got := s.all("tools/call")[1]
		want := http.Header{
			"User-Agent": {"signalbox/1.2.3"}, "Accept-Encoding": {"identity"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {"Bearer token1"}, "X-Team": {"a"}, "X-Tenant": {"one"}, "Mcp-Param-Region": {"eu"},
			"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"=?base64?w7xiZXI=?="},
			"Content-Length": got.header["Content-Length"],
		}
		if !maps.EqualFunc(got.header, want, slices.Equal) {
			t.Errorf("headers %v, want %v", got.header, want)
		}
		if got.uri != "/base/mcp?tenant=a%2Fb" || !strings.Contains(got.body, `"\u00fcber"`) {
			t.Errorf("sent %s to %s", got.body, got.uri)
		}
		if n := len(s.all("")); n != 2 {
			t.Errorf("%d requests, want the call and its repetition", n)
		}
	}, func(cfg *Config) {
		cfg.Header = http.Header{"X-Team": {"a"}, "Mcp-Method": {"x"}, "Mcp-Name": {"x"}}
		cfg.ForwardHeaders = []string{"X-Tenant", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"}
		cfg.Authorizer = new(authorizer)
	})
}

func TestAskNames(t *testing.T) {
	tests := []struct{ method, params, name string }{
		{"tools/call", `"name":"a b"`, "a b"},
		{"tools/call", `"name":" a"`, "=?base64?IGE=?="},
		{"tools/call", `"name":"a\r\nX-Evil: 1"`, "=?base64?YQ0KWC1FdmlsOiAx?="},
		{"prompts/get", `"name":"p"`, "p"},
		{"resources/read", `"uri":"file:///x","name":"n"`, "file:///x"},
		{"tasks/get", `"taskId":"t"`, "t"},
		{"tasks/cancel", `"taskId":"t"`, "t"},
		{"tools/list", `"name":"n"`, ""},
		{"x/own", `"name":"n"`, ""},
	}
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		for i, tt := range tests {
			asked(t, srv, `{"jsonrpc":"2.0","id":1,"method":"`+tt.method+`","params":{`+tt.params+`,`+meta+`}}`)
			h := s.all("")[i].header
			if h.Get("Mcp-Method") != tt.method || h.Get("Mcp-Name") != tt.name || h.Get("X-Evil") != "" {
				t.Errorf("%s with %s: %v", tt.method, tt.params, h)
			}
		}
		asked(t, srv, `{"jsonrpc":"2.0","id":1,"method":"x\r\ny","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"a\nb"}}}`)
		h := s.all("")[len(tests)].header
		if h["Mcp-Method"] != nil || h["Mcp-Protocol-Version"] != nil {
			t.Errorf("what cannot stand in a header: %v", h)
		}
	})
}

// TestAskStream: what comes before the response is the request's own; a request is
// nobody's.
func TestAskStream(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			send := stream(w)
			send(": hello\n\n" + data(prog) + "id: 7\n" + data(ask) + data(logMs) + data("nonsense") + data(result("3", "{}")) + data(result(idOf(r), `{"resultType":"complete"}`)))
			send(data(prog)) // too late
		})
		dropped := make(map[string]int)
		srv.cfg.Dropped = func(reason string, method mcp.Method) { dropped[reason+" "+method.String()]++ }
		sink, _ := lone(t, srv, askTool)
		must(t, sink.end())
		if want := map[string]int{"refused_request elicitation/create": 1, "noise other": 1, "foreign_id other": 1}; !maps.Equal(dropped, want) {
			t.Errorf("dropped %v, want %v", dropped, want)
		}
		for _, want := range []struct {
			data     string
			relation upstream.Relation
			method   mcp.Method
		}{
			{prog, upstream.Own, mcp.NotifProgress},
			{logMs, upstream.Own, mcp.NotifMessage},
			{result("2", `{"resultType":"complete"}`), upstream.Reply, mcp.ToolsCall},
		} {
			if f := sink.next(); string(f.Data) != want.data || f.Relation != want.relation || f.Method != want.method {
				t.Errorf("got %+v %s, want %+v", f, f.Data, want)
			}
		}
		if len(sink.got) > 0 {
			t.Errorf("more than that: %s", sink.frame())
		}
		if n := s.count("response"); n != 0 {
			t.Errorf("%d answers to what may not be asked", n)
		}
		for _, want := range []string{"2026-07-28 forbids", "elicitation/create", "no JSON-RPC message", "nobody asked"} {
			if !strings.Contains(w.log.String(), want) {
				t.Errorf("the log lacks %q: %s", want, w.log.String())
			}
		}
	})
}

func TestAskAnswers(t *testing.T) {
	const rpc = `{"jsonrpc":"2.0",%s"error":{"code":-32020,"message":"no","data":{"n":1.0}}}`
	with := func(id string) string { return fmt.Sprintf(rpc, id) }
	long := `{"jsonrpc":"2.0","id":2,"result":"` + strings.Repeat("x", 1<<20) + `"}`
	tests := []struct {
		name   string
		status int
		kind   string
		body   string
		reply  string // exact; else
		reason string
		part   string
	}{
		{"result", 200, "application/json", ` {"id":2 , "result":{"a":1.0},"jsonrpc":"2.0"} `, `{"id":2 , "result":{"a":1.0},"jsonrpc":"2.0"}`, "", ""},
		{"error", 200, "application/json", with(`"id":2,`), with(`"id":2,`), "", ""},
		{"400 under the id", 400, "application/json", with(`"id":2,`), with(`"id":2,`), "", ""},
		{"404 under the id", 404, "application/json; charset=utf-8", with(`"id":2,`), with(`"id":2,`), "", ""},
		{"500 under the id", 500, "application/json", with(`"id":2,`), with(`"id":2,`), "", ""},
		{"400 without an id", 400, "application/json", with(""), `{"id":2,` + with("")[1:], "", ""},
		{"400 with null", 400, "application/json", with(`"id" : null,`), with(`"id" : 2,`), "", ""},
		{"404 with null", 404, "application/json", with(`"id":null,`), with(`"id":2,`), "", ""},
		{"200 with null", 200, "application/json", with(`"id":null,`), with(`"id":2,`), "", ""},
		{"null on a stream", 200, "text/event-stream", data(with(`"id":null,`)), with(`"id":2,`), "", ""},
		{"400 under another id", 400, "application/json", with(`"id":3,`), "", "http_status", "HTTP 400: no"},
		{"400 with a request", 400, "application/json", ask, "", "http_status", "HTTP 400"},
		{"400 with a result and no id", 400, "application/json", `{"jsonrpc":"2.0","result":{}}`, "", "http_status", "HTTP 400"},
		{"401 with null", 401, "application/json", with(`"id":null,`), "", "unauthorized", "HTTP 401"},
		{"403 with null", 403, "application/json", with(`"id":null,`), "", "unauthorized", "HTTP 403"},
		{"429 with null", 429, "application/json", with(`"id":null,`), "", "server_busy", "HTTP 429"},
		{"503 with null", 503, "application/json", with(`"id":null,`), "", "server_busy", "HTTP 503"},
		{"500 with null", 500, "application/json", with(`"id":null,`), "", "http_status", "HTTP 500: no"},
		{"404 of another kind", 404, "text/html", "<p>", "", "http_status", "HTTP 404"},
		{"404 empty", 404, "", "", "", "http_status", "HTTP 404"},
		{"202", 202, "", "", "", "bad_answer", "no answer"},
		{"302", 302, "", "", "", "redirect", "HTTP 302"},
		{"other id", 200, "application/json", result("3", "{}"), "", "bad_answer", "another id"},
		{"no JSON", 200, "application/json", "{", "", "bad_answer", "no JSON-RPC message"},
		{"other type", 200, "text/html", "<p>", "", "bad_answer", "text/html"},
		{"too large", 200, "application/json", long, "", "oversize", "--max-message"},
		{"too large on a stream", 200, "text/event-stream", data(long), "", "oversize", "--max-message"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", tt.kind)
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.body))
				})
				sink, _ := lone(t, srv, askTool)
				if tt.reason != "" {
					sink.fails(tt.reason, tt.part)
				} else {
					must(t, sink.end())
					if got := sink.frame(); got != tt.reply {
						t.Errorf("got %s\nwant %s", got, tt.reply)
					}
				}
				if n := len(s.all("")); n != 1 {
					t.Errorf("%d requests", n)
				}
			})
		})
	}
}

func TestAskInitialize(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		if _, err := srv.Ask(request(t, initialize), newSink(t)); err != errNoHandshake {
			t.Errorf("error %v", err)
		}
	})
}

// TestAskBesideSessions: requests of one id at once, and those of a session, do not
// meet.
func TestAskBesideSessions(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		c := open(t, srv)
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			name := r.Header.Get("Mcp-Name")
			send := stream(w)
			send("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"p\",\"progress\":1,\"message\":\"%s\"}}\n\n", name)
			time.Sleep(time.Second)
			send(data(result(idOf(r), `"`+name+`"`)))
		})
		sinks := make(map[string]*sink)
		for i := range 20 {
			name := fmt.Sprintf("tool%d", i)
			sinks[name], _ = lone(t, srv, strings.Replace(askTool, `"x"`, `"`+name+`"`, 1))
		}
		own, _ := c.start(tool)
		for name, sink := range sinks {
			must(t, sink.end())
			if one, two := sink.frame(), sink.frame(); !strings.Contains(one, `"`+name+`"`) || two != result("2", `"`+name+`"`) {
				t.Errorf("%s got %s and %s", name, one, two)
			}
		}
		must(t, own.end())
		own.frame()
		if got := own.frame(); got != result("2", `""`) || len(c.events.got) > 0 {
			t.Errorf("the session got %s", got)
		}
	})
}
