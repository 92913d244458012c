// Package load is the benchmark's client: sessions over Streamable HTTP and HTTP+SSE, and the
// requests of the per-request era, on raw connections; calls that are tagged, and a check of every
// answer.
//
//	Run → open sessions → caller.work → Session.Call → conn.do → check
package load

import (
	"bytes"
	"errors"
	"fmt"
	"time"
)

const revision = "2025-11-25"

// The two messages that open a session.
const (
	Initialize  = `{"method":"initialize","params":{"protocolVersion":"` + revision + `","capabilities":{},"clientInfo":{"name":"bench","version":"1"}},"jsonrpc":"2.0","id":0}`
	Initialized = `{"method":"notifications/initialized","jsonrpc":"2.0"}`
)

// Endpoint is where a contestant serves MCP.
type Endpoint struct {
	Addr string // host:port
	MCP  string // path of Streamable HTTP, or empty
	SSE  string // path of the HTTP+SSE stream, or empty
}

// Reply is what a call brought; its bytes are good until the next one.
type Reply struct {
	Response []byte    // the response message
	Before   [][]byte  // notifications that came before it, in their order
	First    time.Time // when the first byte of the HTTP answer was there
}

// Client is a kind of client.
type Client uint8

const (
	Streamable  Client = iota // Streamable HTTP of 2025-11-25, in a session
	EventStream               // HTTP+SSE of 2024-11-05
	PerRequest                // Streamable HTTP of 2026-07-28, without a session
)

// Session is one client, with its open session where it has one, for one goroutine.
type Session interface {
	// Call sends a request and waits for its response.
	Call(request []byte) (Reply, error)
	// End ends the session, politely where the transport knows how, and closes its connections.
	End()
}

// Open opens a session of a kind, by HTTP+SSE where nothing else is offered.
func Open(e Endpoint, kind Client, deadline time.Time) (Session, error) {
	if e.MCP == "" || kind == EventStream {
		return openLegacy(e, deadline)
	}
	c, err := dial(e.Addr, deadline)
	if err != nil {
		return nil, err
	}
	var s Session
	if kind == PerRequest {
		s, err = perRequestOn(c, e)
	} else {
		s, err = openOn(c, e)
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return s, nil
}

// streamable is a session over Streamable HTTP.
type streamable struct {
	c        *conn
	endpoint Endpoint
	id       string
	post     string   // request head up to the body's length
	before   [][]byte // of the last reply, reused
}

func openOn(c *conn, e Endpoint) (*streamable, error) {
	s := &streamable{c: c, endpoint: e, post: head1("POST", e.MCP, e.Addr) + "Content-Length: "}
	h, body, err := c.do(s.post, []byte(Initialize))
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	reply, err := s.reply(h, body)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	if !bytes.Contains(reply.Response, []byte(`"serverInfo"`)) {
		return nil, fmt.Errorf("initialize: %s", excerpt(reply.Response))
	}
	s.id = h.session
	s.post = s.headers("POST") + "Content-Length: "
	h, body, err = c.do(s.post, []byte(Initialized))
	if err != nil {
		return nil, fmt.Errorf("notifications/initialized: %w", err)
	}
	if h.status/100 != 2 {
		return nil, fmt.Errorf("notifications/initialized: HTTP %d: %s", h.status, excerpt(body))
	}
	return s, nil
}

// head1 is a request's head up to the headers that differ.
func head1(method, path, addr string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: " + addr +
		"\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
}

func (s *streamable) headers(method string) string {
	h := head1(method, s.endpoint.MCP, s.endpoint.Addr)
	if s.id != "" {
		h += "Mcp-Session-Id: " + s.id + "\r\n"
	}
	return h + "MCP-Protocol-Version: " + revision + "\r\n"
}

func (s *streamable) Call(request []byte) (Reply, error) {
	h, body, err := s.c.do(s.post, request)
	if err != nil {
		return Reply{First: h.first}, err
	}
	return s.reply(h, body)
}

func (s *streamable) End() {
	defer s.c.close()
	if s.c.extend(time.Now().Add(2*time.Second)) != nil {
		return
	}
	_, _, _ = s.c.do(s.headers("DELETE")+"Content-Length: ", nil) // best effort: the process ends soon
}

// stream opens the GET stream on a connection of its own and leaves it at its first event.
func (s *streamable) stream(deadline time.Time) (*conn, error) {
	c, err := dial(s.endpoint.Addr, deadline)
	if err != nil {
		return nil, err
	}
	if err := c.send(s.headers("GET")+"Content-Length: ", nil); err != nil {
		return c, err
	}
	h, err := c.readHead()
	if err == nil && (h.status != 200 || !h.events) {
		err = fmt.Errorf("GET stream: HTTP %d", h.status)
	}
	return c, err
}

// reply finds the one response message in an HTTP answer, JSON or events, and what came before.
func (s *streamable) reply(h head, body []byte) (Reply, error) {
	r := Reply{First: h.first}
	if h.status != 200 {
		return r, fmt.Errorf("HTTP %d: %s", h.status, excerpt(body))
	}
	if !h.events {
		r.Response = body
		return r, nil
	}
	s.before = s.before[:0]
	for len(body) > 0 {
		line, rest, _ := bytes.Cut(body, []byte("\n"))
		body = rest
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		data = bytes.TrimSpace(data)
		switch {
		case !ok || len(data) == 0:
		case r.Response != nil:
			return r, fmt.Errorf("a message after the response in the stream: %s", excerpt(data))
		case isNotification(data):
			s.before = append(s.before, data)
		default:
			r.Response = data
		}
	}
	if r.Response == nil {
		return r, errors.New("stream ended without a response")
	}
	r.Before = s.before
	return r, nil
}

// isNotification tells what the server sends on its own from responses; no payload of the
// benchmark contains the word.
func isNotification(message []byte) bool {
	return bytes.Contains(message[:min(256, len(message))], []byte(`"method":`))
}
