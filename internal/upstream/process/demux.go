package process

import (
	"errors"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
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

// response ends the call that the process answered.
func (h *hub) response(l *link, msg *wire.Message) {
	tok := msg.Bytes(msg.ID)
	h.mu.Lock()
	k := h.findLocked(tok)
	if k == nil {
		reason := h.whyNoneLocked(tok)
		h.mu.Unlock()
		h.srv.drops.add(reason, "response")
		return
	}
	delete(k.conn.calls, k.n)
	if k.method == mcp.Initialize && k.done == nil {
		k.conn.acceptedLocked(l, msg)
	}
	if k.task || k.taskID != "" {
		k.conn.trackTaskLocked(k, msg)
	}
	h.mu.Unlock()
	k.reply(msg)
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

// acceptedLocked notes that the process of one session answered initialize.
func (c *conn) acceptedLocked(l *link, msg *wire.Message) {
	l.up = true
	c.hub.srv.goodStart()
	if v, ok := wire.Lookup(msg.Raw, "result", "protocolVersion"); ok {
		l.batches = string(v.Of(msg.Raw)) == `"`+string(mcp.R20250326)+`"`
	}
	if msg.Result.Present() {
		c.gate = time.AfterFunc(readyWait, c.gateTimeout)
	}
}

// notification routes what the process says without asking for an answer.
func (h *hub) notification(msg *wire.Message) {
	method := mcp.MethodOf(msg.MethodName())
	if method == mcp.NotifProgress {
		h.progress(msg)
		return
	}
	if h.shared {
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
	if k.conn.events.Deliver(frame) != upstream.Taken {
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
	a := &ask{id: slices.Clone(msg.Bytes(msg.ID))}
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

// maxAsked bounds the requests of one server that wait for its client.
const maxAsked = 1024

func (h *hub) refuseLocked(msg *wire.Message, err *upstream.Error) {
	h.respondOwnLocked(upstream.ErrorReply(msg.Bytes(msg.ID), err))
}

func (h *hub) respondOwnLocked(line []byte) {
	if err := h.writeLocked(line); err != nil {
		h.log.Debug("answer to the server not sent", "err", err)
	}
}

// onlyLocked is the one session of a process that has one.
func (h *hub) onlyLocked() *conn {
	for _, c := range h.conns {
		return c
	}
	return nil
}

// homes are the streams of one session, in the order in which they are tried
// for what the server sent without naming a call.
type homes struct {
	calls      []upstream.Sink // newest first
	events     upstream.Sink
	callsFirst bool
	patient    bool // may wait for a stream that is not there yet
}

// homesLocked: requests and log messages go to the most recent open call whose
// client reads, else to the session's stream; all else the other way round.
func (c *conn) homesLocked(callsFirst bool) homes {
	open := make([]*call, 0, len(c.calls))
	for _, k := range c.calls {
		if k.sink != nil && k.method != mcp.Initialize {
			open = append(open, k)
		}
	}
	slices.SortFunc(open, func(a, b *call) int { return int(int64(b.n) - int64(a.n)) })
	hs := homes{events: c.events, callsFirst: callsFirst, patient: true}
	for _, k := range open {
		hs.calls = append(hs.calls, k.sink)
	}
	return hs
}

// deliver tells by which relation the frame was taken; 0: by nobody.
func (hs *homes) deliver(f upstream.Frame) upstream.Relation {
	f.Relation = upstream.Loose
	if !hs.callsFirst && hs.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	for _, s := range hs.calls {
		if s.Deliver(f) == upstream.Taken {
			return f.Relation
		}
	}
	if hs.callsFirst && hs.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	f.Relation = upstream.Waiting
	if hs.patient && hs.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	return 0
}

func methodName(msg *wire.Message) string { return cut(string(msg.MethodName()), 128) }

func pipeError(err error) error {
	switch {
	case errors.Is(err, child.ErrBusy):
		return upstream.ErrBusy
	case errors.Is(err, child.ErrGone):
		return upstream.Errorf(mcp.CodeInternal, "process_exited", "server process is gone")
	}
	return err
}
