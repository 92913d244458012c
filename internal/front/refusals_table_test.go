package front

import (
	"fmt"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/auth"
)

const (
	hers      = "Mcp-Session-Id: {hers}"
	asAlice   = "Authorization: Bearer {alice}"
	asMallory = "Authorization: Bearer {mallory}"
	events    = "Accept: text/event-stream"
)

// sessionRefusals: alice's session ids in the hands of others, on each verb of each
// transport.
func sessionRefusals() (rows []refused) {
	for _, with := range []struct {
		name, header string
		status       int
		reason       string
	}{
		{"without a credential", "X-None: x", 401, "missing_credential"},
		{"with an unknown key", "Authorization: Bearer sbx_unknown", 401, "unknown_key"},
		{"with an expired token", "Authorization: Bearer {expired}", 401, "expired"},
		{"with a token for another resource", "Authorization: Bearer {other audience}", 401, "audience"},
		{"with a token of another tenant", "Authorization: Bearer {other tenant}", 401, "issuer"},
		{"with the key of somebody else", asMallory, 404, "session_not_found"},
		{"with a token whose subject is the name of its key", "Authorization: Bearer {token}", 404, "session_not_found"},
	} {
		for _, what := range []struct{ name, send string }{
			{"POST of a request", req("POST /mcp", ping, hers, with.header)},
			{"POST of a notification", req("POST /mcp", initialized, hers, with.header)},
			{"POST of a response", req("POST /mcp", `{"jsonrpc":"2.0","id":1,"result":{}}`, hers, with.header)},
			{"POST of a batch", req("POST /mcp", "["+ping+"]", hers, with.header)},
			{"GET", req("GET /mcp", "", hers, events, with.header)},
			{"GET with Last-Event-ID", req("GET /mcp", "", hers, events, "Last-Event-ID: 1.1", with.header)},
			{"DELETE", req("DELETE /mcp", "", hers, with.header)},
			{"POST to /messages", req("POST /messages?session_id={old}", ping, with.header)},
			{"POST to /message?sessionId=", req("POST /message?sessionId={old}", ping, with.header)},
			{"POST to the path of the server", req("POST /servers/srv/mcp", ping, hers, with.header)},
		} {
			rows = append(rows, refused{"a session id replayed " + with.name + ": " + what.name, with.status, with.reason, what.send})
		}
	}
	for _, open := range []struct{ name, send string }{
		{"initialize", req("POST /mcp", initBody(rev))},
		{"initialize with a session id", req("POST /mcp", initBody(rev), hers)},
		{"initialize with a session id over HTTP+SSE", req("POST /messages?session_id={old}", initBody(rev))},
		{"GET of /sse", req("GET /sse", "", events)},
		{"GET of /servers/srv/sse", req("GET /servers/srv/sse", "", events)},
		{"another method", req("PUT /mcp", ping, hers)},
		{"OPTIONS without Origin", req("OPTIONS /mcp", "", hers)},
	} {
		rows = append(rows, refused{open.name + ", without a credential", 401, "missing_credential", open.send})
	}
	return append(rows,
		refused{"a session id of /messages as Mcp-Session-Id", 404, "session_not_found", req("POST /mcp", ping, "Mcp-Session-Id: {old}", asAlice)},
		refused{"a Mcp-Session-Id at /messages", 404, "session_not_found", req("POST /messages?session_id={hers}", ping, asAlice)},
		refused{"a session id in another case", 404, "session_not_found", req("DELETE /mcp", "", "Mcp-Session-Id: {HERS}", asAlice)},
		refused{"two session ids", 400, "headers", req("DELETE /mcp", "", hers, "Mcp-Session-Id: other", asAlice)},
		refused{"two session ids joined by a comma", 404, "session_not_found", req("DELETE /mcp", "", "Mcp-Session-Id: {hers}, {hers}", asAlice)},
		refused{"a session id in the query of /mcp", 400, "no_session", req("POST /mcp?session_id={hers}", ping, asAlice)},
		refused{"a session id in a cookie", 400, "no_session", req("POST /mcp", ping, "Cookie: Mcp-Session-Id={hers}", asAlice)},
	)
}

