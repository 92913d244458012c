// Package stdio serves one client on standard input and output: a server of
// the stdio transport whose messages go to an upstream.Server.
//
//	Serve                 reads lines until the client closes its end
//	  client.line         one message, or a batch of 2025-03-26
//	    client.initialize opens the connection
//	    client.perRequest a request of 2026-07-28, which needs none: upstream.Asker
//	    upstream.Conn     requests by Start, the rest by Send
//	      sink.Deliver    queues for the one goroutine that writes
//	  writer.run
package stdio

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Options of Serve; all are required.
type Options struct {
	Server     upstream.Server
	MaxMessage int
	Log        *slog.Logger
}

// lastAnswers is how long calls that are open when the client closes its end
// may still take: it may be a script that wants its answers.
const lastAnswers = 10 * time.Second

// Serve serves the client until in ends, then waits for the last answers and
// ends its session. It also returns when the client does not read what is
// written to it, or when ctx is over; a Read of in that never returns is left
// behind then. An error is one of reading or writing.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	c := &client{o: o, w: newWriter(out, o.MaxMessage), idle: make(chan struct{}, 1)}
	go c.w.run()
	read := make(chan error, 1)
	go c.read(in, read)
	var err error
	select {
	case err = <-read:
		c.awaitAnswers(ctx)
	case <-c.w.done:
	case <-ctx.Done():
	}
	c.end()
	return errors.Join(err, c.w.close())
}

type client struct {
	// static
	o    Options
	w    *writer
	idle chan struct{} // gets a value when the last open call ends

	mu     sync.Mutex
	closed bool     // no message is taken any more
	now    *session // nil before initialize, and after the session's end
	lost   error    // what ended the last one; nil: there was none
	calls  int      // open
	asked  []*ask   // of these, the requests of the per-request era
}

// session is what one initialize began. Guarded by client.mu.
type session struct {
	c        *client
	conn     upstream.Conn // nil until Open has returned
	accepted bool          // the server answered initialize with a result
	batches  bool          // of revision 2025-03-26
	over     bool
}

func (c *client) read(in io.Reader, done chan<- error) {
	done <- child.Lines(in, c.o.MaxMessage, c.line, c.oversize)
}

func (c *client) awaitAnswers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastAnswers)
	defer cancel()
	for c.open() > 0 {
		select {
		case <-c.idle:
		case <-c.w.done: // nobody reads them
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *client) end() {
	c.mu.Lock()
	c.closed = true
	s := c.now
	asked := c.asked
	c.asked = nil
	c.mu.Unlock()
	if s != nil {
		s.drop(upstream.ErrClosed)
	}
	for _, a := range asked {
		a.cancel(upstream.ErrCancelled)
	}
}

func (c *client) open() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// count adds to the number of open calls.
func (c *client) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls += n; c.calls == 0 {
		select {
		case c.idle <- struct{}{}:
		default:
		}
	}
}

// line takes one message of the client. It is called by one goroutine.
func (c *client) line(b []byte) {
	if !wire.IsBatch(b) {
		c.message(b)
		return
	}
	c.mu.Lock()
	batches := c.now != nil && c.now.batches
	c.mu.Unlock()
	elems, err := wire.SplitBatch(b)
	switch {
	case err != nil:
		c.refuseInvalid(err)
		return
	case !batches:
		c.refuse(nil, upstream.Errorf(mcp.CodeInvalidRequest, "batch", "batches exist only in revision 2025-03-26"))
		return
	}
	for _, e := range elems {
		c.message(append([]byte(nil), e...)) // own bytes: a request keeps them
	}
}

func (c *client) oversize(head, tail []byte, size int64) {
	id, _ := wire.FindID(head, tail)
	c.refuse(id, upstream.Errorf(mcp.CodeInvalidRequest, "message_size", "the message has %d bytes, more than the limit of %d (--max-message)", size, c.o.MaxMessage))
}

func (c *client) refuse(id []byte, err error) { c.w.put(upstream.ErrorReply(id, err)) }

func (c *client) refuseInvalid(err error) {
	var e *wire.Error
	if errors.As(err, &e) {
		c.refuse(e.ID, upstream.Errorf(e.Code, "invalid_message", "%s", e.Msg))
	}
}

func (c *client) message(b []byte) {
	msg, err := wire.Parse(b)
	if err != nil {
		c.refuseInvalid(err)
		return
	}
	req := upstream.NewRequest(msg)
	c.mu.Lock()
	s, closed, lost := c.now, c.closed, c.lost
	c.mu.Unlock()
	switch {
	case closed:
	case isPerRequest(&req):
		c.perRequest(req)
	case req.Method == mcp.NotifCancelled && c.cancelAsk(&msg):
	case req.Method == mcp.Initialize && msg.Kind == wire.Request:
		c.initialize(req, s)
	case s == nil:
		c.early(&req, lost)
	case msg.Kind == wire.Request:
		sink := c.newSink(&req)
		if _, err := s.conn.Start(req, sink); err != nil {
			sink.End(err)
		}
	default:
		s.send(req)
	}
}

// early answers what comes while there is no session: only ping may (2025-11-25,
// lifecycle).
func (c *client) early(req *upstream.Request, lost error) {
	m := &req.Msg
	switch {
	case m.Kind != wire.Request:
	case req.Method == mcp.Ping:
		c.w.put(wire.AppendResult(nil, m.Bytes(m.ID), []byte("{}")))
	case req.Method == mcp.ServerDiscover:
		c.refuse(m.Bytes(m.ID), upstream.Errorf(mcp.CodeMethodNotFound, "era", "send initialize"))
	case lost != nil:
		c.refuse(m.Bytes(m.ID), lost)
	default:
		c.refuse(m.Bytes(m.ID), upstream.Errorf(mcp.CodeInvalidRequest, "not_initialized", "send initialize first"))
	}
}

func (c *client) initialize(req upstream.Request, now *session) {
	sink := c.newSink(&req)
	if now != nil {
		sink.End(upstream.Errorf(mcp.CodeInvalidRequest, "initialized", "the session has been initialized"))
		return
	}
	s := &session{c: c}
	sink.opens = s
	c.mu.Lock()
	c.now = s
	c.mu.Unlock()
	conn, err := c.o.Server.Open(req, sink, events{s})
	if err != nil {
		sink.End(err)
		return
	}
	c.mu.Lock()
	s.conn = conn
	over := s.over
	c.mu.Unlock()
	if over { // it failed before Open returned
		conn.End(upstream.ErrClosed)
	}
}

// send passes a notification or a response on. The server's own stream is
// asked for when the handshake is complete; some servers offer it only then.
func (s *session) send(req upstream.Request) {
	if err := s.conn.Send(req); err != nil {
		s.c.o.Log.Warn("message did not reach the server", "method", req.Method.String(), "err", err)
		return
	}
	if l, ok := s.conn.(upstream.Listener); ok && req.Method == mcp.NotifInitialized {
		l.Listen(true)
	}
}

// drop ends the session; a new initialize may come.
func (s *session) drop(reason error) {
	c := s.c
	c.mu.Lock()
	if s.over {
		c.mu.Unlock()
		return
	}
	s.over = true
	if c.now = nil; s.accepted {
		c.lost = reason
	}
	conn := s.conn
	c.mu.Unlock()
	if conn != nil {
		conn.End(reason)
	}
}
