package live

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const acceptedResult = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"fake","version":"1"}}`

// fakeServer is an upstream.Server whose calls are answered by the test.
type fakeServer struct {
	// onOpen, if not nil, decides what Open does; else initialize is accepted.
	onOpen func(c *fakeConn) error
	// onStart, if not nil, is called before a call is looked at.
	onStart func()
	// onCall, if not nil, takes each call; else calls is filled.
	onCall func(k *fakeCall)

	mu        sync.Mutex
	conns     []*fakeConn
	attached  int
	attachErr error
}

func (s *fakeServer) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	c := &fakeConn{srv: s, events: events, calls: make(chan *fakeCall, 4096), open: make(map[*fakeCall]bool)}
	c.init = c.enterLocked(init, reply)
	s.mu.Lock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	if s.onOpen == nil {
		c.init.answer(acceptedResult)
		return c, nil
	}
	if err := s.onOpen(c); err != nil {
		return nil, err
	}
	return c, nil
}

func (s *fakeServer) Close() {}

// last is the connection that was opened last.
func (s *fakeServer) last() *fakeConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[len(s.conns)-1]
}

type fakeConn struct {
	srv    *fakeServer
	init   *fakeCall
	events upstream.Sink
	calls  chan *fakeCall

	mu       sync.Mutex
	open     map[*fakeCall]bool
	sent     []string
	startErr error
	sendErr  error
	ended    error
	heard    []bool // what Listen was told
	onListen func(on bool)
	state    upstream.State
	detached bool
}

// Listen makes it an upstream.Listener.
func (c *fakeConn) Listen(on bool) {
	if c.onListen != nil {
		c.onListen(on)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = append(c.heard, on)
}

func (c *fakeConn) hears() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.heard)
}

// Moves, State, Adopt and Detach make it an upstream.Movable.
func (c *fakeConn) Moves() bool { return c.State().Address != "" }

func (c *fakeConn) State() upstream.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *fakeConn) Adopt(st upstream.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state = st
}

func (c *fakeConn) Detach(reason error) {
	c.mu.Lock()
	c.detached = true
	c.mu.Unlock()
	c.End(reason)
}

// Attach makes it an upstream.Attacher.
func (s *fakeServer) Attach(st upstream.State, events upstream.Sink) (upstream.Conn, error) {
	c := &fakeConn{srv: s, events: events, calls: make(chan *fakeCall, 4096), open: make(map[*fakeCall]bool), state: st}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached++
	if s.attachErr != nil {
		return nil, s.attachErr
	}
	s.conns = append(s.conns, c)
	return c, nil
}

func (c *fakeConn) enterLocked(req upstream.Request, sink upstream.Sink) *fakeCall {
	k := &fakeCall{conn: c, id: bytes.Clone(req.Msg.Bytes(req.Msg.ID)), sink: sink}
	c.open[k] = true
	return k
}

func (c *fakeConn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	if c.srv.onStart != nil {
		c.srv.onStart()
	}
	c.mu.Lock()
	err := c.startErr
	if c.ended != nil {
		err = upstream.ErrClosed
	}
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	k := c.enterLocked(req, sink)
	c.mu.Unlock()
	if c.srv.onCall != nil {
		c.srv.onCall(k)
	} else {
		c.calls <- k
	}
	return k, nil
}

func (c *fakeConn) Send(req upstream.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return upstream.ErrClosed
	}
	c.sent = append(c.sent, string(req.Msg.Raw))
	return c.sendErr
}

func (c *fakeConn) End(reason error) {
	c.mu.Lock()
	again := c.ended != nil
	if !again {
		c.ended = reason
	}
	open := c.open
	c.open = make(map[*fakeCall]bool)
	c.mu.Unlock()
	if again {
		return
	}
	for k := range open {
		k.sink.End(reason)
	}
	c.events.End(reason)
}

func (c *fakeConn) endedWith() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// tell delivers to the session what names no call.
func (c *fakeConn) tell(data string, r upstream.Relation) upstream.Verdict {
	msg, err := wire.Parse([]byte(data))
	if err != nil {
		panic(err)
	}
	return c.events.Deliver(upstream.Frame{Data: []byte(data), Method: upstream.NewRequest(msg).Method, Relation: r})
}

type fakeCall struct {
	conn *fakeConn
	id   []byte
	sink upstream.Sink

	cancelled error // guarded by conn.mu
}

// take takes the call out of the table: one of several that end it gets true.
func (k *fakeCall) take() bool {
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	was := k.conn.open[k]
	delete(k.conn.open, k)
	return was
}

func (k *fakeCall) answer(result string) {
	if k.take() {
		k.sink.Deliver(upstream.Frame{Data: wire.AppendResult(nil, k.id, []byte(result)), Relation: upstream.Reply})
		k.sink.End(nil)
	}
}

// refuse answers with an error of the server.
func (k *fakeCall) refuse() {
	if k.take() {
		k.sink.Deliver(upstream.Frame{Data: wire.AppendError(nil, k.id, -32602, "no", nil), Relation: upstream.Reply})
		k.sink.End(nil)
	}
}

func (k *fakeCall) fail(err error) {
	if k.take() {
		k.sink.End(err)
	}
}

func (k *fakeCall) deliver(data string, r upstream.Relation) upstream.Verdict {
	f := upstream.Frame{Data: []byte(data), Relation: r}
	if msg, err := wire.Parse([]byte(data)); err == nil {
		f.Method = upstream.NewRequest(msg).Method
	}
	return k.sink.Deliver(f)
}

func (k *fakeCall) Cancel(reason error) {
	if k.take() {
		k.conn.mu.Lock()
		k.cancelled = reason
		k.conn.mu.Unlock()
		k.sink.End(reason)
	}
}

func (k *fakeCall) why() error {
	k.conn.mu.Lock()
	defer k.conn.mu.Unlock()
	return k.cancelled
}
