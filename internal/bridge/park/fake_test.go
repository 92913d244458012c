package park

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const fullServer = `{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true},` +
	`"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tasks":{},"experimental":{"x":1}},` +
	`"instructions":"be \u006bind","serverInfo":{"name":"fake","version":"1"}}`

const plainServer = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`

// server is an upstream.Server whose tests play the server's part.
type server struct {
	t    *testing.T
	init string // the result of initialize; "": not answered by itself

	mu      sync.Mutex
	openErr error
	conns   []*conn
	refuse  map[string]bool // URIs that cannot be watched
}

// conn is one session at the fake server.
type conn struct {
	srv    *server
	init   upstream.Request
	reply  upstream.Sink
	events upstream.Sink

	mu     sync.Mutex
	log    []string // what came by Send, and requests of Signalbox itself that were answered
	calls  []*leg
	ended  error
	listen []bool
	sendTo func(upstream.Request) error
	start  func(upstream.Request) error // before a call is taken
}

// leg is one call at the server.
type leg struct {
	conn *conn
	req  upstream.Request
	sink upstream.Sink

	mu        sync.Mutex
	done      bool
	cancelled error
}

func (s *server) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.openErr != nil {
		return nil, s.openErr
	}
	c := &conn{srv: s, init: init, reply: reply, events: events}
	s.conns = append(s.conns, c)
	if s.init != "" {
		go c.answerInit(s.init)
	}
	return c, nil
}

func (c *conn) answerInit(result string) {
	c.reply.Deliver(upstream.Frame{Data: wire.AppendResult(nil, c.init.Msg.Bytes(c.init.Msg.ID), []byte(result)), Relation: upstream.Reply})
	c.reply.End(nil)
}

func (s *server) Close() {}

func (c *conn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	c.mu.Lock()
	start := c.start
	c.mu.Unlock()
	if start != nil {
		if err := start(req); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return nil, upstream.ErrClosed
	}
	k := &leg{conn: c, req: req, sink: sink}
	c.calls = append(c.calls, k)
	uri, _ := wire.Unquote(req.Msg.Bytes(req.Msg.P.URI))
	switch req.Method {
	case mcp.LoggingSetLevel:
		c.log = append(c.log, "level "+string(req.Msg.Bytes(req.Msg.P.Level)))
		go k.result(`{}`)
	case mcp.ResourcesSubscribe:
		c.log = append(c.log, "subscribe "+string(uri))
		if c.srv.refuse[string(uri)] {
			go k.error(-32602, "no")
		} else {
			go k.result(`{}`)
		}
	case mcp.ResourcesUnsubscribe:
		c.log = append(c.log, "unsubscribe "+string(uri))
		go k.result(`{}`)
	}
	return k, nil
}

func (c *conn) Send(req upstream.Request) error {
	c.mu.Lock()
	send, ended := c.sendTo, c.ended
	c.mu.Unlock()
	if ended != nil {
		return upstream.ErrClosed
	}
	if send != nil {
		if err := send(req); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, string(req.Msg.Raw))
	return nil
}

func (c *conn) End(reason error) {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return
	}
	c.ended = reason
	calls := slices.Clone(c.calls)
	c.mu.Unlock()
	for _, k := range calls {
		k.end(reason)
	}
	c.events.End(reason)
}

func (c *conn) Listen(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listen = append(c.listen, on)
}

func (c *conn) over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// said is what the server got by Send, and of Signalbox itself, since last asked.
func (c *conn) said() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	log := c.log
	c.log = nil
	return log
}

// ask sends a request of the server on the session's own stream.
func (c *conn) ask(raw string) {
	c.events.Deliver(frame(raw, upstream.Loose))
}

func frame(raw string, r upstream.Relation) upstream.Frame {
	m, err := wire.Parse([]byte(raw))
	if err != nil {
		panic(raw + ": " + err.Error())
	}
	return upstream.Frame{Data: m.Raw, Method: mcp.MethodOf(m.MethodName()), Relation: r}
}

func (k *leg) take() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.done {
		return false
	}
	k.done = true
	return true
}

func (k *leg) end(err error) {
	if k.take() {
		k.sink.End(err)
	}
}

func (k *leg) Cancel(reason error) {
	if !k.take() {
		return
	}
	k.mu.Lock()
	k.cancelled = reason
	k.mu.Unlock()
	k.sink.End(reason)
}

func (k *leg) wasCancelled() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.cancelled
}

func (k *leg) id() []byte { return k.req.Msg.Bytes(k.req.Msg.ID) }

func (k *leg) answer(raw []byte) {
	if k.take() {
		k.sink.Deliver(upstream.Frame{Data: raw, Method: k.req.Method, Relation: upstream.Reply})
		k.sink.End(nil)
	}
}

func (k *leg) result(result string) { k.answer(wire.AppendResult(nil, k.id(), []byte(result))) }
func (k *leg) error(code int, msg string) {
	k.answer(wire.AppendError(nil, k.id(), code, msg, nil))
}
func (k *leg) say(raw string)   { k.sink.Deliver(frame(raw, upstream.Own)) }
func (k *leg) loose(raw string) { k.sink.Deliver(frame(raw, upstream.Loose)) }
func (k *leg) progress(n int) {
	k.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, k.req.Msg.Bytes(k.req.Msg.P.MetaToken), n))
}
