package front

import (
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// row is a request and the refusal that it must get.
type row struct {
	name    string
	session string // revision of a session that is opened first and whose header is sent
	method  string // default POST
	path    string // default /mcp
	headers []string
	body    string

	status int
	code   string // JSON-RPC
	reason string
	id     string // default null
}

func (c row) run(t *testing.T, r *rig) {
	headers := c.headers
	if c.session != "" {
		headers = append([]string{r.open(c.session)}, headers...)
	}
	method, path := c.method, c.path
	if method == "" {
		method = "POST"
	}
	if path == "" {
		path = "/mcp"
	}
	id := c.id
	if id == "" {
		id = "null"
	}
	before := r.procs.count()
	got := r.do(method, path, c.body, headers...)
	if got.status != c.status || lookup(got.body, "error", "code") != c.code || replyID(got.body) != id {
		t.Errorf("got %d %s\nwant status %d, code %s, id %s", got.status, got.body, c.status, c.code, id)
	}
	if reason := lookup(got.body, "error", "data", "reason"); reason != `"`+c.reason+`"` {
		t.Errorf("reason %s, want %s", reason, c.reason)
	}
	if source := lookup(got.body, "error", "data", "source"); source != `"signalbox"` {
		t.Errorf("source %s", source)
	}
	if ct := got.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("Content-Type %s", ct)
	}
	if _, err := wire.Parse([]byte(got.body)); err != nil {
		t.Errorf("the body is no message: %v", err)
	}
	if n := r.procs.count(); n != before {
		t.Errorf("a refused request started %d processes", n-before)
	}
	if c.session != "" {
		if r.procs.last().saw("smuggled") {
			t.Error("the server saw it")
		}
		if got := r.do("POST", path, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, headers[0]); path == "/mcp" && got.status != 200 {
			t.Errorf("the session is unusable afterwards: %d %s", got.status, got.body)
		}
	}
}

const (
	rev  = "2025-06-18"
	ping = `{"jsonrpc":"2.0","id":5,"method":"ping"}`
)

