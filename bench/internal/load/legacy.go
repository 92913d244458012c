package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http/httputil"
	"net/url"
	"time"
)

// legacy is a session over HTTP+SSE of 2024-11-05: a stream that answers come on, and a
// connection for POSTs.
type legacy struct {
	stream *conn
	events *bufio.Reader // the stream's body
	post   *conn
	prefix string // POST head up to the body's length
	name   []byte // of the event read last
	data   []byte // of the event read last
}

func openLegacy(e Endpoint, deadline time.Time) (Session, error) {
	s := &legacy{}
	if err := s.open(e, deadline); err != nil {
		s.End()
		return nil, err
	}
	return s, nil
}

func (s *legacy) open(e Endpoint, deadline time.Time) error {
	var err error
	if s.stream, err = dial(e.Addr, deadline); err != nil {
		return err
	}
	if s.post, err = dial(e.Addr, deadline); err != nil {
		return err
	}
	path, err := s.subscribe(e)
	if err != nil {
		return err
	}
	s.prefix = head1("POST", path, e.Addr) + "Content-Length: "
	reply, err := s.Call([]byte(Initialize))
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	if !bytes.Contains(reply.Response, []byte(`"serverInfo"`)) {
		return fmt.Errorf("initialize: %s", excerpt(reply.Response))
	}
	_, err = s.send([]byte(Initialized))
	return err
}

// subscribe opens the stream and returns the path to post to.
func (s *legacy) subscribe(e Endpoint) (string, error) {
	if err := s.stream.send(head1("GET", e.SSE, e.Addr)+"Content-Length: ", nil); err != nil {
		return "", err
	}
	h, err := s.stream.readHead()
	if err != nil {
		return "", err
	}
	if h.status != 200 || !h.events {
		return "", fmt.Errorf("GET %s: HTTP %d", e.SSE, h.status)
	}
	var body io.Reader = s.stream.br
	if h.chunked {
		body = httputil.NewChunkedReader(body)
	}
	s.events = bufio.NewReaderSize(body, 64<<10)
	if err := s.next(); err != nil {
		return "", err
	}
	if string(s.name) != "endpoint" {
		return "", fmt.Errorf("first event is %q, not endpoint", s.name)
	}
	u, err := url.Parse(string(s.data))
	if err != nil {
		return "", err
	}
	return u.RequestURI(), nil
}

func (s *legacy) Call(request []byte) (Reply, error) {
	var r Reply
	var err error
	if r.First, err = s.send(request); err != nil {
		return r, err
	}
	for {
		if err := s.next(); err != nil {
			return r, fmt.Errorf("read the stream: %w", err)
		}
		switch {
		case len(s.data) == 0:
		case isNotification(s.data):
			r.Before = append(r.Before, bytes.Clone(s.data))
		default:
			r.Response = s.data
			return r, nil
		}
	}
}

func (s *legacy) send(message []byte) (first time.Time, err error) {
	h, body, err := s.post.do(s.prefix, message)
	if err == nil && h.status/100 != 2 {
		err = fmt.Errorf("POST: HTTP %d: %s", h.status, excerpt(body))
	}
	return h.first, err
}

// next reads one event into name and data.
func (s *legacy) next() error {
	s.name, s.data = s.name[:0], s.data[:0]
	for seen := false; ; {
		start := len(s.data)
		if err := s.line(); err != nil {
			return err
		}
		line := s.data[start:]
		s.data = s.data[:start]
		switch {
		case len(line) == 0 && seen:
			return nil
		case bytes.HasPrefix(line, []byte("data:")):
			value := bytes.TrimPrefix(line[5:], []byte(" "))
			s.data = append(s.data, value...) // moves it down by the field's name
			seen = true
		case bytes.HasPrefix(line, []byte("event:")):
			s.name = append(s.name[:0], bytes.TrimSpace(line[6:])...)
		}
	}
}

// line appends the next line of the stream to data, without its end.
func (s *legacy) line() error {
	for {
		part, err := s.events.ReadSlice('\n')
		s.data = append(s.data, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		s.data = bytes.TrimRight(s.data, "\r\n")
		return err
	}
}

func (s *legacy) End() {
	for _, c := range []*conn{s.stream, s.post} {
		if c != nil {
			c.close()
		}
	}
}
