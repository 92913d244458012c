package park

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func TestDown(t *testing.T) {
	for _, tt := range []struct{ in, out string }{
		{`{"id":1,"jsonrpc":"2.0","method":"m","params":{"_meta":{"io.modelcontextprotocol/a":1}}}`, `{"id":7,"jsonrpc":"2.0","method":"m","params":{"_meta":{}}}`},
		{`{"params":{"requestState":"s","_meta":{ "a":1 , "io.modelcontextprotocol/a":{} , "\u0069o.modelcontextprotocol/b":2 },"inputResponses":{} },"jsonrpc":"2.0","method":"m","id":"x"}`,
			`{"params":{"_meta":{ "a":1 } },"jsonrpc":"2.0","method":"m","id":7}`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"IO.modelcontextprotocol/z":1,"progressToken":"p","b":1.0}}}`, `{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"progressToken":7,"b":1.0}}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{"progressToken":1.5}}}`, `{"jsonrpc":"2.0","id":7,"method":"m","params":{"_meta":{"progressToken":1.5}}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":{"inputResponses":[]}}`, `{"jsonrpc":"2.0","id":7,"method":"m","params":{}}`},
		{`{"jsonrpc":"2.0","id":1,"method":"m"}`, `{"jsonrpc":"2.0","id":7,"method":"m"}`},
	} {
		m, err := wire.Parse([]byte(tt.in))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, tt.in, string(down(&m, []byte("7"))), tt.out)
	}
}

// list is the members of an object, name and value as written, in order, without
// those that out names.
func list(raw []byte, object wire.Span, out func(string) bool) []string {
	var all []string
	for name, value := range wire.Members(raw, object.Start) {
		if n, _ := wire.Unquote(name.Of(raw)); !out(string(n)) {
			all = append(all, fmt.Sprintf("%s:%s", name.Of(raw), value.Of(raw)))
		}
	}
	return all
}

func never(string) bool { return false }

func in(names ...string) func(string) bool {
	return func(n string) bool { return slices.Contains(names, n) }
}

// What stays of a request stays byte for byte and in its order, and what goes is
// gone.
func FuzzDown(f *testing.F) {
	f.Add(`"a":1,"_meta":{"io.modelcontextprotocol/protocolVersion":"v","progressToken":1,"b":2},"requestState":"s"`)
	f.Add(`"requestState":"s" , "inputResponses":{},"_meta":{}`)
	f.Add(`"_meta":[],"x":"}"`)
	f.Add(`"_meta":{"io.modelcontextprotocol/x":1, "io.modelcontextprotocol/y":2},"z":{"_meta":{"io.modelcontextprotocol/x":1}}`)
	f.Fuzz(func(t *testing.T, params string) {
		m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":"client","method":"tools/call","params":{` + params + `}}`))
		if err != nil || !m.Params.Present() || m.Raw[m.Params.Start] != '{' {
			return
		}
		before := bytes.Clone(m.Raw)
		out, err := wire.Parse(down(&m, []byte("77")))
		if err != nil {
			t.Fatalf("%s became no message: %v", before, err)
		}
		if !bytes.Equal(before, m.Raw) {
			t.Error("the request itself was changed")
		}
		equal(t, "id and method", string(out.Bytes(out.ID))+string(out.Bytes(out.Method)), "77"+string(m.Bytes(m.Method)))
		equal(t, "params", list(out.Raw, out.Params, in("_meta")), list(m.Raw, m.Params, in("_meta", "requestState", "inputResponses")))
		if !m.P.Meta.Present() || m.Raw[m.P.Meta.Start] != '{' {
			equal(t, "_meta", string(out.Bytes(out.P.Meta)), string(m.Bytes(m.P.Meta)))
			return
		}
		gone := func(name string) bool { return wire.IsReserved([]byte(name)) || name == "progressToken" }
		equal(t, "_meta", list(out.Raw, out.P.Meta, in("progressToken")), list(m.Raw, m.P.Meta, gone))
		if wire.ValidIDToken(m.Bytes(m.P.MetaToken)) {
			equal(t, "token", string(out.Bytes(out.P.MetaToken)), "77")
		} else {
			equal(t, "token", string(out.Bytes(out.P.MetaToken)), string(m.Bytes(m.P.MetaToken)))
		}
	})
}

