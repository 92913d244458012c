package remote

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// sink records what it gets.
type sink struct {
	t     *testing.T
	takes func(upstream.Frame) upstream.Verdict // nil: everything
	got   chan upstream.Frame
	done  chan struct{}

	mu   sync.Mutex
	ends int
	err  error
}

func newSink(t *testing.T) *sink {
	return &sink{t: t, got: make(chan upstream.Frame, 10000), done: make(chan struct{})}
}

// refusing takes only the reply, as for a client that reads plain JSON.
func (s *sink) refusing() *sink {
	s.takes = func(f upstream.Frame) upstream.Verdict {
		if f.Relation == upstream.Reply {
			return upstream.Taken
		}
		return upstream.NoTaker
	}
	return s
}

func (s *sink) Deliver(f upstream.Frame) upstream.Verdict {
	if s.takes != nil {
		if v := s.takes(f); v != upstream.Taken {
			return v
		}
	}
	s.got <- f
	return upstream.Taken
}

func (s *sink) End(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends++; s.ends > 1 {
		s.t.Errorf("End called %d times: %v, then %v", s.ends, s.err, reason)
		return
	}
	s.err = reason
	close(s.done)
}

// frame is the next frame's text.
func (s *sink) frame() string {
	s.t.Helper()
	return string(s.next().Data)
}

func (s *sink) next() upstream.Frame {
	s.t.Helper()
	select {
	case f := <-s.got:
		return f
	case <-time.After(2 * time.Hour):
		s.t.Fatal("no frame came")
		return upstream.Frame{}
	}
}

// end waits for End.
func (s *sink) end() error {
	s.t.Helper()
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.err
	case <-time.After(3 * time.Hour):
		s.t.Fatal("End was not called")
		return nil
	}
}

// ended tells whether End was called, when nothing moves any more.
func (s *sink) ended() bool {
	synctest.Wait()
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// fails waits for the end and checks its reason and a part of its message.
func (s *sink) fails(reason, part string) {
	s.t.Helper()
	err := s.end()
	if err == nil {
		s.t.Errorf("no error, want %s", reason)
		return
	}
	if e := upstream.RPCError(err); e.Reason != reason || !strings.Contains(e.Message, part) {
		s.t.Errorf("error %q (%s), want %q in one of %s", e.Message, e.Reason, part, reason)
	}
	if len(s.got) > 0 {
		s.t.Errorf("a frame came all the same: %s", s.frame())
	}
}

func request(t testing.TB, raw string) upstream.Request {
	t.Helper()
	msg, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	return upstream.NewRequest(msg)
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

// client is a session with its own sink.
type client struct {
	t      *testing.T
	conn   upstream.Conn
	events *sink
	reply  string // to initialize
}

// open opens a session, which must work.
func open(t *testing.T, s upstream.Server) *client {
	t.Helper()
	c, sink := begin(t, s)
	c.reply = sink.frame()
	if err := sink.end(); err != nil {
		t.Fatal(err)
	}
	return c
}

// begin sends initialize and waits for nothing.
func begin(t *testing.T, s upstream.Server) (*client, *sink) {
	t.Helper()
	return beginWith(t, s, newSink(t), newSink(t))
}

func beginWith(t *testing.T, s upstream.Server, reply, events *sink) (*client, *sink) {
	t.Helper()
	c := &client{t: t, events: events}
	var err error
	if c.conn, err = s.Open(request(t, initialize), reply, c.events); err != nil {
		t.Fatal(err)
	}
	return c, reply
}

func (c *client) start(raw string) (*sink, upstream.Call) {
	c.t.Helper()
	return c.startWith(raw, newSink(c.t))
}

func (c *client) startWith(raw string, s *sink) (*sink, upstream.Call) {
	c.t.Helper()
	call, err := c.conn.Start(request(c.t, raw), s)
	if err != nil {
		c.t.Fatal(err)
	}
	return s, call
}

// call makes a call and returns its reply.
func (c *client) call(raw string) string {
	c.t.Helper()
	s, _ := c.start(raw)
	if err := s.end(); err != nil {
		c.t.Fatalf("%s: %v", raw, err)
	}
	return s.frame()
}

func (c *client) send(raw string) error {
	c.t.Helper()
	return c.conn.Send(request(c.t, raw))
}

func (c *client) listen(on bool) { c.conn.(upstream.Listener).Listen(on) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	list  = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	tool  = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}`
	prog  = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`
	logMs = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`
	ask   = `{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{}}`
)
