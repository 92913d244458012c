package front

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/sse"
)

const base = "http://localhost"

// reply is an HTTP answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// request makes one. Headers are "Name: value"; a name that stands twice is
// sent twice. "Host: x" sets the host. Content-Type and Accept are those of a
// usual client unless they are given; "Accept:" sends none.
func (r *rig) request(method, path, body string, headers ...string) *http.Request {
	var src io.Reader
	if body != "" {
		src = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, base+path, src)
	if err != nil {
		r.t.Fatal(err)
	}
	h := req.Header
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ":")
		if value = strings.TrimSpace(value); name == "Host" {
			req.Host = value
			continue
		}
		h.Add(name, value)
	}
	if _, ok := h["Content-Type"]; !ok && body != "" {
		h.Set("Content-Type", "application/json")
	}
	if _, ok := h["Accept"]; !ok {
		h.Set("Accept", "application/json, text/event-stream")
	}
	for name, v := range h {
		if len(v) == 1 && v[0] == "" {
			delete(h, name)
		}
	}
	return req
}

func (r *rig) do(method, path, body string, headers ...string) reply {
	r.t.Helper()
	return r.send(r.request(method, path, body, headers...))
}

func (r *rig) send(req *http.Request) reply {
	r.t.Helper()
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Errorf("body: %v", err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

func initBody(version string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version)
}

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// open begins a session and returns its header line.
func (r *rig) open(version string) (session string) {
	r.t.Helper()
	session = r.initialize(version)
	if got := r.do("POST", "/mcp", initialized, session); got.status != 202 {
		r.t.Fatalf("initialized: %d %s", got.status, got.body)
	}
	return session
}

func (r *rig) initialize(version string) (session string) {
	r.t.Helper()
	got := r.do("POST", "/mcp", initBody(version))
	id := got.header.Get("Mcp-Session-Id")
	if got.status != 200 || id == "" {
		r.t.Fatalf("initialize: %d %q %s", got.status, id, got.body)
	}
	return "Mcp-Session-Id: " + id
}

// stream is an event stream that is being read.
type stream struct {
	t      testing.TB
	res    *http.Response
	cancel context.CancelFunc
	events *sse.Reader
	raw    strings.Builder // everything read
}

// stream sends a request whose answer must be an event stream.
func (r *rig) stream(method, path, body string, headers ...string) *stream {
	r.t.Helper()
	return r.streamOf(r.client, r.request(method, path, body, headers...))
}

func (r *rig) streamOf(client *http.Client, req *http.Request) *stream {
	r.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	res, err := client.Do(req.WithContext(ctx))
	if err != nil {
		r.t.Fatal(err)
	}
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		r.t.Fatalf("no event stream: %d %s %s", res.StatusCode, got, body)
	}
	s := &stream{t: r.t, res: res, cancel: cancel}
	s.events = sse.NewReader(io.TeeReader(res.Body, &s.raw), 1<<24)
	r.t.Cleanup(s.close)
	return s
}

// get opens the session's own stream, or resumes one.
func (r *rig) get(session string, headers ...string) *stream {
	r.t.Helper()
	return r.stream("GET", "/mcp", "", append(headers, session, "Accept: text/event-stream")...)
}

func (s *stream) next() sse.Event {
	s.t.Helper()
	e, err := s.events.Next()
	if err != nil {
		s.t.Fatalf("next event: %v after %q", err, s.raw.String())
	}
	return e
}

// rest is what comes until the end: the data of all events.
func (s *stream) rest() (data []string) {
	s.t.Helper()
	for {
		e, err := s.events.Next()
		if err == io.EOF {
			return data
		}
		if err != nil {
			s.t.Fatalf("rest: %v", err)
		}
		data = append(data, string(e.Data))
	}
}

// close breaks the connection.
func (s *stream) close() {
	s.cancel()
	s.res.Body.Close()
}
