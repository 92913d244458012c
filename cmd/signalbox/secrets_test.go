package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/trace/tracetest"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// marked finds what must stand nowhere.
var marked = regexp.MustCompile(`(?i)marker-[a-z]+`)

// secretSite is a server of URLs that behaves as its path says.
func secretSite(t *testing.T) *httptest.Server {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		msg, err := wire.Parse(body)
		switch {
		case r.URL.Query().Get("token") != "marker-query" || r.Header.Get("X-Secret") != "marker-header":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/fault":
			http.Error(w, "cannot POST "+r.URL.String(), http.StatusInternalServerError)
		case r.URL.Path == "/text":
			fmt.Fprint(w, "what is "+r.URL.String())
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "https://elsewhere.example/mcp?"+r.URL.RawQuery, http.StatusTemporaryRedirect)
		case err != nil || msg.Kind != wire.Request:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			result := `{"echo":` + orDefault(string(msg.Bytes(msg.Params)), "{}") + `}`
			switch string(msg.MethodName()) {
			case "initialize":
				w.Header().Set("Mcp-Session-Id", "marker-upstream")
				result = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}`
			case "server/discover":
				result = `{"supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"t","version":"1"},"resultType":"complete"}`
			case "prompts/get":
				result = `{"resultType":"input_required","requestState":"marker-state","inputRequests":{"a":{"method":"roots/list"}}}`
			case "lost":
				w.WriteHeader(http.StatusNotFound)
				return
			case "cut":
				panic(http.ErrAbortHandler)
			}
			w.Write(wire.AppendResult(nil, msg.Bytes(msg.ID), []byte(result)))
		}
	}))
	t.Cleanup(site.Close)
	return site
}

