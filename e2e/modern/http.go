package modern

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// ServeHTTP serves requests at any path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !isLoopback(r.Host) || r.Header.Get("Origin") != "" && !isLoopbackOrigin(r.Header.Get("Origin")) {
		http.Error(w, "Host or Origin is not allowed", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "POST only", http.StatusMethodNotAllowed)
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		http.Error(w, "not JSON", http.StatusUnsupportedMediaType)
		return
	}
	if accept := strings.Join(r.Header.Values("Accept"), ","); !strings.Contains(accept, "application/json") || !strings.Contains(accept, "text/event-stream") {
		http.Error(w, "Accept must have application/json and text/event-stream", http.StatusNotAcceptable)
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e := &exchange{w: w}
	m, err := parse(raw)
	if err == nil {
		err = s.checkHeader(r.Header, m)
	}
	switch {
	case err != nil:
		e.send(response{JSONRPC: "2.0", ID: m.ID, Error: asError(err)})
	case m.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		s.run(r.Context(), m, e.send)
	}
}

// checkHeader compares the headers of a request with its body.
func (s *Server) checkHeader(h http.Header, m message) error {
	if m.ID == nil {
		return nil // nothing is said about notifications
	}
	var params Params
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &params); err != nil {
			return &Error{Code: -32602, Message: err.Error(), Status: http.StatusBadRequest}
		}
	}
	if params.Meta.Version == nil {
		if m.Method == "initialize" {
			return s.refusal(m.Params)
		}
		return nil // refused for its body
	}
	want := map[string]string{"MCP-Protocol-Version": *params.Meta.Version, "Mcp-Method": m.Method}
	switch m.Method {
	case "tools/call", "prompts/get":
		want["Mcp-Name"] = params.Name
	case "resources/read":
		want["Mcp-Name"] = params.URI
	}
	for name, value := range want {
		if err := compare(h, name, value); err != nil {
			return err
		}
	}
	if m.Method != "tools/call" {
		return nil
	}
	return s.checkParams(h, params)
}

// checkParams compares the arguments that headers repeat.
func (s *Server) checkParams(h http.Header, params Params) error {
	var arguments map[string]json.RawMessage
	if len(params.Arguments) > 0 {
		if err := json.Unmarshal(params.Arguments, &arguments); err != nil {
			return &Error{Code: -32602, Message: err.Error(), Status: http.StatusBadRequest}
		}
	}
	for argument, header := range s.ParamHeaders[params.Name] {
		name := "Mcp-Param-" + header
		value, ok := arguments[argument]
		if !ok || string(value) == "null" {
			if h.Get(name) != "" {
				return mismatch("%s is there, and the argument is not", name)
			}
			continue
		}
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		if err := compare(h, name, text); err != nil {
			return err
		}
	}
	return nil
}

func compare(h http.Header, name, want string) error {
	values := h.Values(name)
	if len(values) != 1 {
		return mismatch("%s is there %d times", name, len(values))
	}
	got, err := decodeHeader(values[0])
	if err != nil {
		return mismatch("%s: %v", name, err)
	}
	if got != want {
		return mismatch("%s is %q, the body says %q", name, got, want)
	}
	return nil
}

func mismatch(format string, args ...any) error {
	return &Error{Code: -32020, Message: fmt.Sprintf(format, args...), Status: http.StatusBadRequest}
}

func isLoopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && isLoopback(u.Host)
}

func isLoopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// exchange writes the answer to one POST: JSON where the response is all there is, else
// an event stream.
type exchange struct {
	mu     sync.Mutex
	w      http.ResponseWriter
	events bool
}

func (e *exchange) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // results are made of maps, strings and what was JSON before
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if last, ok := v.(response); ok && !e.events {
		e.w.Header().Set("Content-Type", "application/json")
		if last.Error != nil && last.Error.Status != 0 {
			e.w.WriteHeader(last.Error.Status)
		}
		_, err = e.w.Write(b)
	} else {
		if !e.events {
			e.w.Header().Set("Content-Type", "text/event-stream")
			e.events = true
		}
		if _, err = fmt.Fprintf(e.w, "event: message\ndata: %s\n\n", b); err == nil {
			err = http.NewResponseController(e.w).Flush()
		}
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		log.Printf("write: %v", err)
	}
}