// A result gets what the era wants; all its other members stay byte for byte.
func FuzzUp(f *testing.F) {
	for _, s := range []string{`{}`, `{"tools":[{"a":1,"execution":2},{"execution":1,"execution":2},[],{"b":{"execution":3}}],"x":1}`,
		`{"_meta":{"a":1},"ttlMs":5,"resultType":"complete"}`, `{ "_meta" : { } }`, `{"_meta":null,"resultType":"other","tools":{"execution":1}}`} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, result string, lists bool) {
		m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`))
		if err != nil || !m.Result.Present() || m.Raw[m.Result.Start] != '{' {
			return
		}
		method := mcp.ToolsCall
		if lists {
			method = mcp.ToolsList
		}
		before := bytes.Clone(m.Raw)
		text, err := up(&m, []byte(`"client"`), method, []byte(`{"name":"n"}`))
		if err != nil {
			t.Fatal(err)
		}
		out, err := wire.Parse(text)
		if err != nil {
			t.Fatalf("%s became no message: %v", before, err)
		}
		if !bytes.Equal(before, m.Raw) {
			t.Error("the answer itself was changed")
		}
		equal(t, "id", string(out.Bytes(out.ID)), `"client"`)
		ours := in("resultType", "ttlMs", "cacheScope", "_meta", "tools")
		equal(t, "result", list(out.Raw, out.Result, ours), list(m.Raw, m.Result, ours))
		was, is := m.Bytes(m.Result), out.Bytes(out.Result)
		for name, want := range map[string]string{"resultType": `"complete"`, "ttlMs": "0", "cacheScope": `"private"`} {
			had, has := at(string(was), name), at(string(is), name)
			switch {
			case had != "":
				equal(t, name, has, had)
			case name != "resultType" && (!lists || at(string(is), "resultType") != `"complete"`):
				equal(t, name, has, "")
			default:
				equal(t, name, has, want)
			}
		}
		if meta := at(string(was), "_meta"); meta == "" {
			equal(t, "_meta", at(string(is), "_meta"), `{"io.modelcontextprotocol/serverInfo":{"name":"n"}}`)
		} else if meta[0] != '{' {
			equal(t, "_meta", at(string(is), "_meta"), meta)
		} else {
			had, _ := wire.Lookup(was, "_meta")
			has, _ := wire.Lookup(is, "_meta")
			info := in(mcp.MetaServerInfo)
			equal(t, "_meta", list(is, has, info), list(was, had, info))
		}
		had, _ := wire.Lookup(was, "tools")
		if has, ok := wire.Lookup(is, "tools"); ok {
			equal(t, "tools", tools(is, has, never), tools(was, had, func(n string) bool { return lists && n == "execution" }))
		}
	})
}

// tools is what stands in result.tools, by elements and members.
func tools(raw []byte, at wire.Span, out func(string) bool) [][]string {
	if raw[at.Start] != '[' {
		return [][]string{{string(at.Of(raw))}}
	}
	var all [][]string
	for e := range wire.Elements(raw, at.Start) {
		if raw[e.Start] != '{' {
			all = append(all, []string{string(e.Of(raw))})
			continue
		}
		all = append(all, list(raw, e, out))
	}
	return all
}

// An error keeps everything but its code, and what is added to data.
func FuzzErrorUp(f *testing.F) {
	f.Add(`{"code":-32002,"message":"m"}`)
	f.Add(`{"message":"m","data":{"a":1},"code":-32002}`)
	f.Add(`{"code":"x","data":null}`)
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, failure string) {
		m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"error":` + failure + `}`))
		if err != nil || !m.Error.Present() {
			return
		}
		out, err := wire.Parse(errorUp(&m, []byte("5"), []byte(`"u"`)))
		if err != nil {
			t.Fatalf("%s became no message: %v", failure, err)
		}
		equal(t, "id", string(out.Bytes(out.ID)), "5")
		ours := in("code", "data")
		equal(t, "error", list(out.Raw, out.Error, ours), list(m.Raw, m.Error, ours))
		code := readFailure(&out).code
		if code == 0 || code == -32002 || code == -32042 || code <= -32000 && code >= -32019 {
			t.Errorf("%s became code %d", failure, code)
		}
		had, has := at(string(m.Bytes(m.Error)), "data"), at(string(out.Bytes(out.Error)), "data")
		if had != has && (readFailure(&m).code != mcp.CodeResourceNotFound || had != "" && had[0] != '{') {
			t.Errorf("data %s became %s", had, has)
		}
	})
}
