package dialog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// pair is a member of an object: its decoded name, and the bytes of its value.
type pair struct{ name, value string }

func pairs(raw []byte, object wire.Span) (all []pair) {
	for key, value := range wire.Members(raw, object.Start) {
		name, _ := wire.Unquote(key.Of(raw))
		all = append(all, pair{string(name), string(value.Of(raw))})
	}
	return all
}

// less returns the members whose names are not given, whatever their case.
func less(all []pair, names ...string) []pair {
	return slices.DeleteFunc(slices.Clone(all), func(p pair) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(p.name, n) })
	})
}

// named returns the value of a member, "" if there is none.
func named(all []pair, name string) string {
	for _, p := range all {
		if p.name == name {
			return p.value
		}
	}
	return ""
}

func objectOf(t *testing.T, raw string) []pair {
	t.Helper()
	if !strings.HasPrefix(raw, "{") {
		return nil
	}
	return pairs([]byte(raw), wire.Span{Start: 0, End: uint32(len(raw))})
}

func quiet(t testing.TB, revision mcp.Revision) *conn {
	init, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + string(revision) + `","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	req := upstream.NewRequest(init)
	return newConn(New(Config{Name: "srv", Question: time.Hour, CallLimit: time.Hour}), &req, nil)
}

// What goes to the server is the client's request but for the metadata of the
// session and of the round.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`,
		` { "params" : { "a":1 , "_meta" : { } } , "method":"prompts/get" , "id" : "x" , "jsonrpc":"2.0" } `,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/logLevel":"x","progressToken":1},"requestState":"x","inputResponses":{},"n":1e5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":null,"RequestState":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"requestSt\u0061te":"x","_meta":{"a":{},"io.modelcontextprotocol/ClientInfo":2}}}`,
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	ours := []string{mcp.MetaVersion, mcp.MetaClientCapabilities, mcp.MetaClientInfo, mcp.MetaLogLevel}
	f.Fuzz(func(t *testing.T, text string, again bool) {
		msg, err := wire.Parse([]byte(text))
		if err != nil || msg.Kind != wire.Request {
			return
		}
		c := quiet(t, mcp.R20251125)
		c.level = []byte(`"info"`)
		req := upstream.NewRequest(msg)
		k := newCall(c, &req, nil)
		k.again = again
		if again && retries(k.method) {
			k.next = round{responses: []byte(`{"k":{}}`), state: []byte(`"s"`)}
		}
		out, err := k.request()
		if err != nil {
			return
		}
		if again == bytes.Equal(out.Msg.Bytes(out.Msg.ID), msg.Bytes(msg.ID)) {
			t.Errorf("the id is %s: %s", out.Msg.Bytes(out.Msg.ID), out.Msg.Raw)
		}
		was, is := objectOf(t, string(msg.Raw)), objectOf(t, string(out.Msg.Raw))
		same(t, less(was, "id", "params"), less(is, "id", "params"), text, out.Msg.Raw)
		wasParams, isParams := objectOf(t, named(was, "params")), objectOf(t, named(is, "params"))
		drop := []string{"_meta"}
		if retries(k.method) {
			drop = append(drop, inputResponses, requestState)
			if again != (named(isParams, requestState) == `"s"`) || again != (named(isParams, inputResponses) == `{"k":{}}`) {
				t.Errorf("round %v: %s", again, out.Msg.Raw)
			}
		}
		same(t, less(wasParams, drop...), less(isParams, drop...), text, out.Msg.Raw)
		wasMeta, isMeta := objectOf(t, named(wasParams, "_meta")), objectOf(t, named(isParams, "_meta"))
		same(t, less(wasMeta, ours...), less(isMeta, ours...), text, out.Msg.Raw)
		if named(isMeta, mcp.MetaVersion) != `"2026-07-28"` || named(isMeta, mcp.MetaLogLevel) != `"info"` || len(isMeta)-len(less(isMeta, ours...)) != 4 {
			t.Errorf("metadata of %s", out.Msg.Raw)
		}
	})
}

func same(t *testing.T, was, is []pair, in string, out []byte) {
	t.Helper()
	if !slices.Equal(was, is) {
		t.Errorf("members %q became %q:\n%s\n%s", was, is, in, out)
	}
}

// What a client gets is the server's result without what it does not know.
func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{"resultType":"complete","ttlMs":1,"a":[1.0],"cacheScope":"public"}`,
		`{"_meta":{"io.modelcontextprotocol/serverInfo":{}}, "resultType" : "complete" }`,
		`{"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{},"b":2},"structuredContent":[{}]}`,
		`{"structuredContent":{"a":1}}`,
		`{"tools":[{"name":"t","outputSchema":{"$ref":"#/x","$defs":{}}},{"outputSchema":1},2],"ttlMs":1}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, method := range []mcp.Method{mcp.ToolsCall, mcp.ToolsList, mcp.ResourcesRead} {
			raw := `{"jsonrpc":"2.0","id":1,"result":` + text + `}`
			msg, err := wire.Parse([]byte(raw))
			if err != nil || !isObject(msg.Raw, msg.Result) || msg.ID.Start > msg.Result.Start {
				return
			}
			k := &call{c: quiet(t, mcp.R20251125), method: method}
			out, err := wire.Parse(splice(msg.Raw, k.plain(&msg)))
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			was, is := pairs(msg.Raw, msg.Result), pairs(out.Raw, out.Result)
			gone := []string{"resultType", "ttlMs", "cacheScope"}
			changed := append(gone, "_meta", "structuredContent", "tools")
			same(t, exactly(was, changed...), exactly(is, changed...), text, out.Raw)
			for _, name := range gone {
				if named(is, name) != "" {
					t.Errorf("%s is left: %s", name, out.Raw)
				}
			}
			meta := objectOf(t, named(was, "_meta"))
			same(t, exactly(meta, mcp.MetaServerInfo), objectOf(t, named(is, "_meta")), text, out.Raw)
			switch content := named(is, "structuredContent"); {
			case method == mcp.ToolsCall && content != "" && content[0] != '{':
				t.Errorf("structuredContent is no object: %s", out.Raw)
			case method != mcp.ToolsCall && content != named(was, "structuredContent"):
				t.Errorf("structuredContent has changed: %s", out.Raw)
			}
			if method != mcp.ToolsList && named(is, "tools") != named(was, "tools") {
				t.Errorf("tools have changed: %s", out.Raw)
			}
		}
	})
}

// exactly is less by the exact names.
func exactly(all []pair, names ...string) []pair {
	return slices.DeleteFunc(slices.Clone(all), func(p pair) bool { return slices.Contains(names, p.name) })
}

// A wrapped schema holds the schema, in which nothing but references into the
// document has changed.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{
		`{"type":"array","items":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#"}}}`,
		`{"$schema":"s","anyOf":[{"$dynamicRef":"#/a"},true],"enum":[{"$ref":"#/b"}]}`,
		`{"$id":"i","$schema":"s","$ref":"#/a"}`, `true`, `[{"$ref":"#/a"}]`, `{"properties":{"$ref":{"$ref":"#\/a"}},"const":"#/x"}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		msg, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":` + text + `}`))
		if err != nil || string(msg.Bytes(msg.Result)) != text {
			return
		}
		var was any
		if json.Unmarshal([]byte(text), &was) != nil {
			return // a number that no float can hold
		}
		if all := objectOf(t, text); len(all)-len(exactly(all, "$schema")) > 1 {
			return // which one counts is open
		}
		out := wrapSchema(msg.Raw, msg.Result)
		var is map[string]any
		if err := json.Unmarshal(out, &is); err != nil || is["type"] != "object" {
			t.Fatalf("%v: %s", err, out)
		}
		inner := is["properties"].(map[string]any)["result"]
		if m, ok := inner.(map[string]any); ok {
			if dialect, moved := is["$schema"]; moved {
				m["$schema"] = dialect
			}
		}
		if !alike(was, inner) {
			t.Errorf("%s\nbecame\n%s", text, out)
		}
	})
}

