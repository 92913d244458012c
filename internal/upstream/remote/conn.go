package remote

import (
	"bytes"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// conn is one session at a Streamable HTTP server. It implements upstream.Conn,
// upstream.Listener and upstream.Movable.
type conn struct {
	// static
	srv    *Server
	events upstream.Sink
	lone   bool // its calls have no session (lone.go)

	mu      sync.Mutex
	via     upstream.Conn // set where the server turned out to speak HTTP+SSE
	ended   bool
	opened  bool               // the server has accepted initialize
	init    []byte             // the client's initialize, while it may be needed again
	at      target             // addr is nil until the session begins
	opening *recovery          // not nil while the session is being opened, or opened anew
	calls   map[*call]struct{} // open
	asks    map[string]*call   // what the server has asked a client, by idKey; nil: on the session's own stream
	owed    time.Time          // since when there is something in asks
	replay  upstream.State     // what a new life of the session must be told: LogLevel, Subscriptions
	header  http.Header        // of the client's last message, where some of it is forwarded
	brokeAt time.Time          // when a connection last ended under a call

	wanted    bool // the client listens
	noStream  bool // the server offers no stream of its own
	listening *listener
	lastEvent string // of the server's own stream, to go on from
}

// target is where and as what a request goes.
type target struct {
	addr     *address
	session  string // the server's own id
	revision mcp.Revision
	lines    string // the headers that say so
	life     int    // raised each time the session is opened anew
}

// named is t with what the server said in its answer to initialize.
func (t target) named(session string, revision mcp.Revision) target {
	t.session, t.revision, t.lines = session, revision, ""
	if session != "" {
		t.lines = mcp.HeaderSession + ": " + session + "\r\n"
	}
	if revision != "" {
		t.lines += mcp.HeaderVersion + ": " + string(revision) + "\r\n"
	}
	return t
}

func newConn(s *Server, init upstream.Request, events upstream.Sink) *conn {
	c := &conn{srv: s, events: events, init: bytes.Clone(init.Msg.Raw), opening: newRecovery(), calls: make(map[*call]struct{})}
	c.rememberLocked(&init)
	return c
}

// Start sends a request. While the session is being opened it waits.
func (c *conn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	if req.Method == mcp.Initialize {
		return nil, errInitialized
	}
	c.mu.Lock()
	if via := c.via; via != nil {
		c.mu.Unlock()
		return via.Start(req, sink)
	}
	if c.ended {
		c.mu.Unlock()
		return nil, upstream.ErrClosed
	}
	c.rememberLocked(&req)
	k := c.newCall(req, sink)
	c.calls[k] = struct{}{}
	c.srv.wg.Add(1)
	c.mu.Unlock()
	if req.Inline && len(req.Msg.Raw) <= inlineMost {
		k.prepare()
		return k, nil
	}
	go k.run()
	return k, nil
}

var errInitialized = upstream.Errorf(mcp.CodeInvalidRequest, "initialized", "the session has been initialized")

// Send passes a notification or a response, and waits until the server has
// taken it, so that what the client sends next comes after it.
func (c *conn) Send(req upstream.Request) error {
	c.mu.Lock()
	if via := c.via; via != nil {
		c.mu.Unlock()
		return via.Send(req)
	}
	if c.ended {
		c.mu.Unlock()
		return upstream.ErrClosed
	}
	c.rememberLocked(&req)
	var hit *call
	switch {
	case req.Msg.Kind == wire.Response:
		c.settledLocked(idKey(req.Msg.Bytes(req.Msg.ID)))
	case req.Method == mcp.NotifCancelled:
		if hit = c.cancelledLocked(&req.Msg); hit == nil {
			c.mu.Unlock()
			return nil // nothing open, or it cannot be told which: guessing may stop the wrong call
		}
	}
	c.srv.wg.Add(1)
	c.mu.Unlock()
	defer c.srv.wg.Done()
	if hit != nil {
		hit.stop(upstream.ErrCancelled)
	}
	return c.post(req)
}

func (c *conn) rememberLocked(req *upstream.Request) {
	if len(c.srv.heads.forward) > 0 && req.Header != nil {
		c.header = req.Header
	}
}

// cancelledLocked is the one open call that a cancel can mean.
func (c *conn) cancelledLocked(m *wire.Message) *call {
	want := m.Bytes(m.P.RequestID)
	var hit *call
	for k := range c.calls {
		if k.method == mcp.Initialize || !sameID(k.id, want) {
			continue
		}
		if hit != nil {
			return nil
		}
		hit = k
	}
	return hit
}

// sameID compares two id tokens by type and value.
func sameID(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, ok1 := wire.Unquote(a)
	y, ok2 := wire.Unquote(b)
	return ok1 && ok2 && bytes.Equal(x, y)
}

// idKey is the value of an id with its type, so that other spellings of one
// string are the same id and 1 is not "1".
func idKey(tok []byte) string {
	if s, ok := wire.Unquote(tok); ok {
		return "s" + string(s)
	}
	return "n" + string(tok)
}

// Moves tells whether there is an address that answered initialize.
func (c *conn) Moves() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.movesLocked(c.at)
}

// State is what the record keeps.
func (c *conn) State() upstream.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateLocked(c.at)
}

// End ends the session here and, in the background, at the server.
func (c *conn) End(reason error) { c.leaveFor(reason, !isLost(reason)) }

// leaveFor ends everything here; tell: the server shall know.
func (c *conn) leaveFor(reason error, tell bool) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	via, t, l := c.via, c.at, c.listening
	calls := c.calls
	c.calls, c.asks, c.listening = nil, nil, nil
	farewell := via == nil && t.session != "" && tell
	if farewell {
		c.srv.wg.Add(1)
	}
	c.mu.Unlock()
	c.srv.forget(c)
	for k := range calls {
		k.hold.abort()
		k.sink.End(reason)
	}
	if l != nil {
		l.hold.abort()
	}
	switch {
	case via != nil:
		via.End(reason) // ends the events too
		return
	case farewell:
		go c.goodbye(t)
	case t.addr != nil:
		c.srv.addrs.release(t.addr)
	}
	c.events.End(reason)
}

// goodbye tells the server that the session is over. That it offers no DELETE,
// or knows the session no more, is no fault.
func (c *conn) goodbye(t target) {
	defer c.srv.wg.Done()
	defer c.srv.addrs.release(t.addr)
	c.mu.Lock()
	client := c.header
	c.mu.Unlock()
	head := append(c.srv.heads.appendNamed([]byte(c.srv.heads.del+t.lines), client), "\r\n"...)
	o := options{deadline: time.Now().Add(farewell)}
	h, resp, _, err := c.srv.roundTrip(t.addr, head, nil, o)
	if isStale(err) {
		o.fresh = true
		h, resp, _, err = c.srv.roundTrip(t.addr, head, nil, o)
	}
	if err != nil {
		c.srv.cfg.Log.Debug("DELETE not sent to the server", "err", err)
		return
	}
	if resp.Status >= 400 && resp.Status != 404 && resp.Status != 405 && resp.Status != 501 {
		c.srv.cfg.Log.Info("the server did not end a session", "status", resp.Status)
	}
	discard(h, resp)
	t.addr.pool.Put(h)
}
