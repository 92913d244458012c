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
}

// maxAsked bounds the requests of one server that wait for its client.
const maxAsked = 1024

// request routes what the process asks.
func (h *hub) request(msg *wire.Message) {
	method := mcp.MethodOf(msg.MethodName())
	if h.shared {
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
	a := &ask{id: bytes.Clone(msg.Bytes(msg.ID))}
	if c.asked == nil {
		c.asked = make(map[string]*ask)
	}
	c.asked[key] = a
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
	case where == upstream.Loose:
		a.seen = true
		if c.owed++; c.owed == 1 {
			c.owedSince = time.Now()
		}
	case where == upstream.Waiting:
	case method == mcp.Ping:
		delete(c.asked, key)
		h.respondOwnLocked(wire.AppendResult(nil, a.id, []byte("{}")))
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
	if !a.seen {
		return
	}
	if c.owed--; c.owed == 0 {
		c.resumeLocked()
	}
}

func (h *hub) refuseLocked(msg *wire.Message, err *upstream.Error) {
	h.respondOwnLocked(upstream.ErrorReply(msg.Bytes(msg.ID), err))
}

func (h *hub) respondOwnLocked(line []byte) {
	if err := h.writeLocked(line); err != nil {
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