func alike(was, is any) bool {
	switch a := was.(type) {
	case map[string]any:
		b, ok := is.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			other, has := b[name]
			if !has || !alike(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := is.([]any)
		return ok && slices.EqualFunc(a, b, alike)
	case string:
		b, ok := is.(string)
		return ok && (a == b || strings.HasPrefix(a, "#") && b == "#/properties/result"+a[1:])
	}
	return was == is
}

// No response of a server does harm: the call ends once, or its client is asked.
func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		`"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{"mode":"url"}}},"requestState":""}`,
		`"result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list","params":{}}}}`,
		`"error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"a":{"b":{}}}}}`,
		`"error":{"code":-32022,"data":{"supported":["x",1]}}`,
		`"error":{"code":-32602,"data":{"uri":"x"}}`,
		`"error":{}`, `"result":null`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		raw := `{"jsonrpc":"2.0","id":1,` + text + `}`
		if msg, err := wire.Parse([]byte(raw)); err != nil || msg.Kind != wire.Response {
			return
		}
		for _, method := range []string{"tools/call", "resources/read", "tools/list"} {
			x := newRig(t, nil)
			x.begin("2025-11-25", `{"roots":{},"elicitation":{"url":{}}}`, `{"tools":{}}`)
			s := x.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"name":"t"}}`)
			x.asker.last().says(raw)
			x.conn.mu.Lock()
			open := len(x.conn.calls)
			x.conn.mu.Unlock()
			if open+s.count() != 1 {
				t.Errorf("%d calls are open, and ended %d times", open, s.count())
			}
			x.finish()
		}
	})
}
