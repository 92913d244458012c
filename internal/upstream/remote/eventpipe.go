package remote

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/h1"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// EventPipe is a session at an HTTP+SSE server (2024-11-05, transports) in the
// shape of a process: what is written goes out as POSTs, what the stream brings
// comes in as lines, and the session is over when the stream is.
type EventPipe struct {
	// static
	s      *Server
	h      child.Handler
	stream *hold
	header http.Header // of the client's initialize

	addr *address // owned by run until it starts write

	lines sync.Mutex // held while the handler has a line
	over  bool       // the handler has had its Exit; guarded by lines

	mu      sync.Mutex
	stopped bool
	queue   []letter
	bytes   int // queued or on their way
	open    int // requests among them
	posts   map[*hold]struct{}
	wake    chan struct{} // one token: the writer has something to look at
}

const (
	pipeBytes = 64 << 20
	pipeOpen  = 1024 // requests: some servers answer a POST only when the tool has ended
)

// OpenPipe opens a session's stream. All but a closed server is told by h.Exit.
// header is that of the client's initialize; what may be forwarded of it goes
// out with the stream's request.
func (s *Server) OpenPipe(h child.Handler, header http.Header) (*EventPipe, error) {
	p := &EventPipe{s: s, h: h, header: header, stream: newHold(), posts: make(map[*hold]struct{}), wake: make(chan struct{}, 1)}
	if !s.spawn(p.run) {
		return nil, upstream.ErrShutdown
	}
	return p, nil
}

// Write queues one message of Signalbox itself.
func (p *EventPipe) Write(line []byte) (*child.Ticket, error) { return p.WriteWith(line, nil) }

// WriteWith queues one message of a client, whose headers may be forwarded.
func (p *EventPipe) WriteWith(line []byte, header http.Header) (*child.Ticket, error) {
	msg, err := wire.Parse(line)
	if err != nil {
		return nil, err
	}
	l := letter{upstream.NewRequest(msg)}
	l.req.Header = header
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopped:
		return nil, child.ErrGone
	case p.bytes > 0 && p.bytes+len(line) > pipeBytes, l.isRequest() && p.open >= pipeOpen:
		return nil, child.ErrBusy
	}
	p.countLocked(l, 1)
	p.queue = append(p.queue, l)
	select {
	case p.wake <- struct{}{}:
	default:
	}
	return new(child.Ticket), nil
}

func (p *EventPipe) countLocked(l letter, n int) {
	p.bytes += n * len(l.req.Msg.Raw)
	if l.isRequest() {
		p.open += n
	}
}

// Withdraw cannot tell whether a message was sent.
func (p *EventPipe) Withdraw(*child.Ticket) bool { return false }

// Stop closes the stream, which ends the session, and gives up every POST.
func (p *EventPipe) Stop() {
	p.mu.Lock()
	p.stopped = true
	p.queue = nil
	posts := p.posts
	p.posts = nil
	p.mu.Unlock()
	p.stream.abort()
	for o := range posts {
		o.abort()
	}
}

// Tail and Partial: a stream has no last words.
func (p *EventPipe) Tail() string    { return "" }
func (p *EventPipe) Partial() string { return "" }

// line hands one message over; the handler takes one at a time, and none after
// its Exit.
func (p *EventPipe) line(b []byte) {
	p.lines.Lock()
	defer p.lines.Unlock()
	if !p.over {
		p.h.Line(b)
	}
}

// run reads the stream until it ends.
func (p *EventPipe) run() {
	err := p.read()
	p.Stop()
	p.lines.Lock()
	defer p.lines.Unlock()
	p.over = true
	p.h.Exit(child.ExitInfo{StdoutClosed: true, Err: err})
}

func (p *EventPipe) read() error {
	h, resp, err := p.begin()
	if err != nil {
		return err
	}
	pool := p.addr.pool
	defer p.s.addrs.release(p.addr)
	defer pool.Drop(h) // a stream that was left is of no more use
	if resp.Status != http.StatusOK || media(resp.ContentType) != "text/event-stream" || encoded(resp) {
		body, _ := readAll(resp, maxErrorBody, nil)
		if resp.Status == http.StatusOK {
			return fmt.Errorf("it answered GET with %q %s instead of an event stream", cut(resp.ContentType), cut(resp.ContentEncoding))
		}
		return statusError(target{}, resp, body)
	}
	r := sse.NewReader(resp.Body, p.s.cfg.MaxMessage)
	defer r.Release()
	writing := false
	for {
		e, err := r.Next()
		if err != nil {
			return p.streamError(err, writing)
		}
		switch {
		case e.Type == "endpoint" && !writing: // the first one counts
			post, err := p.s.endpoint(string(e.Data))
			if err != nil {
				return err
			}
			p.stream.deadlines(time.Time{}, time.Time{})
			writing = true
			p.s.wg.Add(1)
			go p.write(post)
		case len(e.Data) > 0 && e.IsMessage():
			wire.OneLine(e.Data)
			p.line(e.Data)
		}
	}
}

// begin opens the stream on the address with the fewest sessions, or on the
// next one where that cannot be reached.
func (p *EventPipe) begin() (*h1.Conn, *h1.Response, error) {
	s := p.s
	if err := s.addrs.refresh(s.ctx, false); err != nil {
		return nil, nil, fmt.Errorf("it cannot be found: %w", err)
	}
	head := append(s.heads.appendForwarded([]byte(s.heads.get), p.header), "\r\n"...)
	p.header = nil
	not := make(map[*address]bool)
	var last error = errNoAddress
	for {
		a := s.addrs.pick(not)
		if a == nil {
			return nil, nil, fmt.Errorf("it cannot be reached: %w", rootCause(last))
		}
		not[a] = true
		h, resp, state, err := s.roundTrip(a, head, nil, options{deadline: time.Now().Add(s.cfg.StartTimeout), fresh: true, hold: p.stream})
		if err == nil {
			s.addrs.worked(a)
			p.addr = a
			return h, resp, nil
		}
		s.addrs.release(a)
		if state != notSent || p.stream.aborted() {
			return nil, nil, p.streamError(err, false)
		}
		last = err
	}
}

// streamError says in words how the stream ended.
func (p *EventPipe) streamError(err error, begun bool) error {
	var timeout net.Error
	switch {
	case p.stream.aborted():
		return nil
	case errors.Is(err, sse.ErrTooLarge):
		return fmt.Errorf("an event on its stream is larger than the limit of %d bytes (--max-message)", p.s.cfg.MaxMessage)
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("its stream brought no endpoint event in time (--start-timeout)")
	case isClosed(err) && begun:
		return errors.New("its event stream ended")
	case isClosed(err):
		return errors.New("its event stream ended before it began")
	}
	return rootCause(err)
}
