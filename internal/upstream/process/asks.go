package process

import (
	"bytes"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// ask is a request of the server that waits for the client's response.
type ask struct {
	id   []byte // raw token as the server wrote it
	seen bool   // a client has read it, so that it owes the answer
	ping bool
}

// maxAsked bounds the requests of one server that wait for its client, and
// maxPings those of them that are pings.
const (
	maxAsked = 1024
	maxPings = 16
)

// pingWait is how long a client may take to answer a server's ping before
// Signalbox does: a ping tells of the connection, and that is alive.
const pingWait = 3 * time.Second

// request routes what the process asks.
func (h *hub) request(msg *wire.Message) {
	method := mcp.MethodOf(msg.MethodName())
	switch {
	case h.direct: // forbidden there, and so is answering it
		h.srv.drops.add(DropRefusedRequest, methodName(msg))
		return
	case h.shared:
		h.sharedRequest(method, msg)
		return
	}
	h.mu.Lock()
	c := h.onlyLocked()
	key, ok := idKey(msg.Bytes(msg.ID))
	if c == nil || !ok {
		h.mu.Unlock()
		return
	}
	if c.asked[key] != nil || len(c.asked) >= maxAsked {
		h.refuseLocked(msg, upstream.Errorf(mcp.CodeInvalidRequest, "asked", "id in use, or too many open requests"))
		h.mu.Unlock()
		return
	}
	if method == mcp.Ping && c.pings >= maxPings {
		h.pongLocked(msg.Bytes(msg.ID))
		h.mu.Unlock()
		return
	}
	a := &ask{ping: method == mcp.Ping, id: bytes.Clone(msg.Bytes(msg.ID))}
	if c.asked == nil {
		c.asked = make(map[string]*ask)
	}
	c.asked[key] = a
	if a.ping {
		c.pings++
	}
	homes := c.homesLocked(true)
	homes.patient = method != mcp.Ping && c.can.allow(method)
	h.mu.Unlock()

	where := homes.deliver(upstream.Frame{Data: msg.Raw, Method: method})

	h.mu.Lock()
	defer h.mu.Unlock()
	if c.asked[key] != a {
		return // answered already
	}
	switch {
	case a.ping && where == upstream.Loose:
		time.AfterFunc(pingWait, func() { c.pong(key, a) })
	case a.ping:
		c.settleLocked(key)
		h.pongLocked(a.id)
	case where == upstream.Loose:
		a.seen = true
		if c.owed++; c.owed == 1 {
			c.owedSince = time.Now()
		}
	case where == upstream.Waiting:
	default:
		delete(c.asked, key)
		h.refuseLocked(msg, upstream.Errorf(mcp.CodeMethodNotFound, "no_client",
			"the client has no stream open that could take this request"))
		h.srv.drops.add(DropNoReader, methodName(msg))
	}
}

// settleLocked forgets what the server asked. When nothing is owed any more,
// the open calls get the time back that the client took.
func (c *conn) settleLocked(key string) {
	a := c.asked[key]
	if a == nil {
		return
	}
	delete(c.asked, key)
	if a.ping {
		c.pings--
	}
	if !a.seen {
		return
	}
	if c.owed--; c.owed == 0 {
		c.resumeLocked()
	}
}

// pong answers a ping that was passed on and that the client has not answered.
func (c *conn) pong(key string, a *ask) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	if c.ended || c.asked[key] != a {
		return
	}
	c.settleLocked(key)
	c.hub.pongLocked(a.id)
}

func (h *hub) pongLocked(id []byte) {
	h.respondOwnLocked(wire.AppendResult(nil, id, []byte("{}")))
}

func (h *hub) refuseLocked(msg *wire.Message, err *upstream.Error) {
	h.respondOwnLocked(upstream.ErrorReply(msg.Bytes(msg.ID), err))
}

func (h *hub) respondOwnLocked(line []byte) {
	if err := h.writeLocked(line, nil); err != nil {
		h.log.Debug("answer to the server not sent", "err", err)
	}
}

// capabilities are what the client of a process of its own declared.
type capabilities struct{ sampling, elicitation, roots bool }

func readCapabilities(init *wire.Message) capabilities {
	raw := init.Bytes(init.P.Capabilities)
	has := func(name string) bool {
		_, ok := wire.Lookup(raw, name)
		return raw != nil && ok
	}
	return capabilities{has("sampling"), has("elicitation"), has("roots")}
}

// allow tells whether a request may wait for a stream of the client: one that
// the client never said it can answer is refused at once instead.
func (c capabilities) allow(m mcp.Method) bool {
	switch m {
	case mcp.SamplingCreateMessage:
		return c.sampling
	case mcp.ElicitationCreate:
		return c.elicitation
	case mcp.RootsList:
		return c.roots
	}
	return true
}