var credentialRefusals = []refused{
	{"a key in the query as access_token", 401, "credential_in_query", req("POST /mcp?access_token={alice}", ping, hers)},
	{"a key in the query as key", 401, "missing_credential", req("POST /mcp?key={alice}", ping, hers)},
	{"a key in the query as api_key", 401, "missing_credential", req("POST /mcp?api_key={alice}", ping, hers)},
	{"a key in the query as token", 401, "missing_credential", req("POST /mcp?token={alice}", ping, hers)},
	{"a key in the query as authorization", 401, "missing_credential", req("POST /mcp?Authorization=Bearer%20{alice}", ping, hers)},
	{"a key in the query of /sse", 401, "credential_in_query", req("GET /sse?access_token={alice}", "", events)},
	{"a key in the query of /messages", 401, "credential_in_query", req("POST /messages?session_id={old}&access_token={alice}", ping)},
	{"a key in the query beside a header", 400, "two_credentials", req("POST /mcp?access_token={alice}", ping, hers, asAlice)},
	{"a key as user of the URL", 401, "missing_credential", req("POST http://{alice}@localhost/mcp", ping, hers)},
	{"a key in the body", 401, "missing_credential", req("POST /mcp", "access_token=x", "Content-Type: application/x-www-form-urlencoded", hers)},
	{"a key in a cookie", 401, "missing_credential", req("POST /mcp", ping, hers, "Cookie: access_token={alice}; Authorization={alice}")},
	{"a key as Proxy-Authorization", 401, "missing_credential", req("POST /mcp", ping, hers, "Proxy-Authorization: Bearer {alice}")},
	{"a key as X-Forwarded-Authorization", 401, "missing_credential", req("POST /mcp", ping, hers, "X-Forwarded-Authorization: Bearer {alice}")},
	{"a key as Basic", 401, "scheme", req("POST /mcp", ping, hers, "Authorization: Basic {alice}")},
	{"a name in headers of a proxy", 401, "missing_credential", req("POST /mcp", ping, hers, "X-Forwarded-User: alice", "X-Remote-User: alice", "X-Auth-Request-User: alice", "Remote-User: alice")},
	{"a principal in headers of a replica", 401, "missing_credential", req("POST /mcp", ping, hers, "Signalbox-Principal: alice", "X-Signalbox-Principal: alice", "Signalbox-Peer: x")},
	{"two Authorization headers, the good one first", 400, "headers", req("POST /mcp", ping, hers, asAlice, asMallory)},
	{"two Authorization headers, the good one last", 400, "headers", req("POST /mcp", ping, hers, asMallory, asAlice)},
	{"two Authorization headers in different case", 400, "headers", req("POST /mcp", ping, hers, asAlice, "AUTHORIZATION: Bearer {mallory}")},
	{"an empty Authorization header beside a good one", 400, "headers", req("POST /mcp", ping, hers, "Authorization:", asAlice)},
	{"two X-API-Key headers", 400, "headers", req("POST /mcp", ping, hers, "X-API-Key: {alice}", "X-API-Key: {mallory}")},
	{"a key as bearer beside one as X-API-Key", 400, "headers", req("POST /mcp", ping, hers, asAlice, "X-API-Key: {alice}")},
	{"two keys in one header", 401, "unknown_key", req("POST /mcp", ping, hers, "Authorization: Bearer {alice},{mallory}")},
	{"two credentials in one header", 401, "unknown_key", req("POST /mcp", ping, hers, "Authorization: Bearer {alice}, Bearer {mallory}")},
	{"a key with a space within", 401, "unknown_key", req("POST /mcp", ping, hers, "Authorization: Bearer sbx_ {alice}")},
	{"a key in upper case", 401, "unknown_key", req("POST /mcp", ping, hers, "Authorization: Bearer {ALICE}")},
	{"an underscore for the hyphen of a header", 401, "missing_credential", req("POST /mcp", ping, hers, "X_API_Key: {alice}")},
}

