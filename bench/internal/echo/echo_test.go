package echo

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAnswer(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"echo, id last", `{"method":"tools/call","params":{"name":"echo","arguments":{"message":"a\"}]"},"_meta":{"progressToken":1}},"jsonrpc":"2.0","id":7}`,
			`{"jsonrpc":"2.0","id":7,"result":{"content":[],"structuredContent":{"message":"a\"}]"}}}`},
		{"string id, spaces", `{ "jsonrpc" : "2.0" , "id" : "R|n:1" , "method" : "ping" }`,
			`{"jsonrpc":"2.0","id":"R|n:1","result":{}}`},
		{"escaped backslash", `{"id":1,"method":"tools/call","params":{"arguments":{"message":"\\"},"name":"echo"}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"message":"\\"}}}`},
		{"big", `{"id":1,"method":"tools/call","params":{"name":"big","arguments":{"message":"abc","bytes":7}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"message":"abcabca"}}}`},
		{"size", `{"id":1,"method":"tools/call","params":{"name":"size","arguments":{"message":"123456789"}}}`,
			`{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"message":"123456789","bytes":9,"crc":3421780262}}}`},
		{"initialize", `{"id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
			`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1.0.0"}}}`},
		{"notification", `{"method":"notifications/initialized"}`, ``},
		{"a response", `{"id":1,"result":{}}`, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := string(Parse([]byte(tc.in)).Answer(nil))
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAnswerPerRequest(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, tc := range []struct{ name, in, want string }{
		{"echo", `{"method":"tools/call","params":{"name":"echo","arguments":{"message":"m"},` + meta + `},"jsonrpc":"2.0","id":"R1"}`,
			`{"jsonrpc":"2.0","id":"R1","result":{"resultType":"complete","content":[],"structuredContent":{"message":"m"}}}`},
		{"discover", `{"method":"server/discover","params":{` + meta + `},"jsonrpc":"2.0","id":1}`,
			`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
				`"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo","version":"1.0.0"}}}}`},
		{"list", `{"method":"tools/list","params":{` + meta + `},"jsonrpc":"2.0","id":2}`,
			`{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[{"name":"echo","inputSchema":{"type":"object"}}],"ttlMs":0,"cacheScope":"private"}}`},
		{"a handshake", `{"method":"initialize","params":{"protocolVersion":"2025-11-25"},"jsonrpc":"2.0","id":3}`,
			`{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found"}}`},
		{"notification", `{"method":"notifications/cancelled"}`, ``},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := string(Parse([]byte(tc.in)).AnswerPerRequest(nil))
			if got != tc.want || got != "" && !json.Valid([]byte(got)) {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	discover := Parse([]byte(`{"method":"server/discover","id":1}`))
	if got := string(discover.Answer(nil)); !strings.Contains(got, "-32601") {
		t.Errorf("a server of the handshake era answers server/discover by %s", got)
	}
}

func TestSteps(t *testing.T) {
	for _, tc := range []struct{ name, params, want string }{
		{"string token", `{"name":"steps","arguments":{"message":"m"},"_meta":{"x":1,"progressToken":"a-1"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"a-1","progress":1,"total":3}}` +
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"a-1","progress":2,"total":3}}` +
				`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"a-1","progress":3,"total":3}}`},
		{"not asked for", `{"name":"steps","arguments":{"message":"m"}}`, ""},
		{"other tool", `{"name":"echo","arguments":{"message":"m"},"_meta":{"progressToken":7}}`, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			call := Parse([]byte(`{"id":1,"method":"tools/call","params":` + tc.params + `}`))
			var got []byte
			for i := range call.Steps() {
				got = call.Step(got, i+1)
			}
			if string(got) != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if want := `{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"message":"m"}}}`; string(call.Answer(nil)) != want {
				t.Errorf("answer %s", call.Answer(nil))
			}
		})
	}
}

func FuzzMembers(f *testing.F) {
	f.Add(`{"a":1,"b":[{"c":"}\\"}],"d":null}`)
	f.Add(`{"a":"\`)
	f.Fuzz(func(t *testing.T, in string) {
		got := map[string]string{}
		members([]byte(in), func(key, value []byte) bool { got[string(key)] = string(value); return true })
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(in), &want) != nil || strings.Contains(in, `\`) {
			return // must only not crash; escaped keys are compared by nobody
		}
		for key, value := range want {
			if strings.ToValidUTF8(key, "") == key && !strings.ContainsRune(key, '\uFFFD') && got[key] != string(value) {
				t.Errorf("%q: got %s, want %s", key, got[key], value)
			}
		}
	})
}
