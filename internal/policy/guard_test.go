package policy

import (
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func message(method, params string) string {
	return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
}

const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`

func TestWhatIsAllowedArrivesUnchanged(t *testing.T) {
	x := newRig(t, rules(), &fakeServer{})
	for _, raw := range []string{
		message("tools/call", `{"name":"ok","arguments":{"name":"no","n":1.0}}`),
		message("tools/call", `{"n\u0061me" : "\u006fk","Arguments":{}}`),
		message("tools/call", `{"name":"ok","task":{"ttl":1}}`),
		message("prompts/get", `{"name":"ok"}`),
		message("resources/read", `{"uri":"ok:a","name":"no"}`),
		message("resources/subscribe", `{"uri":"ok:a"}`),
		message("resources/unsubscribe", `{"uri":"ok:a"}`),
		message("completion/complete", `{"ref":{"type":"ref/prompt","name":"ok"},"argument":{"name":"no","value":""}}`),
		message("completion/complete", `{"ref":{"uri":"ok:{a}","type":"ref\/resource"},"argument":{}}`),
		message("subscriptions/listen", `{"notifications":{"toolsListChanged":true},`+modern+`}`),
		message("subscriptions/listen", `{"notifications":{"resourceSubscriptions":[]}}`),
		message("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["ok:a" , "ok:b"]}}`),
		message("tools/list", `{"cursor":"x"}`),
		message("tools/List", `{"name":"no"}`),
		message("x/call", `{"name":"no"}`),
		message("ping", `{}`), message("tasks/result", `{"taskId":"no"}`), message("logging/setLevel", `{"level":"no"}`),
	} {
		if _, err := x.call(raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestWhatIsNotAllowedNeverArrives(t *testing.T) {
	x := newRig(t, rules(), &fakeServer{})
	for _, c := range []struct {
		method, params string
		code           int
		message        string
	}{
		{"tools/call", `{"name":"no"}`, -32602, "Unknown tool: no"},
		{"tools/call", `{"name":"okdenied","task":{}}`, -32602, "Unknown tool: okdenied"},
		{"tools/call", `{"name":"okd\u0065nied"}`, -32602, "Unknown tool: okdenied"},
		{"tools\\/c\\u0061ll", `{"n\u0061me":"no"}`, -32602, "Unknown tool: no"},
		{"tools/call", `{"name":"OK"}`, -32602, "Unknown tool: OK"},
		{"tools/call", `{"name":"ok\ud800"}`, -32602, "Unknown tool: ok\uFFFD"},
		{"tools/call", `{"name":"ok\u0000"}`, -32602, "Unknown tool: ok\x00"},
		{"tools/call", `{"name":"` + strings.Repeat("é", 200) + `"}`, -32602, "Unknown tool: " + strings.Repeat("é", 100) + "..."},
		{"tools/call", `{}`, -32602, "the request names no tool"},
		{"tools/call", `{"Name":"ok"}`, -32602, "the request names no tool"},
		{"tools/call", `{"arguments":{"name":"ok"}}`, -32602, "the request names no tool"},
		{"tools/call", `{"name":null}`, -32602, "the request names no tool"},
		{"tools/call", `{"name":["ok"]}`, -32602, "the request names no tool"},
		{"tools/call", `["ok"]`, -32602, "the request names no tool"},
		{"tools/call", `null`, -32602, "the request names no tool"},
		{"prompts/get", `{"name":"no"}`, -32602, "Unknown prompt: no"},
		{"prompts/get", `{"uri":"ok"}`, -32602, "the request names no prompt"},
		{"resources/read", `{"uri":"no:a"}`, -32002, "Resource not found: no:a"},
		{"resources/read", `{"uri":"no:a",` + modern + `}`, -32602, "Resource not found: no:a"},
		{"resources/read", `{"uri":"ok:a/%2e%2e/b"}`, -32002, "Resource not found: ok:a/%2e%2e/b"},
		{"resources/subscribe", `{"uri":"no:a"}`, -32002, "Resource not found: no:a"},
		{"resources/unsubscribe", `{"uri":"no:a"}`, -32002, "Resource not found: no:a"},
		{"resources/read", `{"name":"ok:a"}`, -32602, "the request names no resource"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"no"}}`, -32602, "Unknown prompt: no"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"{a}"}}`, -32602, "Unknown template: {a}"},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"ok:{a"}}`, -32602, "Unknown template: ok:{a"},
		{"completion/complete", `{"ref":{"type":"ref/resource","name":"ok"}}`, -32602, "the request names no template"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ok","name":"no"}}`, -32602, "params.ref cannot be read: more than one member name, or one in other letters"},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"ok"},"r\u0065f":{}}`, -32602, "params.ref cannot be read: more than one member ref, or one in other letters"},
		{"completion/complete", `{"ref":"ok"}`, -32602, "params.ref cannot be read: no object"},
		{"completion/complete", `{}`, -32602, "params.ref cannot be read: no object"},
		{"completion/complete", `[]`, -32602, "params.ref cannot be read: no object"},
		{"completion/complete", `{"ref":{"name":"ok"}}`, -32602, "params.ref.type is neither ref/prompt nor ref/resource"},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":["ok:a","no:a"]},` + modern + `}`, -32602, "Resource not found: no:a"},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":[["ok:a"]]}}`, -32602, "the request names no resource"},
		{"subscriptions/listen", `{"notifications":{"resourceSubscriptions":"ok:a"}}`, -32602, "resourceSubscriptions is no array"},
		{"subscriptions/listen", `{"notifications":{"ResourceSubscriptions":[]}}`, -32602, "params.notifications cannot be read: more than one member resourceSubscriptions, or one in other letters"},
		{"subscriptions/listen", `{}`, -32602, "params.notifications cannot be read: no object"},
		{"tools/list", `{"task":{}}`, -32602, "a list that is filtered cannot be a task"},
	} {
		_, err := x.call(message(c.method, c.params))
		if err == nil {
			t.Errorf("%s %s arrived", c.method, c.params)
		} else if err.Code != c.code || err.Message != c.message || err.Reason != "policy" {
			t.Errorf("%s %s: %d %q %s", c.method, c.params, err.Code, err.Message, err.Reason)
		}
	}
}