var messageRows = []row{
	{name: "malformed JSON", session: rev, body: `{"jsonrpc":"2.0","id":1,`, status: 400, code: "-32700", reason: "invalid_message"},
	{name: "malformed JSON without session", body: `{`, status: 400, code: "-32700", reason: "invalid_message"},
	{name: "empty body", session: rev, headers: []string{"Content-Type: application/json"}, status: 400, code: "-32700", reason: "invalid_message"},
	{name: "invalid UTF-8", session: rev, body: "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", status: 400, code: "-32700", reason: "invalid_message"},
	{name: "a number", session: rev, body: `1`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "no jsonrpc", session: rev, body: `{"id":1,"method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message", id: "1"},
	{name: "empty method", session: rev, body: `{"jsonrpc":"2.0","id":1,"method":""}`, status: 400, code: "-32600", reason: "invalid_message", id: "1"},
	{name: "none of method, result, error", session: rev, body: `{"jsonrpc":"2.0","id":1}`, status: 400, code: "-32600", reason: "invalid_message", id: "1"},
	{name: "two byte order marks", session: rev, body: "\ufeff\ufeff" + ping, status: 400, code: "-32700", reason: "invalid_message"},
	{name: "second value", session: rev, body: ping + ping, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "second value after a line break", session: rev, body: ping + "\n" + `{"jsonrpc":"2.0","method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "depth", session: rev, body: strings.Repeat("[", 60_000), status: 400, code: "-32600", reason: "batch"},
	{name: "depth in params", session: rev, body: `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":` + strings.Repeat("[", 60_000), status: 400, code: "-32600", reason: "invalid_message"},

	{name: "duplicate id", session: rev, body: `{"jsonrpc":"2.0","id":1,"method":"smuggled","id":2}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "duplicate method", session: rev, body: `{"jsonrpc":"2.0","id":1,"method":"ping","method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message", id: "1"},
	{name: "duplicate method by case", session: rev, body: `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message", id: "1"},
	{name: "duplicate method by escape", session: rev, body: `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message", id: "1"},

	{name: "id null", session: rev, body: `{"jsonrpc":"2.0","id":null,"method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "id fractional", session: rev, body: `{"jsonrpc":"2.0","id":1.5,"method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "id exponent", session: rev, body: `{"jsonrpc":"2.0","id":1e3,"method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "id bool", session: rev, body: `{"jsonrpc":"2.0","id":true,"method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "id array", session: rev, body: `{"jsonrpc":"2.0","id":[1],"method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "id object", session: rev, body: `{"jsonrpc":"2.0","id":{},"method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},
	{name: "id too long", session: rev, body: `{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 1025) + `","method":"smuggled"}`, status: 400, code: "-32600", reason: "invalid_message"},

	{name: "batch without session", body: "[" + ping + "]", status: 400, code: "-32600", reason: "batch"},
	{name: "batch in 2024-11-05", session: "2024-11-05", body: "[" + ping + "]", status: 400, code: "-32600", reason: "batch"},
	{name: "batch in 2025-06-18", session: "2025-06-18", body: `[{"jsonrpc":"2.0","id":1,"method":"smuggled"}]`, status: 400, code: "-32600", reason: "batch"},
	{name: "batch in 2025-11-25", session: "2025-11-25", body: " [" + ping + "]", status: 400, code: "-32600", reason: "batch"},
	{name: "empty batch", session: "2025-03-26", body: "[]", status: 400, code: "-32600", reason: "invalid_message"},
	{name: "batch too large", session: "2025-03-26", body: "[" + strings.Repeat("1,", 1000) + "1]", status: 400, code: "-32600", reason: "batch"},
	{name: "batch cut short", session: "2025-03-26", body: `[{"jsonrpc":"2.0","method":"smuggled"},`, status: 400, code: "-32700", reason: "invalid_message"},

	{name: "session id missing", body: ping, status: 400, code: "-32600", reason: "no_session", id: "5"},
	{name: "session id missing, notification", body: initialized, status: 400, code: "-32600", reason: "no_session"},
	{name: "session id missing, initialize as notification", body: `{"jsonrpc":"2.0","method":"initialize"}`, status: 400, code: "-32600", reason: "no_session"},
	{name: "session id missing, response", body: `{"jsonrpc":"2.0","id":3,"result":{}}`, status: 400, code: "-32600", reason: "no_session"},
	{name: "session id missing, GET", method: "GET", status: 400, code: "-32600", reason: "no_session"},
	{name: "session id missing, DELETE", method: "DELETE", status: 400, code: "-32600", reason: "no_session"},
}

func TestMessagesThatAreRefused(t *testing.T) {
	rows := messageRows
	for member, params := range map[string]string{
		"params":          `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{},"params":{}}`,
		"_meta":           `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"_meta":{},"_meta":{}}}`,
		"name":            `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"name":"a","name":"b"}}`,
		"name by case":    `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"name":"a","NAME":"b"}}`,
		"uri":             `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"uri":"a","uri":"b"}}`,
		"requestId":       `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"requestId":1,"requestId":2}}`,
		"requestState":    `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"requestState":"a","requestState":"b"}}`,
		"progressToken":   `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"_meta":{"progressToken":1,"progressToken":2}}}`,
		"reserved _meta":  `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"_meta":{"io.modelcontextprotocol/x":1,"io.modelcontextprotocol/x":2}}}`,
		"task":            `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"task":{},"task":{}}}`,
		"params and meta": `{"jsonrpc":"2.0","id":1,"method":"smuggled","params":{"_meta":{}},"params":{"_meta":{}}}`,
	} {
		rows = append(rows, row{name: "duplicate " + member, session: rev, body: params, status: 400, code: "-32600", reason: "invalid_message", id: "1"})
	}
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) { inBubble(t, setup{}, c.run) })
	}
}

func TestHeadersThatAreRefused(t *testing.T) {
	var rows []row
	for _, name := range []string{"Mcp-Session-Id", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Authorization", "Last-Event-ID"} {
		rows = append(rows, row{name: "two values of " + name, headers: []string{name + ": a", name + ": b"}, body: ping, status: 400, code: "-32600", reason: "headers"})
	}
	rows = append(rows,
		row{name: "bearer token beside X-API-Key", headers: []string{"Authorization: bearer x", "X-API-Key: y"}, body: ping, status: 400, code: "-32600", reason: "headers"},
		row{name: "version unsupported", session: rev, headers: []string{"MCP-Protocol-Version: abc"}, body: ping, status: 400, code: "-32022", reason: "unsupported_version", id: "5"},
		row{name: "version of the other era", session: rev, headers: []string{"MCP-Protocol-Version: 2026-07-28"}, body: ping, status: 400, code: "-32602", reason: "meta", id: "5"},
		row{name: "version unsupported, GET", session: rev, method: "GET", headers: []string{"MCP-Protocol-Version: abc"}, status: 400, code: "-32022", reason: "unsupported_version"},
		row{name: "version unsupported, DELETE", session: rev, method: "DELETE", headers: []string{"MCP-Protocol-Version: abc"}, status: 400, code: "-32022", reason: "unsupported_version"},
		row{name: "version of the other era in the body", session: rev, body: `{"jsonrpc":"2.0","id":5,"method":"smuggled","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, status: 400, code: "-32020", reason: "header_mismatch", id: "5"},
		row{name: "Accept that fits nothing", session: rev, headers: []string{"Accept: text/html"}, body: ping, status: 406, code: "-32600", reason: "accept"},
		row{name: "Accept of GET without events", session: rev, method: "GET", headers: []string{"Accept: application/json"}, status: 406, code: "-32600", reason: "accept"},
		row{name: "Accept of a browser's GET", method: "GET", headers: []string{"Accept: text/html"}, status: 406, code: "-32600", reason: "accept"},
		row{name: "Content-Type text/plain", session: rev, headers: []string{"Content-Type: text/plain"}, body: ping, status: 415, code: "-32600", reason: "content_type"},
		row{name: "Content-Type of a form", session: rev, headers: []string{"Content-Type: application/x-www-form-urlencoded"}, body: ping, status: 415, code: "-32600", reason: "content_type"},
		row{name: "Content-Type with a suffix", session: rev, headers: []string{"Content-Type: application/vnd.x+json"}, body: ping, status: 415, code: "-32600", reason: "content_type"},
		row{name: "Content-Type missing with Origin", session: rev, headers: []string{"Content-Type:", "Origin: http://localhost:3000"}, body: ping, status: 415, code: "-32600", reason: "content_type"},
		row{name: "compressed", session: rev, headers: []string{"Content-Encoding: gzip"}, body: ping, status: 415, code: "-32600", reason: "content_encoding"},
	)
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) { inBubble(t, setup{}, c.run) })
	}
}

func TestSameHeaderValueTwiceIsOne(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		if got := r.do("POST", "/mcp", ping, session, session, "MCP-Protocol-Version: "+rev, "MCP-Protocol-Version: "+rev); got.status != 200 {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})
}

func TestVersionHeader(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		got := r.do("POST", "/mcp", initBody("2025-11-25"), "MCP-Protocol-Version: 2099-01-01", "Mcp-Method: other", "Mcp-Name: other")
		if got.status != 200 || lookup(got.body, "result", "protocolVersion") != `"2025-11-25"` {
			t.Fatalf("initialize: %d %s", got.status, got.body)
		}
		session := "Mcp-Session-Id: " + got.header.Get("Mcp-Session-Id")
		for _, v := range []string{"", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
			if got := r.do("POST", "/mcp", ping, session, "MCP-Protocol-Version: "+v); got.status != 200 {
				t.Errorf("version %q: %d %s", v, got.status, got.body)
			}
		}
		got = r.do("POST", "/mcp", ping, session, "MCP-Protocol-Version: 2020-01-01")
		if lookup(got.body, "error", "data", "requested") != `"2020-01-01"` || !strings.Contains(got.body, `"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"]`) {
			t.Errorf("got %s", got.body)
		}
	})
}

// A byte order mark, a raw line break between tokens and white space are no
// fault, and none of them breaks the framing by lines.
func TestMessagesThatOnlyLookWrong(t *testing.T) {
	for name, body := range map[string]string{
		"byte order mark":  "\ufeff" + `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"a":1}}`,
		"line breaks":      "\r\n{\n\"jsonrpc\":\"2.0\",\r\n\"id\":5,\"method\":\"echo\",\"params\":{\"a\":1}\n}\n",
		"method escaped":   `{"jsonrpc":"2.0","id":5,"method":"\u0065cho","params":{"a":1}}`,
		"more members":     `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"a":1},"zNew":{"k":[1],"k":[2]}}`,
		"same name deeper": `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"a":1},"x":{"id":7,"method":"y"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, r *rig) {
				got := r.do("POST", "/mcp", body, r.open(rev))
				if got.status != 200 || replyID(got.body) != "5" || lookup(got.body, "result", "a") != "1" {
					t.Errorf("got %d %s", got.status, got.body)
				}
			})
		})
	}
}

func TestIDsComeBackByteForByte(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			inBubble(t, setup{shared: shared}, func(t *testing.T, r *rig) {
				session := r.open(rev)
				for _, id := range []string{`1`, `"1"`, `0`, `-1`, `""`, `"1e3"`, `9007199254740993`, `18446744073709551616`, `"a\u002db"`, `"` + strings.Repeat("x", 900) + `"`} {
					got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":`+id+`,"method":"echo","params":{"v":9007199254740993}}`, session)
					if got.status != 200 || replyID(got.body) != id || lookup(got.body, "result", "v") != "9007199254740993" {
						t.Errorf("%s: %d %s", id, got.status, got.body)
					}
				}
			})
		})
	}
}
