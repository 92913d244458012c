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
	ready     bool            // initialized is written, requests may pass
	gate      *time.Timer     // makes it ready without that
	asked     map[string]*ask // by the value of their ids
	pings     int             // of asked, how many are pings
	owed      int             // asks that the client has seen and not answered
	owedSince time.Time
	can       capabilities
}

func newConn(h *hub, events upstream.Sink) *conn {
	return &conn{hub: h, part: newConnPart(), events: events, calls: make(map[uint64]*call)}
}

// Start sends a request to the process.
func (c *conn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	if req.Method == mcp.Initialize {
		return nil, errInitialized
	}
	k := newCall(c, req, sink)
	if c.hub.shared {
		return c.startShared(k, req)
	}
	k.line = k.encode(&req)
	h := c.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if c.ended {
		return nil, upstream.ErrClosed
	}
	k.setDeadlines(&h.srv.cfg)
	enter := h.sendLocked
	if !c.ready && k.method != mcp.Ping {
		enter = h.holdLocked
	}
	if err := enter(k); err != nil {
		return nil, err
	}
	h.armLocked(k)
	return k, nil
}

var errInitialized = upstream.Errorf(mcp.CodeInvalidRequest, "initialized", "the session has been initialized")

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
	switch {
	case c.ended:
		return nil, upstream.ErrClosed
	case req.Msg.Kind == wire.Response:
		return nil, c.respondLocked(req)
	case req.Method == mcp.NotifCancelled:
		return c.cancelledLocked(&req.Msg), nil
	case h.shared:
		return nil, h.passSharedLocked(req)
	}
	if err := h.writeLocked(ownLine(req.Msg.Raw), req.Header); err != nil {
		return nil, err
	}
	if req.Method == mcp.NotifInitialized {
		return c.openGateLocked(), nil
	}
	return nil, nil
}

// ownLine makes a line of a client's bytes, which the caller owns.
func ownLine(raw []byte) []byte {
	wire.OneLine(raw)
	return raw
}

// respondLocked passes the client's answer to what the server asked, with the
// id as the server spelled it. A shared process asked nothing; one of the
// client's own may have taken its question back, which is no fault of anybody.
func (c *conn) respondLocked(req *upstream.Request) error {
	m := &req.Msg
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
		line = wire.Splice(nil, line, wire.Edit{Span: m.ID, New: a.id})
	}
	if err := c.hub.writeLocked(line, req.Header); err != nil {
		return err
	}
	c.settleLocked(key)
	return nil
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
	return c.hub.sendHeldLocked(c)
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
	ended := c.removeLocked(reason)
	if h.shared {
		for _, o := range ended {
			h.retractLocked(o.k, reason)
		}
	} else {
		h.stopLocked()
		h.closed = true
		h.stopTimersLocked()
	}
	h.mu.Unlock()
	h.srv.forget(h)
	failAll(ended)
	if c.events != nil {
		c.events.End(reason)
	}
}

// removeLocked takes the conn out of the table, with all its calls, which it
// returns.
func (c *conn) removeLocked(reason error) []over {
	c.ended = true
	delete(c.hub.conns, c.part)
	ended := make([]over, 0, len(c.calls))
	for _, k := range c.calls {
		c.hub.takeLocked(k)
		ended = append(ended, over{k, reason})
	}
	for s := range c.subs {
		c.hub.leaveLocked(c, s)
	}
	c.tasks, c.asked, c.owed = nil, nil, 0
	if c.gate != nil {
		c.gate.Stop()
	}
	return ended
}
