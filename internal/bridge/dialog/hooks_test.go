package dialog

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

type principal string

func (p principal) Key() string { return string(p) }

// Every request that reaches the server for a client's message says who sent
// that, retries and listens included. A retry goes to the address that asked for it.
func TestPrincipalAndHeader(t *testing.T) {
	x := newRig(t, nil)
	defer x.finish()
	header := http.Header{"X-A": {"1"}}
	as := func(raw string) upstream.Request {
		req := request(t, raw)
		req.Principal, req.Header, req.Inline = principal("p"), header, true
		return req
	}
	conn, err := x.srv.Open(as(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}`), x.newSink("initialize"), x.events)
	if err != nil {
		t.Fatal(err)
	}
	x.conn = conn.(*connOf)
	x.asker.last().result(discovery(`{"tools":{"listChanged":true}}`))
	if err := conn.Send(as(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Start(as(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`), x.newSink("call 1")); err != nil {
		t.Fatal(err)
	}
	x.asker.last().result(`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}}}`)
	if err := conn.Send(request(t, `{"jsonrpc":"2.0","id":`+x.question(0)+`,"result":{"roots":[]}}`)); err != nil {
		t.Fatal(err)
	}
	x.asker.last().result(`{"resultType":"complete","content":[]}`)
	if n := len(x.asker.asks); n != 4 {
		t.Fatalf("%d requests reached the server, want 4", n)
	}
	for i, k := range x.asker.asks {
		if want := []string{"", "", "", "http://server:3"}[i]; k.req.Address != want {
			t.Errorf("request %d goes to %q, want %q", k.n, k.req.Address, want)
		}
		if k.req.Principal != principal("p") || k.req.Header.Get("X-A") != "1" {
			t.Errorf("request %d is from %v with %v: %s", k.n, k.req.Principal, k.req.Header, k.raw)
		}
	}
}

// A client of the handshake era knows nothing of headers that repeat arguments:
// what it sends under their names says something that the body may not.
func TestParamHeadersOfTheClient(t *testing.T) {
	x := newRig(t, nil)
	defer x.finish()
	header := http.Header{"X-A": {"1"}, "Mcp-Param-Region": {"theirs"}}
	as := func(raw string) upstream.Request {
		req := request(t, raw)
		req.Header = header
		return req
	}
	conn, err := x.srv.Open(as(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`), x.newSink("initialize"), x.events)
	if err != nil {
		t.Fatal(err)
	}
	x.conn = conn.(*connOf)
	x.asker.last().result(discovery(`{"tools":{"listChanged":true}}`))
	if err := conn.Send(as(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Start(as(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"}}}`), x.newSink("call 1")); err != nil {
		t.Fatal(err)
	}
	x.asker.last().result(`{"resultType":"complete","content":[]}`)
	if n := len(x.asker.asks); n != 3 {
		t.Fatalf("%d requests reached the server, want 3", n)
	}
	for _, k := range x.asker.asks {
		if k.req.Header["Mcp-Param-Region"] != nil || k.req.Header.Get("X-A") != "1" {
			t.Errorf("request %d has the headers %v", k.n, k.req.Header)
		}
	}
	if header.Get("Mcp-Param-Region") != "theirs" {
		t.Error("the headers of the client's own request were changed")
	}
}

// Headers follow the schema that is known; where the server says that they do
// not fit, it is read anew, and the call made again, once.
func TestHeadersAreMadeAnewOnce(t *testing.T) {
	const mismatch = `,"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}}`
	schema := "old"
	var done []func(error)
	var lists []upstream.Request
	x := newRig(t, func(cfg *Config) {
		cfg.Params = func(req *upstream.Request) {
			req.Header = req.Header.Clone()
			if req.Header == nil {
				req.Header = http.Header{}
			}
			req.Header.Set("Mcp-Param-Region", schema)
		}
		cfg.Refresh = func(list upstream.Request, then func(error)) {
			lists, done = append(lists, list), append(done, then)
		}
	})
	defer x.finish()
	x.begin("2025-11-25", `{"roots":{}}`, `{"tools":{}}`)

	x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`)
	first := x.asker.last()
	first.says(`{"jsonrpc":"2.0","id":1` + mismatch)
	if len(lists) != 1 || lists[0].Method != mcp.ToolsList || !strings.Contains(string(lists[0].Msg.Raw), mcp.MetaVersion) {
		t.Fatalf("asked for the schemas by %v", lists)
	}
	schema = "new"
	done[0](nil)
	second := x.asker.last()
	if a, b := first.req.Header.Get("Mcp-Param-Region"), second.req.Header.Get("Mcp-Param-Region"); a != "old" || b != "new" {
		t.Errorf("headers %q, then %q", a, b)
	}
	if first.id() == second.id() {
		t.Errorf("both have the id %s", second.id())
	}
	x.told()
	second.result(`{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list"}},"requestState":"s"}`)
	x.send(`{"jsonrpc":"2.0","id":` + x.question(0) + `,"result":{"roots":[]}}`)
	third := x.asker.last()
	third.says(`{"jsonrpc":"2.0","id":` + third.id() + mismatch)
	got := strings.Join(x.told(), "\n")
	if !strings.Contains(got, "call 1 end -32603 headers: the server refused the headers that Signalbox made from the request: Mcp-Param-Region is missing") || len(done) != 1 {
		t.Errorf("after the second mismatch: %s", got)
	}

	x.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
	x.asker.last().says(`{"jsonrpc":"2.0","id":2` + mismatch)
	x.told()
	done[1](errors.New("away"))
	x.want("call 2 end -32603 headers: the server refused the headers that Signalbox made from the request: Mcp-Param-Region is missing; its list of tools could not be read: away")

	x.send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t"}}`)
	x.asker.last().says(`{"jsonrpc":"2.0","id":3` + mismatch)
	x.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	x.told()
	done[2](nil) // too late
	x.want()
}

// The hook sees the server's own answer, and what it returns is made plain.
func TestToolsAreEdited(t *testing.T) {
	x := newRig(t, func(cfg *Config) {
		cfg.Tools = func(reply []byte) []byte {
			return []byte(strings.Replace(string(reply), `"ttlMs":7`, `"tools":[{"name":"seen"}],"ttlMs":7`, 1))
		}
	})
	defer x.finish()
	x.begin("2025-11-25", `{}`, `{"tools":{}}`)
	x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	x.told()
	x.asker.last().result(`{"resultType":"complete","ttlMs":7,"cacheScope":"public"}`)
	x.want(`call 1 reply {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"seen"}]}}`)
	x.send(`{"jsonrpc":"2.0","id":2,"method":"prompts/list"}`)
	x.told()
	x.asker.last().result(`{"resultType":"complete","ttlMs":7}`)
	x.want(`call 2 reply {"jsonrpc":"2.0","id":2,"result":{}}`)
}

// null is how some servers write that there is no outputSchema. Within another schema
// it would be an invalid one.
func TestNullIsNotWrapped(t *testing.T) {
	x := newRig(t, nil)
	defer x.finish()
	x.begin("2025-11-25", `{}`, `{"tools":{}}`)
	x.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	x.told()
	x.asker.last().result(`{"resultType":"complete","tools":[{"name":"t","outputSchema":null}]}`)
	x.want(`call 1 reply {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"t","outputSchema":null}]}}`)
	x.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}`)
	x.told()
	x.asker.last().result(`{"resultType":"complete","content":[],"structuredContent":{"a":1}}`)
	x.want(`call 2 reply {"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"a":1}}}`)
}
