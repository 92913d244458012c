package park

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestErrorsOfTheServer(t *testing.T) {
	for _, tt := range []struct{ method, params, server, client string }{
		{"tools/call", `"name":"t"`, `{"code":0,"message":"m"}`, `{"code":-32603,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":-32000,"message":"m","data":1.0}`, `{"code":-32603,"message":"m","data":1.0}`},
		{"tools/call", `"name":"t"`, `{"code":-32019,"message":"m"}`, `{"code":-32603,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":-32001,"message":"m"}`, `{"code":-32603,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":-32020,"message":"m"}`, `{"code":-32020,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":-32602,"message":"m"}`, `{"code":-32602,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":7,"message":"m"}`, `{"code":7,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":1.5,"message":"m"}`, `{"code":-32603,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"message":"m"}`, `{"code":-32603,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":-32042,"message":"m"}`, `{"code":-32603,"message":"m"}`},
		{"tools/call", `"name":"t"`, `{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"form"}]}}`, `{"code":-32603,"message":"m","data":{"elicitations":[{"mode":"form"}]}}`},
		{"resources/read", `"uri":"a:\u0062"`, `{"code":-32002,"message":"m"}`, `{"data":{"uri":"a:\u0062"},"code":-32602,"message":"m"}`},
		{"resources/read", `"uri":"a:b"`, `{"code":-32002,"message":"m","data":{"x":1}}`, `{"code":-32602,"message":"m","data":{"uri":"a:b","x":1}}`},
		{"resources/read", `"uri":"a:b"`, `{"code":-32002,"message":"m","data":{"uri":"c"}}`, `{"code":-32602,"message":"m","data":{"uri":"c"}}`},
		{"resources/read", `"uri":"a:b"`, `{"code":-32002,"message":"m","data":"d"}`, `{"code":-32602,"message":"m","data":"d"}`},
	} {
		run(t, nil, func(r *rig) {
			c := r.ask(ann, "5", tt.method, tt.params)
			k := r.leg(r.conns(1)[0])
			k.answer([]byte(`{"jsonrpc":"2.0","id":` + string(k.id()) + `,"error":` + tt.server + `}`))
			synctest.Wait()
			equal(t, tt.server, c.last(), `{"jsonrpc":"2.0","id":5,"error":`+tt.client+`}`)
		})
	}
}

func TestAnErrorThatNamesNoRequest(t *testing.T) {
	for _, server := range []string{`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"m"}}`, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"m"}}`} {
		run(t, nil, func(r *rig) {
			c := r.ask(ann, "5", "tools/list", "")
			r.leg(r.conns(1)[0]).answer([]byte(server))
			synctest.Wait()
			got := c.last()
			equal(t, "id and code", at(got, "id")+at(got, "error", "code"), "5-32603")
		})
	}
}

func TestFailuresOfTheConnection(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{upstream.CallTimeout, "-32603 timeout"},
		{upstream.ErrBusy, "-32603 busy"},
		{upstream.Errorf(mcp.CodeInternal, "process_exited", "gone"), "-32603 process_exited"},
	} {
		run(t, nil, func(r *rig) {
			c := r.ask(ann, "5", "tools/list", "")
			r.leg(r.conns(1)[0]).end(tt.err)
			synctest.Wait()
			equal(t, "client", c.reason(), tt.want)
			if !errors.Is(c.err, tt.err) {
				t.Errorf("%v does not wrap %v", c.err, tt.err)
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, answer := range []string{`{"jsonrpc":"2.0","id":1,"result":[]}`, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","method":"x"}`, `nonsense`} {
		run(t, nil, func(r *rig) {
			c := r.ask(ann, "5", "tools/list", "")
			r.leg(r.conns(1)[0]).answer([]byte(answer))
			synctest.Wait()
			equal(t, answer, c.reason(), "-32603 bad_answer")
		})
	}
}

func TestDiscover(t *testing.T) {
	const want = `{"jsonrpc":"2.0","id":"d","result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],` +
		`"capabilities":{"logging":{},"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true}},` +
		`"instructions":"be \u006bind","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}}`
	run(t, nil, func(r *rig) {
		s := ann.can(`{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
		equal(t, "discover", r.ask(s, `"d"`, "server/discover", "").last(), want)
		// It needs no session for itself: one that a call uses will do.
		c := r.ask(s, "2", "tools/call", `"name":"t"`)
		equal(t, "discover", r.ask(s, `"d"`, "server/discover", "").last(), want)
		r.leg(r.conns(1)[0]).result("{}")
		synctest.Wait()
		c.last()
	})
	run(t, func(_ *Config, s *server) { s.init = `{"protocolVersion":"2024-11-05"}` }, func(r *rig) {
		equal(t, "discover", r.ask(ann, "1", "server/discover", "").last(),
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`)
	})
}

func TestDiscoverFindsRoomAnywhere(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) {
		r.ask(ann.can(`{"roots":{}}`), "1", "tools/call", `"name":"t"`)
		r.ask(ann, "2", "server/discover", "").last()
		r.conns(1)
	})
}

func TestLists(t *testing.T) {
	run(t, nil, func(r *rig) {
		for _, tt := range []struct{ method, server, client string }{
			{"tools/list", `{"tools":[{"name":"a","execution":{"taskSupport":"required"},"title":"A"},{"execution":1},{"name":"b","\u0065xecution":2},5],"nextCursor":""}`,
				`{"resultType":"complete","ttlMs":0,"cacheScope":"private",META,"tools":[{"name":"a","title":"A"},{},{"name":"b"},5],"nextCursor":""}`},
			{"prompts/list", `{"prompts":[{"execution":1}]}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private",META,"prompts":[{"execution":1}]}`},
			{"resources/list", `{}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private",META}`},
			{"resources/templates/list", `{"ttlMs":5}`, `{"resultType":"complete","cacheScope":"private",META,"ttlMs":5}`},
			{"resources/read", `{"_meta":{"a":1}}`, `{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{INFO,"a":1}}`},
			{"completion/complete", `{"_meta":{}}`, `{"resultType":"complete","_meta":{INFO}}`},
			{"prompts/get", `{"resultType":"complete","_meta":null}`, `{"resultType":"complete","_meta":null}`},
			{"tools/list", `{"resultType":"strange"}`, `{META,"resultType":"strange"}`},
		} {
			c := r.ask(ann, "1", tt.method, `"uri":"u"`)
			r.leg(r.conns(1)[0]).result(tt.server)
			synctest.Wait()
			info := `"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}`
			want := strings.NewReplacer("META", `"_meta":{`+info+`}`, "INFO", info).Replace(tt.client)
			equal(t, tt.method, c.last(), `{"jsonrpc":"2.0","id":1,"result":`+want+`}`)
		}
	})
}

// A method that the protocol does not know, and that the server refuses by HTTP, is
// answered as the per-request era wants it.
func TestUnknownMethodRefusedByHTTP(t *testing.T) {
	refused := func(status int) error {
		return &upstream.Error{Code: -32603, Reason: "http_status", Message: "the server answered with HTTP", Status: status}
	}
	for _, tt := range []struct {
		method mcp.Method
		err    error
		code   int
	}{
		{mcp.Other, refused(400), -32601},
		{mcp.Other, refused(404), -32601},
		{mcp.Other, refused(500), -32603},
		{mcp.Other, upstream.ErrTimeout, -32000},
		{mcp.ToolsCall, refused(400), -32603},
	} {
		if got := upstream.RPCError(unknownMethod(tt.method, tt.err)); got.Code != tt.code {
			t.Errorf("%v, %v: code %d, want %d", tt.method, tt.err, got.Code, tt.code)
		}
	}
}
