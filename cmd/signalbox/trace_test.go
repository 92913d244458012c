package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/trace/tracetest"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const (
	tracedID     = "0af7651916cd43dd8448eb211c80319c"
	tracedCaller = "00-" + tracedID + "-b7ad6b7169203331-01"
)

// tracedSite is a server of both eras that notes the context of each call and
// its body.
type tracedSite struct {
	*httptest.Server

	mu    sync.Mutex
	heads []string
	body  string
}

func newTracedSite(t *testing.T) *tracedSite {
	s := new(tracedSite)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		msg, err := wire.Parse(body)
		if err != nil || msg.Kind != wire.Request {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{}`
		switch string(msg.MethodName()) {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}`
		case "server/discover":
			result = `{"supportedVersions":["2026-07-28"],"capabilities":{},"serverInfo":{"name":"t","version":"1"},"resultType":"complete"}`
		case "tools/call":
			s.mu.Lock()
			s.heads, s.body = r.Header["Traceparent"], string(body)
			s.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(wire.AppendResult(nil, msg.Bytes(msg.ID), []byte(result)))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *tracedSite) last() (heads []string, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.heads, s.body
}

const tracedFile = `
mcpServers:
  local: {SELF}
  shared: {SELF, isolation: shared}
  http: {url: "%s/mcp", forward-headers: [traceparent]}
  modern: {url: "%[1]s/mcp", era: modern}
`

func tracedCall(meta string) string {
	return `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"read","n":1.0,"arguments":{"key":"marker-arguments"}` + meta + `}}`
}

var parentInMeta = regexp.MustCompile(`"_meta":\{[^\n]*"traceparent":"(00-[0-9a-f]{32}-[0-9a-f]{16}-01)"`)

// A call is one tree of spans, from its caller's to what its server was told.
func TestCallsAreTraced(t *testing.T) {
	collector, site := tracetest.New(t), newTracedSite(t)
	path := configFile(t, t.TempDir(), fmt.Sprintf(tracedFile, site.URL))
	r, base := serveFile(t, path, "--trace-endpoint", collector.URL)
	told := make(map[string]string) // by server: the traceparent that it got
	for _, server := range []string{"local", "shared"} {
		url := base + "/servers/" + server + "/mcp"
		session := openAt(t, url)
		_, answer := say(t, http.DefaultClient, url, session, tracedCall(""), "Traceparent", tracedCaller)
		m := parentInMeta.FindStringSubmatch(answer)
		if m == nil || !strings.Contains(answer, `"n":1.0`) {
			t.Fatalf("%s: the server got %s", server, answer)
		}
		told[server] = m[1]
	}
	url := base + "/servers/http/mcp"
	body := tracedCall(`,"_meta":{"traceparent":"` + tracedCaller + `"}`)
	if status, answer, _ := post(t, url, openAt(t, url), body); status != 200 {
		t.Fatalf("http: %d %s", status, answer)
	}
	heads, got := site.last()
	if len(heads) != 1 || got != strings.Replace(body, tracedCaller, heads[0], 1) {
		t.Fatalf("http: the server got %v and %s", heads, got)
	}
	told["http"] = heads[0]
	url = base + "/servers/modern/mcp"
	if res, answer := say(t, http.DefaultClient, url, "", tracedCall(","+secretMeta),
		"Traceparent", tracedCaller, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read"); res.StatusCode != 200 {
		t.Fatalf("modern: %s %s", res.Status, answer)
	}
	heads, _ = site.last()
	told["modern"] = strings.Join(heads, " ")

	// Between the eras, either way.
	session := openAt(t, url)
	say(t, http.DefaultClient, url, session, tracedCall(""), "Traceparent", tracedCaller)
	heads, got = site.last()
	if m := parentInMeta.FindStringSubmatch(got); len(heads) != 1 || m == nil || m[1] != heads[0] {
		t.Errorf("to the later era: the server got %v and %s", heads, got)
	}
	crossed := map[string]string{"to the later era": strings.Join(heads, " ")}
	_, answer := say(t, http.DefaultClient, base+"/servers/local/mcp", "", tracedCall(","+secretMeta),
		"Traceparent", tracedCaller, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "read")
	if m := parentInMeta.FindStringSubmatch(answer); m != nil {
		crossed["to the earlier era"] = m[1]
	} else {
		t.Errorf("between the eras the server got %s", answer)
	}
	r.stop()
	r.exit()

	byID := make(map[string]tracetest.Span)
	for _, s := range collector.Spans() {
		byID[s.ID] = s
	}
	for server, parent := range told {
		parts := strings.Split(parent, "-")
		if len(parts) != 4 || parts[1] != tracedID {
			t.Errorf("%s was told %q", server, parent)
			continue
		}
		s := byID[parts[2]]
		call := byID[s.Parent]
		if s.Name != "server" || call.Name != "tools/call" || call.Parent != "b7ad6b7169203331" || call.Trace != tracedID || s.Trace != tracedID {
			t.Errorf("%s: %+v in %+v", server, s, call)
		}
		a := call.Attributes
		if a["signalbox.server"] != server || a["mcp.method.name"] != "tools/call" || a["signalbox.outcome"] != "ok" || (a["signalbox.session"] == "") != (server == "modern") {
			t.Errorf("%s: %v", server, a)
		}
	}
	for way, parent := range crossed {
		if parts := strings.Split(parent, "-"); len(parts) != 4 || byID[parts[2]].Name != "server" || parts[1] != tracedID {
			t.Errorf("%s the server was told %q", way, parent)
		}
	}
	for _, want := range []string{"start process", "wait for process", "initialize"} {
		if !strings.Contains(collector.Raw(), want) {
			t.Errorf("there is no span %q", want)
		}
	}
	if found := marked.FindString(collector.Raw()); found != "" {
		t.Errorf("%s stands in a span", found)
	}
}

// Without a collector every message is what it was.
func TestNothingIsTraced(t *testing.T) {
	site := newTracedSite(t)
	path := configFile(t, t.TempDir(), fmt.Sprintf(tracedFile, site.URL))
	_, base := serveFile(t, path)
	body := tracedCall(`,"_meta":{"traceparent":"` + tracedCaller + `"}`)
	for _, server := range []string{"local", "shared"} {
		url := base + "/servers/" + server + "/mcp"
		session := openAt(t, url)
		for _, body := range []string{body, tracedCall("")} {
			msg, _ := wire.Parse([]byte(body))
			want := string(wire.AppendResult(nil, []byte("5"), msg.Bytes(msg.Params)))
			if _, answer, _ := post(t, url, session, body); answer != want {
				t.Errorf("%s: got %s, want %s", server, answer, want)
			}
		}
	}
	url := base + "/servers/http/mcp"
	session := openAt(t, url)
	post(t, url, session, body)
	if heads, got := site.last(); len(heads) != 0 || got != body {
		t.Errorf("the server got %v and %s", heads, got)
	}
	say(t, http.DefaultClient, url, session, body, "Traceparent", tracedCaller)
	if heads, _ := site.last(); len(heads) != 1 || heads[0] != tracedCaller {
		t.Errorf("a header that is to be passed on came as %v", heads)
	}
}