// What must not be known to those who read logs, metrics, errors and the admin
// listener: whatever is asked, in whichever way, and however it goes wrong.
func TestSecretsStandNowhere(t *testing.T) {
	site, dir := secretSite(t), t.TempDir()
	key, entry, err := auth.NewKey("alice", nil)
	if err != nil {
		t.Fatal(err)
	}
	keys := filepath.Join(dir, "keys.yaml")
	if err := os.WriteFile(keys, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SIGNALBOX_TEST_SECRET_HEADER", "marker-header")
	exe, _ := os.Executable()
	const where = `, headers: {X-Secret: "${SIGNALBOX_TEST_SECRET_HEADER}"}}`
	path := configFile(t, dir, fmt.Sprintf(`
mcpServers:
  local: {command: %q, args: [--token, marker-argument], env: {%s: '1', API_KEY: marker-environment}}
  shared: {command: %[1]q, isolation: shared, env: {%[2]s: '1', API_KEY: marker-environment}, excludeTools: [hidden]}
  none: {command: no-such-command-anywhere, args: [marker-argument], env: {API_KEY: marker-environment}}
  dies: {command: /bin/false, args: [marker-argument], env: {API_KEY: marker-environment}}
  http: {url: "%[3]s/mcp?token=marker-query"`+where+`
  modern: {url: "%[3]s/mcp?token=marker-query", era: modern`+where+`
  fault: {url: "%[3]s/fault?token=marker-query"`+where+`
  text: {url: "%[3]s/text?token=marker-query"`+where+`
  moved: {url: "%[3]s/moved?token=marker-query"`+where+`
  wrong: {url: "%[3]s/mcp?token=marker-wrong"`+where+`
  far: {url: "http://127.0.0.1:1/mcp?token=marker-query"`+where+`
  nowhere: {url: "http://no-such-host.invalid/mcp?token=marker-query"`+where+`
`, exe, childMode, site.URL))
	collector := tracetest.New(t)
	r, base := serveFile(t, path, "--trace-endpoint", collector.URL, "--log-level", "debug", "--auth-keys", keys, "--admin-listen", "127.0.0.1:0", "--audit-log", filepath.Join(dir, "audit"))
	admin := strings.TrimSuffix(r.await(`metrics          (http://\S+)`), "/metrics")
	x := &secretClient{t: t, key: key, secrets: []string{key}}
	for _, server := range []string{"local", "shared", "none", "dies", "http", "modern", "fault", "text", "moved", "wrong", "far", "nowhere"} {
		x.all(base + "/servers/" + server)
	}
	x.refused(base)

	for _, p := range []string{"/metrics", "/status", "/api/v1/servers", "/api/v1/sessions", "/api/v1/series", "/api/v1/refusals", "/api/v1/replicas"} {
		x.look(p, get(t, admin+p))
	}
	var list struct{ Sessions []struct{ Session string } }
	if err := json.Unmarshal([]byte(get(t, admin+"/api/v1/sessions")), &list); err != nil || len(list.Sessions) < 3 {
		t.Fatalf("%d sessions, %v", len(list.Sessions), err)
	}
	for _, s := range list.Sessions {
		x.look("a session", get(t, admin+"/api/v1/sessions/"+s.Session))
	}
	r.stop()
	r.exit()
	out, log := r.text()
	x.look("stdout", out)
	x.look("the log", log)
	x.look("the traces", collector.Raw())
	text, _ := os.ReadFile(filepath.Join(dir, "audit"))
	x.look("the audit log", string(text))
	for _, sure := range []string{"call ended", "server process could not be started", "session opened", "request refused", `"session":"`, "signalbox_refused_total", "tools/call", "mcp.method.name"} {
		if !strings.Contains(log+x.seen.String(), sure) {
			t.Errorf("%q stands nowhere: this test sees too little", sure)
		}
	}
}

// secretClient sends secrets and looks for them.
type secretClient struct {
	t       *testing.T
	key     string
	secrets []string // beside what is marked
	answers int
	seen    strings.Builder
}

func (x *secretClient) look(where, text string) {
	x.t.Helper()
	x.seen.WriteString(text)
	for line := range strings.Lines(text) {
		if found := marked.FindString(line); found != "" {
			x.t.Errorf("%s: %s in %.600s", where, found, line)
		}
		for _, s := range x.secrets {
			if strings.Contains(line, s) {
				x.t.Errorf("%s: a key or session id in %.600s", where, line)
			}
		}
	}
}

// send sends one request. An answer of Signalbox itself must hold no secret but
// in its head, where the session id has to be.
func (x *secretClient) send(method, url, body string, headers ...string) http.Header {
	x.t.Helper()
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if strings.Contains(string(text), `"source":"signalbox"`) {
		x.answers++
		x.look(method+" "+url, string(text))
	}
	return res.Header
}

const secretMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`

// all sends requests of both eras and of both transports to a server.
func (x *secretClient) all(server string) {
	own := []string{"Authorization", "Bearer " + x.key}
	calls := []string{
		`"method":"tools/call","params":{"name":"t","arguments":{"key":"marker-arguments"}`,
		`"method":"tools/call","params":{"name":"hidden","arguments":{"key":"marker-arguments"}`,
		`"method":"prompts/get","params":{"name":"p","arguments":{"key":"marker-arguments"},"requestState":"marker-state"`,
		`"method":"resources/read","params":{"uri":"https://u:marker-uri@host/x?key=marker-uri"`,
		`"method":"marker/unknown","params":{"key":"marker-arguments"`,
		`"method":"cut","params":{"key":"marker-arguments"`,
		`"method":"lost","params":{"key":"marker-arguments"`,
	}
	session := x.send("POST", server+"/mcp", initialize, own...).Get("Mcp-Session-Id")
	if session != "" {
		x.secrets = append(x.secrets, session)
	}
	with := slices.Concat(own, []string{"Mcp-Session-Id", orDefault(session, "marker-session")})
	x.send("POST", server+"/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, with...)
	for i, c := range calls[:len(calls)-1] {
		c = strings.Replace(c, "marker/unknown", "unknown", 1)
		x.send("POST", server+"/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}}`, i+2, c), with...)
	}
	x.send("POST", server+"/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7,"reason":"marker-reason"}}`, with...)
	x.send("POST", server+"/mcp", `{"jsonrpc":"2.0","id":9,"result":{"key":"marker-result"}}`, with...)
	x.send("GET", server+"/mcp", "", append(with, "Last-Event-ID", "marker-event")...)
	for i, c := range calls {
		c = strings.Replace(c, "marker/unknown", "unknown", 1)
		m := regexp.MustCompile(`"method":"([^"]+)","params":\{(?:"(?:name|uri)":"([^"]+)")?`).FindStringSubmatch(c)
		x.send("POST", server+"/mcp", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s,%s}}`, i, c, secretMeta),
			"X-API-Key", x.key, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", m[1], "Mcp-Name", m[2])
	}
	x.send("POST", server+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"key":"marker-arguments"},`+secretMeta+`}}`,
		"X-API-Key", x.key, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "another")
	x.legacy(server, calls)
	x.send("POST", server+"/mcp", `{"jsonrpc":"2.0","id":8,`+calls[len(calls)-1]+`}}`, with...)
}

// legacy is a client of HTTP+SSE that leaves after some calls.
func (x *secretClient) legacy(server string, calls []string) {
	req, _ := http.NewRequest("GET", server+"/sse", nil)
	req.Header.Set("Authorization", "Bearer "+x.key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "data: ") {
	}
	endpoint := strings.TrimPrefix(lines.Text(), "data: ")
	_, id, _ := strings.Cut(endpoint, "session_id=")
	if id == "" {
		x.t.Fatalf("no endpoint at %s: %q", server, lines.Text())
	}
	x.secrets = append(x.secrets, id)
	base := server[:strings.Index(server, "/servers/")]
	x.send("POST", base+endpoint, initialize, "Authorization", "Bearer "+x.key)
	for i, c := range calls[:2] {
		x.send("POST", base+endpoint, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}}`, i+2, c), "Authorization", "Bearer "+x.key)
	}
}

// refused sends what Signalbox refuses.
func (x *secretClient) refused(base string) {
	at := base + "/servers/local"
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"key":"marker-arguments"}}}`
	for _, credential := range [][]string{
		{"Authorization", "Bearer sbx_marker-key"}, {"X-API-Key", "sbx_marker-key"}, {"Authorization", "Basic marker-basic"},
		{"Authorization", "Bearer eyJhbGciOiJub25lIn0.marker-token."}, {"Authorization", "Bearer " + x.key, "X-API-Key", "marker-key"}, {"Cookie", "marker-cookie"},
	} {
		x.send("POST", at+"/mcp", call, credential...)
		x.send("GET", at+"/sse", "", credential...)
	}
	x.send("POST", at+"/mcp?access_token=marker-access", call)
	own := []string{"Authorization", "Bearer " + x.key}
	x.send("POST", at+"/messages?session_id=marker-session", call, own...)
	x.send("POST", at+"/mcp?token=marker-access", call, append(own, "Mcp-Session-Id", "marker-session")...)
	x.send("DELETE", at+"/mcp", "", append(own, "Mcp-Session-Id", "marker-session")...)
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"marker-broken`, `[` + call + `,{"marker-batch":1}]`, `"marker-text"`, ``,
		`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"` + strings.Repeat("marker-large", 6<<20) + `"}}`} {
		x.send("POST", at+"/mcp", body, own...)
	}
	x.send("POST", at+"/mcp", call, append(own, "Content-Type", "text/marker-type")...)
	x.send("POST", at+"/mcp", call, append(own, "Origin", "https://evil.example")...)
	x.send("GET", base+"/servers/marker-server/mcp", "", own...)
	x.send("GET", base+"/marker-path?token=marker-access", "", own...)
	if x.answers < 50 {
		x.t.Errorf("only %d answers were Signalbox's own", x.answers)
	}
}
