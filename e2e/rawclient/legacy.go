package rawclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
)

// Legacy is a session of the HTTP+SSE transport of 2024-11-05.
type Legacy struct {
	Endpoint   string // as the endpoint event had it
	Initialize Message

	c       *Client
	opts    Options
	post    string // the URL of Endpoint
	resp    *http.Response
	stopped context.CancelFunc
	reading sync.WaitGroup

	mu      sync.Mutex
	pending map[string]chan Message // id → the call; its channel has room for the response
	ended   error                   // why the stream is over, nil while it is not
}

var _ Session = (*Legacy)(nil)

// Legacy opens a session at /sse.
func (c *Client) Legacy(ctx context.Context, opts Options) (*Legacy, error) {
	return c.LegacyAt(ctx, "/sse", opts)
}

// LegacyAt opens a session at a path. The context bounds the handshake, not the session.
func (c *Client) LegacyAt(ctx context.Context, path string, opts Options) (*Legacy, error) {
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	s := &Legacy{
		c: c, opts: opts.withDefaults("2024-11-05"), stopped: cancel,
		pending: make(map[string]chan Message),
	}
	if err := s.open(streamCtx, path); err != nil {
		cancel()
		return nil, err
	}
	if err := s.handshake(ctx); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// open reads as far as the endpoint event and leaves the rest to a goroutine.
func (s *Legacy) open(ctx context.Context, path string) error {
	resp, err := s.c.Do(ctx, http.MethodGet, path, http.Header{"Accept": {"text/event-stream"}}, nil)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return statusError(resp)
	}
	events := newEventReader(resp.Body)
	e, err := events.next()
	if err != nil {
		return err
	}
	if e.Name != "endpoint" {
		return fmt.Errorf("the first event is %q, not endpoint", e.Name)
	}
	endpoint, err := url.Parse(e.Data)
	if err != nil {
		return err
	}
	s.resp, s.Endpoint, s.post = resp, e.Data, resp.Request.URL.ResolveReference(endpoint).String()
	s.reading.Go(func() { s.read(events) })
	return nil
}

func (s *Legacy) handshake(ctx context.Context) error {
	m, err := s.Call(ctx, initializeID, "initialize", s.opts.initializeParams())
	if err != nil {
		return err
	}
	if m.Result == nil {
		return fmt.Errorf("initialize was refused: %s", m.Error)
	}
	s.Initialize = m
	return s.Notify(ctx, "notifications/initialized", "")
}

// read hands out what the stream brings, until it ends.
func (s *Legacy) read(events *eventReader) {
	defer s.resp.Body.Close()
	for {
		e, err := events.next()
		if err != nil {
			s.end(fmt.Errorf("%w: %w", ErrNoResponse, err))
			return
		}
		m, err := ParseMessage([]byte(e.Data))
		if err != nil {
			s.end(err)
			return
		}
		m.EventID = e.ID
		if call := s.take(m); call != nil {
			call <- m
		} else {
			s.opts.OnMessage(m)
		}
	}
}

// take returns the call that m answers, if any; it does so once.
func (s *Legacy) take(m Message) chan Message {
	if !m.IsResponse() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.pending[string(m.ID)]
	delete(s.pending, string(m.ID))
	return call
}

func (s *Legacy) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = reason
	for id, call := range s.pending {
		close(call)
		delete(s.pending, id)
	}
}

// Call implements Session. When ctx ends first, a later response goes to OnMessage.
func (s *Legacy) Call(ctx context.Context, id, method, params string) (Message, error) {
	call := make(chan Message, 1)
	s.mu.Lock()
	if s.ended != nil {
		defer s.mu.Unlock()
		return Message{}, s.ended
	}
	s.pending[id] = call
	s.mu.Unlock()
	defer s.forget(id, call)
	if err := s.accepted(ctx, request(id, method, params)); err != nil {
		return Message{}, err
	}
	select {
	case m, ok := <-call:
		if !ok {
			s.mu.Lock()
			defer s.mu.Unlock()
			return Message{}, s.ended
		}
		return m, nil
	case <-ctx.Done():
		return Message{}, ctx.Err()
	}
}

func (s *Legacy) forget(id string, call chan Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending[id] == call {
		delete(s.pending, id)
	}
}

// Notify implements Session.
func (s *Legacy) Notify(ctx context.Context, method, params string) error {
	return s.accepted(ctx, request("", method, params))
}

// Respond implements Session.
func (s *Legacy) Respond(ctx context.Context, id, result string) error {
	return s.accepted(ctx, []byte(`{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`))
}

func (s *Legacy) accepted(ctx context.Context, body []byte) error {
	resp, err := s.c.Do(ctx, http.MethodPost, s.post, postHeader(), body)
	if err != nil {
		return err
	}
	return expectStatus(resp, http.StatusAccepted)
}

// Close implements Session by the end of the stream, and waits for its reader.
func (s *Legacy) Close(context.Context) error {
	s.stopped()
	s.reading.Wait()
	return nil
}

func unmarshal(raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%.200s: %w", raw, err)
	}
	return nil
}
