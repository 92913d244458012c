package remote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// site is one address with a scripted MCP server.
type site struct {
	t      *testing.T
	addr   string
	srv    *http.Server
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	up      bool
	session string // given to initialize; "" for none
	seen    []seen
	on      map[string]http.HandlerFunc // by JSON-RPC method, "response", "GET" or "DELETE"
}

// seen is one request that a site got.
type seen struct {
	what   string // as for site.on
	http   string
	uri    string
	host   string
	header http.Header
	body   string
}

func (s *site) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *site) stop()          { s.once.Do(func() { close(s.closed) }) }
func (s *site) Close() error   { s.stop(); return nil }
func (s *site) Addr() net.Addr { return &net.TCPAddr{} }

func (s *site) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.up
}

// setUp makes the address refuse or take connections.
func (s *site) setUp(up bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.up = up
}

func (s *site) handle(what string, h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on[what] = h
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct{ Method string }
	_ = json.Unmarshal(body, &msg)
	what := msg.Method
	switch {
	case r.Method != http.MethodPost:
		what = r.Method
	case what == "":
		what = "response"
	}
	s.mu.Lock()
	s.seen = append(s.seen, seen{what, r.Method, r.RequestURI, r.Host, r.Header, string(body)})
	h, session := s.on[what], s.session
	s.mu.Unlock()
	switch {
	case h != nil:
		h(w, r)
	case what == "initialize":
		if session != "" {
			w.Header().Set("Mcp-Session-Id", session)
		}
		reply(w, r, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
	case what == "GET":
		w.WriteHeader(http.StatusMethodNotAllowed)
	case what == "DELETE":
		w.WriteHeader(http.StatusNoContent)
	case what == "response" || strings.HasPrefix(what, "notifications/"):
		w.WriteHeader(http.StatusAccepted)
	default:
		reply(w, r, `{"from":"`+s.addr+`"}`)
	}
}

// all returns what the site got of one kind, or of all for "".
func (s *site) all(what string) []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []seen
	for _, r := range s.seen {
		if what == "" || r.what == what {
			out = append(out, r)
		}
	}
	return out
}

func (s *site) count(what string) int { return len(s.all(what)) }

// idOf is the raw id of the request in r.
func idOf(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var msg struct{ ID json.RawMessage }
	_ = json.Unmarshal(body, &msg)
	return string(msg.ID)
}

func result(id, raw string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + raw + `}` }

func reply(w http.ResponseWriter, r *http.Request, raw string) {
	writeAs("application/json", result(idOf(r), raw))(w, r)
}

// writeAs answers with a body of a type.
func writeAs(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// stream begins an event stream and returns what sends on it.
func stream(w http.ResponseWriter) func(format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	_ = http.NewResponseController(w).Flush()
	return func(format string, args ...any) {
		_, _ = fmt.Fprintf(w, format, args...)
		_ = http.NewResponseController(w).Flush()
	}
}

// data is one event with one message.
func data(msg string) string { return "data: " + msg + "\n\n" }

// cutOff breaks the connection.
func cutOff(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