func TestRulesOfOneKindLeaveTheOthersAlone(t *testing.T) {
	all := map[string]string{
		"tool": message("tools/call", `[]`), "prompt": message("prompts/get", `{}`), "resource": message("resources/read", `{}`),
		"template": message("completion/complete", `{"ref":{"type":"ref/resource"}}`), "ref": message("completion/complete", `{"ref":{"type":"ref/prompt"}}`),
		"listen": message("subscriptions/listen", `{}`), "list": message("prompts/list", `{"task":{}}`),
	}
	for name, r := range map[string]*Rules{"tool": {Tools: NewFilter(nil, only("x"))}, "prompt ref list": {Prompts: NewFilter(nil, only("x"))}, "resource template listen": {Resources: NewFilter(nil, only("x"))}} {
		x := newRig(t, r, &fakeServer{})
		for what, raw := range all {
			if _, err := x.call(raw); (err != nil) != strings.Contains(" "+name+" ", " "+what+" ") {
				t.Errorf("rules for %s, %s: %v", name, what, err)
			}
		}
	}
}

// Some servers run a request that has no id.
func TestRequestsWithoutIDAreGuarded(t *testing.T) {
	x := newRig(t, rules(), &fakeServer{})
	for _, raw := range []string{
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"no"}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"ok"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized","params":{"name":"no"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{"name":"no"}}`,
	} {
		if err := x.conn.Send(request(t, raw)); err != nil {
			t.Error(err)
		}
	}
	if len(x.inner.got) != 3 || strings.Contains(x.inner.got[0], "no") || x.refusals(kindTool) != 1 {
		t.Errorf("%q arrived, %d refused", x.inner.got, x.refusals(kindTool))
	}
}

// Where a server cannot tell its users apart, the tasks of 2025-11-25 are neither
// offered nor reached; those of the per-request era are another matter.
func TestNoTasks(t *testing.T) {
	x := newRig(t, &Rules{Shared: true, NoTasks: true}, &fakeServer{})
	x.inner.reply.Deliver(upstream.Frame{Relation: upstream.Reply, Method: mcp.Initialize,
		Data: []byte(`{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{}},"tools":{}}}}`)})
	if got := x.init.data(); len(got) != 1 || !strings.Contains(got[0], `"capabilities":{"tools":{}}`) {
		t.Errorf("the client got %s", got)
	}
	for _, m := range []string{
		message("tasks/list", `{}`), message("tasks/get", `{"taskId":"t"}`), message("tasks/result", `{"taskId":"t"}`), message("tasks/cancel", `{"taskId":"t"}`),
		message("tools/call", `{"name":"a","task":{"ttl":1}}`),
		// What a message of a session says of its version does not change its era.
		message("tasks/list", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}`),
		message("tasks/result", `{"taskId":"t","_meta":{"io.modelcontextprotocol/protocolVersion":5}}`),
	} {
		if _, refused := x.call(m); refused != errNoTasks {
			t.Errorf("%s: %v", m, refused)
		}
	}
	for _, m := range []string{message("tools/call", `{"name":"a"}`), message("tasks/get", `{"taskId":"t",`+modern+`}`)} {
		if _, refused := x.call(m); refused != nil {
			t.Errorf("%s: %v", m, refused)
		}
	}
}
