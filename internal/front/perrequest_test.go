package front

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const modernVersion = "MCP-Protocol-Version: 2026-07-28"

// modern is a request of the per-request era, and its headers.
func modern(id, method, rest string, headers ...string) (string, []string) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}%s}}`, id, method, rest)
	return body, append([]string{modernVersion, "Mcp-Method: " + method}, headers...)
}

func (r *rig) ask(id, method, rest string, headers ...string) reply {
	body, headers := modern(id, method, rest, headers...)
	return r.do("POST", "/mcp", body, headers...)
}

// What is wrong with a request of the era is answered with its own codes, and
// with no id where none is known.
func TestPerRequestRefusals(t *testing.T) {
	meta := func(s string) string { return `{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{` + s + `}}` }
	const good = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	list := "Mcp-Method: tools/list"
	for _, tt := range []struct {
		name    string
		body    string
		headers []string
		status  int
		code    string
		reason  string
		noID    bool
	}{
		{"no version header", meta(good), []string{list}, 400, "-32020", "header_mismatch", false},
		{"an older version header", meta(good), []string{list, "MCP-Protocol-Version: 2025-11-25"}, 400, "-32020", "header_mismatch", false},
		{"another version in the body", strings.Replace(meta(good), "2026-07-28", "2027-01-01", 1), []string{list, modernVersion}, 400, "-32020", "header_mismatch", false},
		{"an unknown later version", strings.Replace(meta(good), "2026-07-28", "2027-01-01", 1), []string{list, "MCP-Protocol-Version: 2027-01-01"}, 400, "-32022", "unsupported_version", false},
		{"a version of no era", strings.Replace(meta(good), "2026-07-28", "1999-01-01", 1), []string{list, "MCP-Protocol-Version: 1999-01-01"}, 400, "-32022", "unsupported_version", false},
		{"no _meta", meta(""), []string{list, modernVersion}, 400, "-32602", "meta", false},
		{"no params", `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`, []string{list, modernVersion}, 400, "-32602", "meta", false},
		{"no version in _meta", meta(`"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}`), []string{list, modernVersion}, 400, "-32602", "meta", false},
		{"a version that is no string", strings.Replace(meta(good), `"2026-07-28"`, "20260728", 1), []string{list, modernVersion}, 400, "-32602", "meta", false},
		{"no capabilities", meta(`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`), []string{list, modernVersion}, 400, "-32602", "meta", false},
		{"capabilities that are no object", strings.Replace(meta(good), "{}}", "[]}", 1), []string{list, modernVersion}, 400, "-32602", "meta", false},
		{"an unknown log level", strings.Replace(meta(good), "{}}", `{},"io.modelcontextprotocol/logLevel":"loud"}`, 1), []string{list, modernVersion}, 400, "-32602", "level", false},
		{"no method header", meta(good), []string{modernVersion}, 400, "-32020", "header_mismatch", false},
		{"another method in the header", meta(good), []string{modernVersion, "Mcp-Method: tools/call"}, 400, "-32020", "header_mismatch", false},
		{"no name header", strings.Replace(meta(`"name":"t",`+good), "tools/list", "tools/call", 1), []string{modernVersion, "Mcp-Method: tools/call"}, 400, "-32020", "header_mismatch", false},
		{"another name in the header", strings.Replace(meta(`"name":"t",`+good), "tools/list", "tools/call", 1), []string{modernVersion, "Mcp-Method: tools/call", "Mcp-Name: u"}, 400, "-32020", "header_mismatch", false},
		{"a response", `{"jsonrpc":"2.0","id":7,"result":{}}`, []string{modernVersion}, 400, "-32600", "response", true},
		{"a batch", "[" + meta(good) + "]", []string{list, modernVersion}, 400, "-32600", "batch", true},
		{"no JSON", `{"jsonrpc"`, []string{list, modernVersion}, 400, "-32700", "invalid_message", true},
		{"ping", strings.Replace(meta(good), "tools/list", "ping", 1), []string{"Mcp-Method: ping", modernVersion}, 404, "-32601", "unknown_method", false},
		{"initialize", strings.Replace(meta(good), "tools/list", "initialize", 1), []string{"Mcp-Method: initialize", modernVersion}, 404, "-32601", "unknown_method", false},
		{"logging/setLevel", strings.Replace(meta(good), "tools/list", "logging/setLevel", 1), []string{"Mcp-Method: logging/setLevel", modernVersion}, 404, "-32601", "unknown_method", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, setup{direct: true}, func(t *testing.T, r *rig) {
				got := r.do("POST", "/mcp", tt.body, tt.headers...)
				if got.status != tt.status || lookup(got.body, "error", "code") != tt.code || lookup(got.body, "error", "data", "reason") != `"`+tt.reason+`"` {
					t.Errorf("got %d %s\nwant %d, code %s, reason %s", got.status, got.body, tt.status, tt.code, tt.reason)
				}
				if id, ok := wire.Lookup([]byte(got.body), "id"); ok == tt.noID || ok && string(id.Of([]byte(got.body))) != "7" {
					t.Errorf("id in %s", got.body)
				}
				if n := r.procs.count(); n != 0 {
					t.Errorf("%d processes were started", n)
				}
			})
		})
	}
}