var pathRefusals = func() (rows []refused) {
	for _, p := range []string{
		"//mcp", "///mcp", "/./mcp", "/mcp/../sse", "/sse/../mcp", "/healthz/../mcp", "/healthz//mcp", "/healthz/mcp", "/readyz/../mcp",
		"/mcp//", "/mcp/x", "/mcp;x=y", "/mcp%00", "/mcp%20", "/mcp%0d%0aX:y", "/%2fmcp", "/%2e/mcp", "/mcp%2f..%2fsse", "/%252fmcp", "/%256dcp",
		"/MCP", "/Mcp", "/mcp.json", "/m\u0441p", "/\\mcp", "/mcp\\", "/servers/srv/../../mcp", "/servers//mcp", "/servers/srv", "/servers/SRV/mcp", "/servers/other/mcp", "/servers/srv//mcp", "/servers/../mcp",
		"/servers/srv%2f..%2fother/mcp", "/api/mcp", auth.WellKnown + "x/mcp", "/.well-known/../mcp",
	} {
		rows = append(rows, refused{fmt.Sprintf("path %q, with a key", p), 404, "path", req("POST "+p, ping, hers, asAlice)})
	}
	for _, p := range []string{"/mcp", "/mcp/", "/%6d%63%70", "/mcp%2f", "/mcp?x=/healthz", "/mcp?", "/servers/srv/mcp", "/servers%2fsrv/mcp", "http://localhost/mcp", "http://other.example/mcp", "https://localhost/mcp"} {
		rows = append(rows, refused{fmt.Sprintf("path %q, without a key", p), 401, "missing_credential", req("POST "+p, ping, hers)})
	}
	return append(rows,
		refused{"the metadata as a way past: POST", 405, "method", req("POST "+auth.WellKnown+"/mcp", ping, hers)},
		refused{"the metadata as a way past: dots", 404, "path", req("POST "+auth.WellKnown+"/../../mcp", ping, hers)},
		refused{"the metadata of no server", 404, "path", req("GET "+auth.WellKnown+"/servers/other/mcp", "")},
		refused{"target without a slash", 400, "", req("POST mcp", ping, hers, asAlice)},
		refused{"CONNECT", 404, "path", req("CONNECT localhost:80", "", asAlice)},
		refused{"a fragment in the target", 404, "path", req("POST /mcp#/healthz", ping, hers, asAlice)},
	)
}()

