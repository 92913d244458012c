package rawclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// Streamable is a session of the Streamable HTTP transport.
type Streamable struct {
	ID         string  // Mcp-Session-Id
	Version    string  // negotiated, as MCP-Protocol-Version
	Initialize Message // the response to initialize

	c    *Client
	opts Options
	path string
}

var _ Session = (*Streamable)(nil)

// Streamable opens a session at /mcp.
func (c *Client) Streamable(ctx context.Context, opts Options) (*Streamable, error) {
	return c.StreamableAt(ctx, "/mcp", opts)
}

// StreamableAt opens a session at a path.
func (c *Client) StreamableAt(ctx context.Context, path string, opts Options) (*Streamable, error) {
	opts = opts.withDefaults("2025-11-25")
	s := &Streamable{c: c, opts: opts, path: path}
	stream, err := s.Start(ctx, request(initializeID, "initialize", opts.initializeParams()))
	if err != nil {
		return nil, err
	}
	if s.Initialize, err = s.await(stream, initializeID); err != nil {
		return nil, err
	}
	if s.Initialize.Result == nil {
		return nil, fmt.Errorf("initialize was refused: %s", s.Initialize.Error)
	}
	var result struct{ ProtocolVersion string }
	if err := unmarshal(s.Initialize.Result, &result); err != nil {
		return nil, err
	}
	s.ID, s.Version = stream.Header.Get("Mcp-Session-Id"), result.ProtocolVersion
	if s.ID == "" {
		return nil, errors.New("initialize was answered without a session id")
	}
	return s, s.Notify(ctx, "notifications/initialized", "")
}

// header adds what names the session.
func (s *Streamable) header(h http.Header) http.Header {
	if s.ID != "" {
		h.Set("Mcp-Session-Id", s.ID)
		h.Set("MCP-Protocol-Version", s.Version)
	}
	return h
}

// Start posts a body and returns what comes back, which is 200 and a stream or a JSON
// message; any other status is a StatusError.
func (s *Streamable) Start(ctx context.Context, body []byte) (*Stream, error) {
	resp, err := s.c.Do(ctx, http.MethodPost, s.path, s.header(postHeader()), body)
	if err != nil {
		return nil, err
	}
	return newStream(resp)
}

// Listen opens the GET stream, or resumes the stream that lastEventID belongs to.
func (s *Streamable) Listen(ctx context.Context, lastEventID string) (*Stream, error) {
	h := s.header(http.Header{"Accept": {"text/event-stream"}})
	if lastEventID != "" {
		h.Set("Last-Event-ID", lastEventID)
	}
	resp, err := s.c.Do(ctx, http.MethodGet, s.path, h, nil)
	if err != nil {
		return nil, err
	}
	return newStream(resp)
}

// Call implements Session. It reads the stream to its end.
func (s *Streamable) Call(ctx context.Context, id, method, params string) (Message, error) {
	stream, err := s.Start(ctx, request(id, method, params))
	if err != nil {
		return Message{}, err
	}
	return s.await(stream, id)
}

// await reads a POST's stream to its end and returns the response to id.
func (s *Streamable) await(stream *Stream, id string) (Message, error) {
	defer stream.Close()
	var response Message
	for {
		m, err := stream.Next()
		switch {
		case err == io.EOF && response.Raw == nil:
			return Message{}, ErrNoResponse
		case err == io.EOF:
			return response, nil
		case err != nil:
			return Message{}, err
		case response.Raw != nil:
			return Message{}, fmt.Errorf("after the response to %s the stream has %.200s", id, m.Raw)
		case m.IsResponse() && string(m.ID) == id:
			response = m
		default:
			s.opts.OnMessage(m)
		}
	}
}

// Notify implements Session.
func (s *Streamable) Notify(ctx context.Context, method, params string) error {
	return s.accepted(ctx, request("", method, params))
}

// Respond implements Session.
func (s *Streamable) Respond(ctx context.Context, id, result string) error {
	return s.accepted(ctx, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`))
}

func (s *Streamable) accepted(ctx context.Context, body []byte) error {
	resp, err := s.c.Do(ctx, http.MethodPost, s.path, s.header(postHeader()), body)
	if err != nil {
		return err
	}
	return expectStatus(resp, http.StatusAccepted)
}

// Close implements Session by a DELETE.
func (s *Streamable) Close(ctx context.Context) error {
	resp, err := s.c.Do(ctx, http.MethodDelete, s.path, s.header(make(http.Header)), nil)
	if err != nil {
		return err
	}
	return expectStatus(resp, http.StatusNoContent)
}

func expectStatus(resp *http.Response, status int) error {
	if resp.StatusCode != status {
		return statusError(resp)
	}
	_, err := io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// Stream is the answer to a POST or a GET: messages until io.EOF.
type Stream struct {
	Header http.Header
	body   io.ReadCloser
	events *eventReader // nil: the body is one message
	done   bool
}

func newStream(resp *http.Response) (*Stream, error) {
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp)
	}
	s := &Stream{Header: resp.Header, body: resp.Body}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return nil, errors.Join(err, resp.Body.Close())
	}
	switch kind {
	case "text/event-stream":
		s.events = newEventReader(resp.Body)
	case "application/json":
	default:
		return nil, errors.Join(fmt.Errorf("an answer of type %q", kind), resp.Body.Close())
	}
	return s, nil
}

// IsEvents tells an event stream from a single JSON message.
func (s *Stream) IsEvents() bool { return s.events != nil }

// NextEvent returns the next event, also one that carries no message.
func (s *Stream) NextEvent() (Event, error) {
	if s.events != nil {
		return s.events.next()
	}
	if s.done {
		return Event{}, io.EOF
	}
	s.done = true
	body, err := io.ReadAll(s.body)
	return Event{Data: string(body)}, err
}

// Next returns the next message, io.EOF at an orderly end of the stream.
func (s *Stream) Next() (Message, error) {
	for {
		e, err := s.NextEvent()
		if err != nil {
			return Message{}, err
		}
		if e.Data == "" {
			continue // an id to resume from, and nothing else
		}
		m, err := ParseMessage([]byte(e.Data))
		m.EventID = e.ID
		return m, err
	}
}

// Close gives the stream up.
func (s *Stream) Close() error { return s.body.Close() }
