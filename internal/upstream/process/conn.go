package process

import (
	"bytes"
	"sync/atomic"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// readyWait bounds how long requests wait for notifications/initialized to be
// written before them.
const readyWait = time.Second

// conn is one session's part of the table. It implements upstream.Conn.
type conn struct {
	// static
	hub    *hub
	part   string        // 128 random bits, the first part of its ROUTEs
	events upstream.Sink // what the server sends unasked; nil for the hub's own conn

	nextCall atomic.Uint64

	// guarded by hub.mu
	ended bool
	calls map[uint64]*call // open, by number
	tasks map[uint64]*call // answered, but their task still runs and may report progress
	subs  map[*subscription]struct{}

	// a process of one session, guarded by hub.mu
	ready     bool        // initialized is written, requests may pass
	held      []*call     // requests that wait for that
	gate      *time.Timer // opens the gate without it
	asked     map[string]*ask
	owed      int // asks that the client has seen and not answered
	owedSince time.Time
	can       capabilities
}

// ask is a request of the server that waits for the client's response.
type ask struct {
	id   []byte // raw token as the server wrote it
	seen bool   // a client has read it, so that it owes the answer
}

func newConn(h *hub, events upstream.Sink) *conn {
	return &conn{hub: h, part: newConnPart(), events: events, calls: make(map[uint64]*call)}
}

// Start sends a request to the process.
func (c *conn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	k := newCall(c, req, sink)
	if c.hub.shared {
		return c.startShared(k, req)
	}
	k.line = k.encode(&req.Msg)
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.ended {
		return nil, upstream.ErrClosed
	}
	k.setDeadlines(&h.srv.cfg)
	if !c.ready && k.method != mcp.Ping {
		c.calls[k.n] = k
		c.held = append(c.held, k)
	} else if err := h.sendLocked(k); err != nil {
		return nil, err
	}
	h.armLocked(k)
	return k, nil
}

func (k *call) setDeadlines(cfg *Config) {
	now := time.Now()
	switch k.method {
	case mcp.Initialize:
		k.idleAt = now.Add(cfg.StartTimeout)
	case mcp.TasksResult: // blocks until the task ends (2025-11-25, tasks)
	default:
		k.idleAt = now.Add(cfg.CallTimeout)
	}
	k.limitAt = now.Add(cfg.CallLimit)
}

// initializeLocked passes the client's own initialize to its own process.
func (c *conn) initializeLocked(k *call) error {
	k.setDeadlines(&c.hub.srv.cfg)
	if err := c.hub.sendLocked(k); err != nil {
		return err
	}
	c.hub.armLocked(k)
	return nil
}

// Send passes a notification of the client, or its response to a request of
// the server.
func (c *conn) Send(req upstream.Request) error {
	h := c.hub
	h.mu.Lock()
	ended, err := c.passLocked(&req)
	h.mu.Unlock()
	failAll(ended)
	return err
}

// passLocked also returns the calls that the message ended.
func (c *conn) passLocked(req *upstream.Request) ([]over, error) {
	h := c.hub
	if c.ended {
		return nil, upstream.ErrClosed
	}
	if req.Msg.Kind == wire.Response {
		return nil, c.respondLocked(&req.Msg)
	}
	switch req.Method {
	case mcp.NotifCancelled:
		return c.cancelledLocked(&req.Msg)
	case mcp.NotifInitialized:
		if h.shared {
			return nil, nil // said once, by Signalbox
		}
		if err := h.writeLocked(ownLine(req.Msg.Raw)); err != nil {
			return nil, err
		}
		return c.openGateLocked(), nil
	case mcp.NotifRootsListChanged, mcp.NotifProgress:
		if h.shared { // the process asked nobody for roots, nor for anything that has progress
			h.srv.drops.add(DropSharedState, req.Method.String())
			return nil, nil
		}
	}
	return nil, h.writeLocked(ownLine(req.Msg.Raw))
}

// ownLine makes a line of a client's bytes, which the caller owns.
func ownLine(raw []byte) []byte {
	wire.OneLine(raw)
	return raw
}

// respondLocked passes the client's answer to what the server asked, with the
// id as the server spelled it. A shared process asked nothing; one of the
// client's own may have taken its question back, which is no fault of anybody.
func (c *conn) respondLocked(m *wire.Message) error {
	key, ok := idKey(m.Bytes(m.ID))
	a := c.asked[key]
	switch {
	case c.hub.shared:
		return upstream.ErrNothingPending
	case !ok || a == nil:
		c.hub.srv.drops.add(DropNothingAsked, "response")
		return nil
	}
	line := ownLine(m.Raw)
	if id := m.Bytes(m.ID); !bytes.Equal(id, a.id) {
		line = wire.Splice(make([]byte, 0, len(line)+len(a.id)), line, wire.Edit{Span: m.ID, New: a.id})
	}
	if err := c.hub.writeLocked(line); err != nil {
		return err
	}
	c.settleLocked(key)
	return nil
}

// settleLocked forgets what the server asked. When nothing is owed any more,
// the time that the client took is given back to the open calls.
func (c *conn) settleLocked(key string) {
	a := c.asked[key]
	if a == nil {
		return
	}
	delete(c.asked, key)
	if !a.seen {
		return
	}
	if c.owed--; c.owed > 0 {
		return
	}
	pause := time.Since(c.owedSince)
	for _, k := range c.calls {
		if !k.idleAt.IsZero() {
			k.idleAt = k.idleAt.Add(pause)
			c.hub.armLocked(k)
		}
	}
}

// cancelledLocked passes notifications/cancelled on with the process's id of
// the call. Only the sender's own calls are looked at. A client that has
// several calls open under one id cannot say which one it means.
func (c *conn) cancelledLocked(m *wire.Message) ([]over, error) {
	want, ok := idKey(m.Bytes(m.P.RequestID))
	var hit *call
	for _, k := range c.calls {
		if key, _ := idKey(k.id); !ok || key != want || k.method == mcp.Initialize {
			continue
		}
		if hit != nil {
			c.hub.srv.drops.add(DropAmbiguousCancel, hit.method.String())
			return nil, nil
		}
		hit = k
	}
	if hit == nil {
		c.hub.srv.drops.add(DropUnknownCancel, mcp.NotifCancelled.String())
		return nil, nil
	}
	delete(c.calls, hit.n)
	ended := []over{{hit, upstream.ErrCancelled}}
	h := c.hub
	if hit.ticket == nil || h.link == nil || h.link.pipe.Withdraw(hit.ticket) {
		return ended, nil // the process has not seen the request and never will
	}
	id := appendWireID(nil, c.part, hit.n, hit.id)
	line := wire.Splice(make([]byte, 0, len(m.Raw)+len(id)), m.Raw, wire.Edit{Span: m.P.RequestID, New: id})
	return ended, h.writeLocked(ownLine(line))
}

// openGateLocked lets the requests pass that waited for initialized, and
// returns those that could not be sent.
func (c *conn) openGateLocked() []over {
	if c.ready {
		return nil
	}
	c.ready = true
	if c.gate != nil {
		c.gate.Stop()
	}
	held := c.held
	c.held = nil
	return c.hub.sendAllLocked(held)
}

func (c *conn) gateTimeout() {
	h := c.hub
	h.mu.Lock()
	var failed []over
	if !c.ended {
		failed = c.openGateLocked()
	}
	h.mu.Unlock()
	failAll(failed)
}

// End ends the session at the server.
func (c *conn) End(reason error) {
	h := c.hub
	h.mu.Lock()
	if c.ended {
		h.mu.Unlock()
		return
	}
	calls := c.removeLocked()
	if h.shared {
		for _, k := range calls {
			h.retractLocked(k, reason)
		}
		c.unsubscribeAllLocked()
	} else {
		if h.link != nil && h.link.pipe != nil {
			h.link.pipe.Stop()
		}
		h.closed = true
		h.stopTimersLocked()
	}
	h.mu.Unlock()
	h.srv.forget(h)
	c.finish(calls, reason)
}

// removeLocked takes the conn and all its calls out of the table.
func (c *conn) removeLocked() []*call {
	c.ended = true
	delete(c.hub.conns, c.part)
	calls := make([]*call, 0, len(c.calls))
	for _, k := range c.calls {
		calls = append(calls, k)
	}
	clear(c.calls)
	c.tasks, c.held, c.asked, c.owed = nil, nil, nil, 0
	if c.gate != nil {
		c.gate.Stop()
	}
	return calls
}

func (c *conn) finish(calls []*call, reason error) {
	for _, k := range calls {
		k.fail(reason)
	}
	if c.events != nil {
		c.events.End(reason)
	}
}

// idKey is the value of an id with its type, so that other spellings of one
// string are the same id and 1 is not "1".
func idKey(tok []byte) (string, bool) {
	if s, ok := wire.Unquote(tok); ok {
		return "s" + string(s), true
	}
	return "n" + string(tok), wire.ValidIDToken(tok)
}