func TestPerRequestOtherMethods(t *testing.T) {
	inBubble(t, setup{direct: true}, func(t *testing.T, r *rig) {
		for _, method := range []string{"GET", "DELETE"} {
			if got := r.do(method, "/mcp", "", modernVersion, "Mcp-Session-Id: x"); got.status != 405 || got.header.Get("Allow") != "POST" {
				t.Errorf("%s: %d, Allow %q", method, got.status, got.header.Get("Allow"))
			}
		}
		for what, got := range map[string]reply{
			"GET":          r.do("GET", "/mcp", "", modernVersion),
			"Accept":       r.do("POST", "/mcp", "{}", modernVersion, "Accept: text/html"),
			"Content-Type": r.do("POST", "/mcp", "{}", modernVersion, "Content-Type: text/html"),
		} {
			if _, ok := wire.Lookup([]byte(got.body), "id"); ok || got.status < 405 {
				t.Errorf("%s: %d %s", what, got.status, got.body)
			}
		}
		for _, body := range []string{
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`,
		} {
			if got := r.do("POST", "/mcp", body, modernVersion); got.status != 202 || got.body != "" {
				t.Errorf("%s: %d %s", body, got.status, got.body)
			}
		}
	})
}

// A request needs no session, is given none, and one that it names is ignored.
func TestPerRequestCall(t *testing.T) {
	inBubble(t, setup{direct: true}, func(t *testing.T, r *rig) {
		body, headers := modern("9007199254740993", "tools/call", `,"name":"Zürich","arguments":{"n":1.0}`, "Mcp-Name: =?base64?WsO8cmljaA==?=", "Mcp-Session-Id: stale", "Last-Event-ID: 5")
		s := r.stream("POST", "/mcp", body, headers...)
		defer s.close()
		p := r.procs.last()
		msg := p.next()
		if !strings.Contains(string(msg.Raw), `"arguments":{"n":1.0}`) {
			t.Errorf("the process got %s", msg.Raw)
		}
		p.answer(msg, `{"resultType":"complete"}`)
		if got := s.rest(); len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":9007199254740993,"result":{"resultType":"complete"}}` {
			t.Errorf("got %q", got)
		}
		if id := s.res.Header.Get("Mcp-Session-Id"); id != "" {
			t.Errorf("a session id came: %q", id)
		}
		if strings.Contains(s.raw.String(), "id: ") {
			t.Errorf("the stream has event ids")
		}
		if sessions := r.metric("signalbox_sessions", ""); sessions != 0 {
			t.Errorf("%v sessions", sessions)
		}
	})
}

// The end of the stream is the cancel, in this era only.
func TestPerRequestDisconnectCancels(t *testing.T) {
	inBubble(t, setup{direct: true}, func(t *testing.T, r *rig) {
		body, headers := modern("1", "tools/call", `,"name":"t"`, "Mcp-Name: t")
		s := r.stream("POST", "/mcp", body, headers...)
		p := r.procs.last()
		call := p.next()
		s.close()
		r.settle()
		if !p.saw(`"method":"notifications/cancelled","params":{"requestId":` + string(call.Bytes(call.ID))) {
			t.Error("the process got no cancel")
		}
		if n := r.metric("signalbox_calls_in_flight", ""); n != 0 {
			t.Errorf("%v calls in flight", n)
		}
	})
}

// Errors of the server get the status that the revision gives them.
func TestPerRequestStatus(t *testing.T) {
	inBubble(t, setup{direct: true}, func(t *testing.T, r *rig) {
		for code, status := range map[string]int{"-32601": 404, "-32021": 400, "-32602": 400, "-32603": 200, "1": 200} {
			got := make(chan reply)
			go func() { got <- r.ask("1", "x/y", "") }()
			for r.procs.count() == 0 {
				r.settle()
			}
			p := r.procs.last()
			msg := p.next()
			p.say(`{"jsonrpc":"2.0","id":` + string(msg.Bytes(msg.ID)) + `,"error":{"code":` + code + `,"message":"m"}}`)
			if got := <-got; got.status != status || lookup(got.body, "error", "code") != code {
				t.Errorf("code %s: %d %s", code, got.status, got.body)
			}
		}
	})
}

// An error of Signalbox has no code that the revision keeps for others.
func TestPerRequestOwnErrors(t *testing.T) {
	inBubble(t, setup{direct: true}, func(t *testing.T, r *rig) {
		got := make(chan reply)
		go func() { got <- r.ask("1", "x/y", "") }()
		r.settle()
		p := r.procs.last()
		p.next()
		p.die(3)
		if got := <-got; got.status != 200 || lookup(got.body, "error", "code") != "-32603" || lookup(got.body, "id") != "1" {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	inBubble(t, setup{direct: true, limits: func(l *live.Limits) { l.PrincipalCalls = 1 }}, func(t *testing.T, r *rig) {
		body, headers := modern("1", "x/y", "")
		s := r.stream("POST", "/mcp", body, headers...)
		defer s.close()
		if got := r.ask("2", "x/y", ""); got.status != 429 || lookup(got.body, "error", "code") != "-32603" || got.header.Get("Retry-After") == "" {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// A listen ends with a result when Signalbox does, and without a stream there is
// none.
func TestPerRequestListen(t *testing.T) {
	inBubble(t, setup{direct: true, keepalive: 100 * time.Hour}, func(t *testing.T, r *rig) {
		if got := r.ask("1", "subscriptions/listen", `,"notifications":{}`, "Accept: application/json"); got.status != 406 {
			t.Errorf("%d %s", got.status, got.body)
		}
		body, headers := modern(`"l"`, "subscriptions/listen", `,"notifications":{"toolsListChanged":true}`)
		s := r.stream("POST", "/mcp", body, headers...)
		defer s.close()
		p := r.procs.last()
		msg := p.next()
		p.say(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(msg.Bytes(msg.ID)) + `}}}`)
		if got := string(s.next().Data); !strings.Contains(got, `subscriptionId":"l"`) {
			t.Errorf("got %s", got)
		}
		time.Sleep(5 * time.Hour) // longer than any call may take
		r.live.StartDrain()
		if got := s.rest(); len(got) != 1 || got[0] != `{"jsonrpc":"2.0","id":"l","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"l"}}}` {
			t.Errorf("got %q", got)
		}
	})
}

// Each message goes by its own rules, whatever came before it on the connection.
func TestErasMixed(t *testing.T) {
	inBubble(t, setup{shared: true}, func(t *testing.T, r *rig) {
		session := r.open("2025-11-25")
		for range 3 {
			if got := r.do("POST", "/mcp", ping, session); got.status != 200 {
				t.Errorf("handshake era: %d %s", got.status, got.body)
			}
			if got := r.ask("1", "ping", "", session); got.status != 404 || lookup(got.body, "error", "code") != "-32601" {
				t.Errorf("per-request era: %d %s", got.status, got.body)
			}
			if got := r.do("POST", "/mcp", initBody("2025-06-18"), modernVersion, "Mcp-Method: initialize"); got.status != 200 {
				t.Errorf("initialize: %d %s", got.status, got.body)
			}
		}
	})
}

func TestPreflightAllowsParamHeaders(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		got := r.do("OPTIONS", "/mcp", "", "Origin: http://localhost:1", "Access-Control-Request-Headers: mcp-param-region, x-other, mcp-param-, mcp-param-a b")
		allowed := got.header.Get("Access-Control-Allow-Headers")
		if !strings.HasSuffix(allowed, ", mcp-param-region") {
			t.Errorf("allowed %q", allowed)
		}
	})
}

// What is refused before the message is looked at is refused in the way of the era
// that its headers claim.
func TestPerRequestRefusedEarly(t *testing.T) {
	inBubble(t, setup{direct: true, config: func(c *Config) { c.RequestRate = 1 }}, func(t *testing.T, r *rig) {
		limited := false
		for range 100 {
			got := r.ask("1", "ping", "")
			if got.status != 429 {
				continue
			}
			limited = true
			if _, ok := wire.Lookup([]byte(got.body), "id"); ok || lookup(got.body, "error", "code") != "-32603" || got.header.Get("Retry-After") == "" {
				t.Errorf("%d %s", got.status, got.body)
			}
			break
		}
		if !limited {
			t.Error("no limit was reached")
		}
		if got := r.ask("1", "ping", "", "Origin: http://evil.example"); got.status != 403 || strings.Contains(got.body, `"id"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}

// farServer says that another replica has what a request goes on with.
type farServer struct{ upstream.Server }

func (farServer) Ask(upstream.Request, upstream.Sink) (upstream.Call, error) {
	return nil, &upstream.Elsewhere{Replica: "other"}
}

func (farServer) Close() {}

// lostPeers break off in the middle of a stream.
type lostPeers struct{}

func (lostPeers) Peers(context.Context) ([]cluster.Peer, error) { return nil, nil }

func (lostPeers) Forward(w http.ResponseWriter, _ *http.Request, _, _ string, _ io.Reader) error {
	streamHeaders(w)
	return &cluster.LostError{Begun: true, Events: true, Cause: io.ErrUnexpectedEOF}
}

func TestPerRequestReplicaIsLost(t *testing.T) {
	inBubble(t, setup{upstream: farServer{}, config: func(c *Config) { c.Peers = lostPeers{} }}, func(t *testing.T, r *rig) {
		got := r.ask("1", "tools/call", `,"name":"t"`, "Mcp-Name: t")
		if !strings.Contains(got.body, `"id":1,"error":{"code":-32603,`) || !strings.Contains(got.body, "replica_lost") {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}
