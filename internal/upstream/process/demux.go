package process

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// findLocked is the open call that an echoed id belongs to; nil where there is
// none. The original id that the echo carries must be the call's own: a server
// that mixes two ids up hits nobody.
func (h *hub) findLocked(tok []byte) *call {
	id, ok := parseWireID(tok)
	if !ok {
		return nil
	}
	c := h.conns[string(id.conn)]
	if c == nil {
		return nil
	}
	k := c.calls[id.n]
	if k == nil || !id.is(k.id) {
		return nil
	}
	return k
}

// response ends the call that the process answered. echo is the id as the
// process spelled it.
func (h *hub) response(l *link, msg *wire.Message, echo []byte) {
	h.mu.Lock()
	k := h.findLocked(echo)
	if k == nil {
		reason := h.whyNoneLocked(echo)
		if h.direct {
			h.lateAnswerLocked(echo)
		}
		h.mu.Unlock()
		h.srv.drops.add(reason, "response")
		return
	}
	h.takeLocked(k)
	if k.method == mcp.Initialize && k.done == nil {
		k.conn.acceptedLocked(l, msg)
	}
	if k.task || k.taskID != "" {
		k.conn.trackTaskLocked(k, msg)
	}
	h.mu.Unlock()
	k.reply(msg, l.line)
}

// spoilt ends the call that a faulty message was to answer, for there will be
// no other answer. It returns false where the message names no open call.
func (h *hub) spoilt(bad *wire.Error) bool {
	h.mu.Lock()
	k := h.findLocked(bad.ID)
	if k != nil {
		h.takeLocked(k)
	}
	h.mu.Unlock()
	if k == nil {
		return false
	}
	h.srv.drops.add(DropNoise, "response")
	k.fail(upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server's answer is no JSON-RPC response: %s", bad.Msg))
	return true
}

func (h *hub) whyNoneLocked(tok []byte) DropReason {
	id, ok := parseWireID(tok)
	switch {
	case !ok:
		return DropForeignID
	case h.conns[string(id.conn)] == nil:
		return DropNoSession
	}
	return DropLateResponse
}

// notification routes what the process says without asking for an answer.
func (h *hub) notification(msg *wire.Message) {
	method := mcp.MethodOf(msg.MethodName())
	if method == mcp.NotifProgress {
		h.progress(msg)
		return
	}
	switch {
	case h.direct:
		h.directNotification(method, msg)
		return
	case h.shared:
		h.sharedNotification(method, msg)
		return
	}
	h.mu.Lock()
	c := h.onlyLocked()
	if c == nil {
		h.mu.Unlock()
		h.srv.drops.add(DropNoSession, methodName(msg))
		return
	}
	switch method {
	case mcp.NotifCancelled: // of a request that the server had sent
		if key, ok := idKey(msg.Bytes(msg.P.RequestID)); ok {
			c.settleLocked(key)
		}
	case mcp.NotifTasksStatus:
		c.taskStatusLocked(msg)
	}
	homes := c.homesLocked(method == mcp.NotifMessage || method == mcp.NotifCancelled)
	h.mu.Unlock()
	if homes.deliver(upstream.Frame{Data: msg.Raw, Method: method}) == 0 {
		h.srv.drops.add(DropNoReader, methodName(msg))
	}
}

// progress goes to the call whose token it names, with the client's own token.
func (h *hub) progress(msg *wire.Message) {
	k, why := h.progressCall(msg)
	if k == nil {
		h.srv.drops.add(why, mcp.NotifProgress.String())
		return
	}
	frame := upstream.Frame{Method: mcp.NotifProgress, Relation: upstream.Own}
	frame.Data = restore(msg.Raw, msg.P.Token, k.token)
	if k.sink.Deliver(frame) == upstream.Taken {
		return
	}
	// The call's client takes plain JSON, or its response is out and the task
	// that it began runs on.
	frame.Relation = upstream.Loose
	if k.conn.events == nil || k.conn.events.Deliver(frame) != upstream.Taken {
		h.srv.drops.add(DropNoReader, mcp.NotifProgress.String())
	}
}

func (h *hub) progressCall(msg *wire.Message) (*call, DropReason) {
	tok, ok := wire.Unquote(msg.Bytes(msg.P.Token))
	if !ok {
		return nil, DropUnknownProgress
	}
	part, n, ok := parseRoute(tok)
	if !ok {
		return nil, DropUnknownProgress
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.conns[string(part)]
	if c == nil {
		return nil, DropNoSession
	}
	k := c.calls[n]
	if k == nil {
		k = c.tasks[n]
	}
	if k == nil || k.token == nil {
		return nil, DropUnknownProgress
	}
	if !k.idleAt.IsZero() {
		k.idleAt = time.Now().Add(h.srv.cfg.CallTimeout)
	}
	return k, ""
}

func methodName(msg *wire.Message) string { return cut(string(msg.MethodName()), 128) }