var originRefusals = func() (rows []refused) {
	for _, o := range []string{
		"https://evil.example", "null", "NULL", "http://localhost.evil.example", "http://evil.example/localhost", "http://localhost@evil.example", "http://127.0.0.1.evil.example",
		"http://localhost:80/", "file://", "chrome-extension://abc", "http://localhost http://evil.example", "http://192.168.0.1", "", "//localhost", "javascript://localhost/",
	} {
		rows = append(rows, refused{fmt.Sprintf("Origin %q, with a key", o), 403, "origin", req("POST /mcp", ping, hers, asAlice, "Origin: "+o)})
	}
	return append(rows,
		refused{"two Origins, the good one first", 403, "origin", req("POST /mcp", ping, hers, asAlice, "Origin: http://localhost", "Origin: http://evil.example")},
		refused{"a good Origin twice", 403, "origin", req("POST /mcp", ping, hers, asAlice, "Origin: http://localhost", "Origin: http://localhost")},
		refused{"a preflight of another site", 403, "origin", req("OPTIONS /mcp", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST")},
		refused{"another site at the metadata", 403, "origin", req("GET "+auth.WellKnown, "", "Origin: https://evil.example")},
		refused{"a page's POST without Content-Type", 415, "content_type", req("POST /mcp", ping, hers, asAlice, "Origin: http://localhost", "Content-Type:")},
		refused{"a form of a page", 415, "content_type", req("POST /mcp", ping, hers, asAlice, "Origin: http://localhost", "Content-Type: text/plain")},
		refused{"a Host that is another's, without a key", 401, "missing_credential", req("POST /mcp", ping, hers, "Host: evil.example")},
		refused{"X-Forwarded-Host and -Proto, without a key", 401, "missing_credential", req("POST /mcp", ping, hers, "X-Forwarded-Host: localhost", "X-Forwarded-Proto: https", "Forwarded: for=127.0.0.1;host=localhost")},
		refused{"two Hosts", 400, "", req("POST /mcp", ping, hers, asAlice, "Host: localhost", "Host: evil.example")},
		refused{"no Host", 400, "", strings.Replace(req("POST /mcp", ping, hers, asAlice), "Host: localhost\r\n", "", 1)},
		refused{"a Host with a path", 400, "", req("POST /mcp", ping, hers, asAlice, "Host: localhost/mcp")},
	)
}()

// openRefusals: without authorization a browser must not be tricked into a request.
// The session is anybody's then.
var openRefusals = func() (rows []refused) {
	for _, h := range []string{"evil.example", "evil.example:80", "localhost.evil.example", "evil-localhost", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "a@localhost", "localhost@evil.example", "0x7f.1", "2130706433", "localhost..", "."} {
		rows = append(rows, refused{fmt.Sprintf("without authorization: Host %q", h), 403, "host", req("POST /mcp", ping, hers, "Host: "+h)})
	}
	for _, o := range []string{"https://evil.example", "null", "http://localhost.evil.example", "http://192.168.0.1"} {
		rows = append(rows, refused{fmt.Sprintf("without authorization: Origin %q", o), 403, "origin", req("POST /mcp", ping, hers, "Origin: "+o)})
	}
	return append(rows,
		refused{"without authorization: a good Host in the target, another in the header", 403, "host", req("POST http://evil.example/mcp", ping, hers)},
		refused{"without authorization: Host by X-Forwarded-Host", 403, "host", req("POST /mcp", ping, hers, "Host: evil.example", "X-Forwarded-Host: localhost")},
		refused{"without authorization: an empty Host", 403, "host", req("POST /mcp", ping, hers, "Host:")},
		refused{"without authorization: the metadata", 404, "no_authorization", req("GET "+auth.WellKnown+"/mcp", "")},
		refused{"without authorization: the metadata of an authorization server", 404, "path", req("GET /.well-known/oauth-authorization-server", "")},
	)
}()

// policyRefusals: the rules allow the tool "safe" only. Where a batch has allowed
// elements, "allowed" stands in them.
var policyRefusals = func() (rows []refused) {
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params + `}`
	}
	for _, c := range []struct {
		name, params string
		status       int
		reason       string
	}{
		{"another tool", `{"name":"danger"}`, 200, "policy"},
		{"another tool by escapes", `{"n\u0061me":"d\u0061nger"}`, 200, "policy"},
		{"the allowed tool in another case", `{"name":"Safe"}`, 200, "policy"},
		{"the allowed tool and a space", `{"name":"safe "}`, 200, "policy"},
		{"the allowed tool and U+0000", `{"name":"safe\u0000"}`, 200, "policy"},
		{"the allowed tool and a lone surrogate", `{"name":"safe\ud800"}`, 200, "policy"},
		{"the allowed tool in full-width letters", `{"name":"ｓafe"}`, 200, "policy"},
		{"the allowed tool with a prefix", `{"name":"srv__safe"}`, 200, "policy"},
		{"no tool", `{}`, 200, "policy"},
		{"a tool that is a number", `{"name":1}`, 200, "policy"},
		{"a tool that is null", `{"name":null}`, 200, "policy"},
		{"a tool that is a list", `{"name":["safe"]}`, 200, "policy"},
		{"params that are a list", `["safe"]`, 200, "policy"},
		{"two tools", `{"name":"safe","name":"danger"}`, 400, "invalid_message"},
		{"two tools, one by escapes", `{"name":"safe","n\u0061me":"danger"}`, 400, "invalid_message"},
		{"two tools by case", `{"name":"safe","Name":"danger"}`, 400, "invalid_message"},
		{"a tool under a name in another case", `{"Name":"safe"}`, 200, "policy"},
	} {
		rows = append(rows, refused{"policy: " + c.name, c.status, c.reason, req("POST /mcp", call(c.params), hers, asAlice)})
	}
	danger := call(`{"name":"danger"}`)
	return append(rows,
		refused{"policy: the method by escapes", 200, "policy", req("POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll","params":{"name":"danger"}}`, hers, asAlice)},
		refused{"policy: two methods", 400, "invalid_message", req("POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"danger"}}`, hers, asAlice)},
		refused{"policy: two params", 400, "invalid_message", req("POST /mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe"},"params":{"name":"danger"}}`, hers, asAlice)},
		refused{"policy: a call without an id", 202, "", req("POST /mcp", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"danger"}}`, hers, asAlice)},
		refused{"policy: in a batch", 200, "policy", req("POST /mcp", "["+danger+"]", hers, asAlice)},
		refused{"policy: in a batch, between allowed ones", 200, "policy", req("POST /mcp", `[{"jsonrpc":"2.0","id":2,"method":"allowed"},`+danger+`,{"jsonrpc":"2.0","method":"allowed"}]`, hers, asAlice)},
		refused{"policy: in a batch within a batch", 200, "invalid_message", req("POST /mcp", "[["+danger+"]]", hers, asAlice)},
		refused{"policy: without an id, in a batch", 202, "", req("POST /mcp", `[{"jsonrpc":"2.0","method":"tools/call","params":{"name":"danger"}}]`, hers, asAlice)},
		refused{"policy: over HTTP+SSE", 202, "", req("POST /messages?session_id={old}", danger, asAlice)},
		refused{"policy: in a batch over HTTP+SSE", 202, "", req("POST /messages?session_id={old}", "["+danger+"]", asAlice)},
		refused{"policy: by the path of the server", 200, "policy", req("POST /servers/srv/mcp", danger, hers, asAlice)},
		refused{"policy: with headers that name another tool", 200, "policy", req("POST /mcp", danger, hers, asAlice, "Mcp-Method: tools/call", "Mcp-Name: safe")},
		refused{"policy: behind a byte order mark", 200, "policy", req("POST /mcp", "\ufeff"+danger, hers, asAlice)},
		refused{"policy: a second message behind an allowed one", 400, "invalid_message", req("POST /mcp", ping+"\n"+danger, hers, asAlice)},
	)
}()
