package process

import (
	"bytes"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A process of the per-request era (MCP 2026-07-28, basic/transports/stdio) has
// no handshake and no sessions: one serves all clients. It is up when it has answered
// server/discover, which Signalbox asks first: so it is known whether a process dies
// of its start or of what a client sent, and one client cannot keep the others
// waiting for the next start. The calls of all are the hub's own. A subscriptions/listen outlives the
// process: the next one is asked again, and its client hears nothing of it.

// Ask makes a Server with Config.PerRequest an upstream.Asker.
func (s *Server) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	h := s.shared
	c := h.own
	k := newCall(c, req, sink)
	h.mu.Lock()
	asksLogs := h.mayLogLocked(k, &req)
	h.mu.Unlock()
	if req.Msg.P.MetaLogLevel.Present() && !asksLogs {
		var err error
		if req.Msg, err = withoutLogLevel(&req); err != nil {
			return nil, err
		}
	}
	k.line = k.encode(&req)
	if k.method == mcp.SubscriptionsListen {
		k.again = bytes.Clone(k.line)
	}
	h.mu.Lock()
	begin, err := c.queueLocked(k)
	if err != nil && h.logging == k {
		h.logging = nil
	}
	h.mu.Unlock()
	if begin != nil {
		h.start(begin)
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// mayLogLocked tells whether a call may ask for log messages: one at a time, for
// nothing in them says which call they belong to, and none while the process may
// still log for one that was given up.
func (h *hub) mayLogLocked(k *call, req *upstream.Request) bool {
	switch {
	case !req.Msg.P.MetaLogLevel.Present(), h.logging != nil, h.lateLocked():
		return false
	case k.method == mcp.SubscriptionsListen: // none come on its stream (2026-07-28, server/utilities/logging)
		return false
	}
	h.logging, k.logs = k, true
	return true
}

// lateLogs is for how long a process must have been quiet before it is believed to
// log no more for a call that was given up and that it has not answered.
const lateLogs = time.Minute

// lateLocked: what the process logs now may be of a call that was given up.
func (h *hub) lateLocked() bool { return h.late != 0 && time.Now().Before(h.lateUntil) }

// lateAnswerLocked: the process is done with the call that it answers, though nobody
// waits for that.
func (h *hub) lateAnswerLocked(echo []byte) {
	if id, ok := parseWireID(echo); ok && id.n == h.late && string(id.conn) == h.own.part {
		h.late = 0
	}
}

// withoutLogLevel is the request without its wish for log messages.
func withoutLogLevel(req *upstream.Request) (wire.Message, error) {
	req.Buffer = nil
	return wire.Parse(wire.Remove(req.Msg.Raw, "params", "_meta", mcp.MetaLogLevel))
}

// discoverLocked asks a process that has just been started whether it is up.
func (h *hub) discoverLocked(l *link) error {
	k := h.ownCall(mcp.ServerDiscover, func(_ wire.Message, err error) { h.discovered(l, err) })
	params := `{"_meta":{"` + mcp.MetaVersion + `":"` + string(mcp.R20260728) + `","` + mcp.MetaClientCapabilities + `":{},"` +
		mcp.MetaClientInfo + `":{"name":"signalbox","version":`
	return h.sendOwnLocked(k, params+string(wire.AppendQuote(nil, h.srv.cfg.Version))+"}}}")
}

// discovered takes the answer, whatever it says. The lock was free since it came: the
// process may have been given up, or be gone.
func (h *hub) discovered(l *link, err error) {
	var ended []over
	h.mu.Lock()
	switch {
	case h.link != l || l.doomed != nil || h.closed:
	case err != nil:
		ended = h.giveUpLocked(l, err)
	default:
		l.nowUpLocked(nil)
		h.startedAt = time.Now()
		ended = h.sendHeldLocked(h.own)
	}
	h.mu.Unlock()
	failAll(ended)
}

// listensLocked takes the listens that stand out of those whom a death concerns:
// they wait for the next life.
func (h *hub) listensLocked() (waiting []*call) {
	for _, k := range h.own.calls {
		if k.acked {
			h.takeLocked(k)
			waiting = append(waiting, k)
		}
	}
	return waiting
}

// waitLocked enters the listens that wait for the next life of the process, and
// returns those for which there is no room.
func (h *hub) waitLocked(waiting []*call) (failed []over) {
	for _, k := range waiting {
		k.line, k.ticket = bytes.Clone(k.again), nil
		if err := h.holdLocked(k); err != nil {
			k.line = nil
			failed = append(failed, over{k, err})
		}
	}
	return failed
}

// directNotification routes what a process of the per-request era says without
// an answer to it being owed. Progress was routed before.
func (h *hub) directNotification(method mcp.Method, msg *wire.Message) {
	switch {
	case method == mcp.NotifCancelled: // whether or not it also names the subscription
		h.listenEnded(msg)
	case msg.P.MetaSubscription.Present():
		h.subscribed(method, msg)
	case method == mcp.NotifMessage:
		h.logged(msg)
	default:
		h.srv.drops.add(DropUnattributable, methodName(msg))
	}
}

// subscribed passes a notification to the listen that it names, under the
// client's own id.
func (h *hub) subscribed(method mcp.Method, msg *wire.Message) {
	h.mu.Lock()
	k := h.findLocked(msg.Bytes(msg.P.MetaSubscription))
	ack := method == mcp.NotifSubscriptionsAcknowledged
	drop := DropReason("")
	switch {
	case k == nil || k.method != mcp.SubscriptionsListen:
		drop = DropNotSubscribed
	case ack && k.acked: // by the next life: its client has heard it, but not what has changed meanwhile
		h.mu.Unlock()
		k.mayHaveMissed(msg)
		return
	case !ack && !k.acked:
		drop = DropUnattributable
	case ack:
		k.acked = true
	}
	h.mu.Unlock()
	if drop == "" {
		frame := upstream.Frame{Method: method, Relation: upstream.Own}
		frame.Data = restore(msg.Raw, msg.P.MetaSubscription, k.id)
		if k.sink.Deliver(frame) == upstream.Taken {
			return
		}
		drop = DropNoReader
	}
	h.srv.drops.add(drop, methodName(msg))
}

// mayHaveMissed tells a listen that all may have changed that it is told of, as the
// acknowledgement of the next life says.
func (k *call) mayHaveMissed(ack *wire.Message) {
	agreed, ok := wire.Lookup(ack.Raw, "params", "notifications")
	if !ok || ack.Raw[agreed.Start] != '{' {
		return
	}
	for name, value := range wire.Members(ack.Raw, agreed.Start) {
		word, _ := wire.Unquote(name.Of(ack.Raw))
		switch is := string(value.Of(ack.Raw)); {
		case string(word) == "resourceSubscriptions" && is[0] == '[':
			for uri := range wire.Elements(ack.Raw, value.Start) {
				k.changed(mcp.NotifResourcesUpdated, append([]byte(`"uri":`), uri.Of(ack.Raw)...))
			}
		case is != "true":
		case string(word) == "toolsListChanged":
			k.changed(mcp.NotifToolsListChanged, nil)
		case string(word) == "promptsListChanged":
			k.changed(mcp.NotifPromptsListChanged, nil)
		case string(word) == "resourcesListChanged":
			k.changed(mcp.NotifResourcesListChanged, nil)
		}
	}
}

// changed delivers a notification of Signalbox's own to a listen.
func (k *call) changed(m mcp.Method, member []byte) {
	data := append([]byte(`{"jsonrpc":"2.0","method":"`+m.String()+`","params":{`), member...)
	if member != nil {
		data = append(data, ',')
	}
	data = append(append(data, `"_meta":{"`+mcp.MetaSubscription+`":`...), k.id...)
	k.sink.Deliver(upstream.Frame{Data: append(data, "}}}"...), Method: m, Relation: upstream.Own})
}

// listenEnded: the server has ended a listen by a cancel, which some do instead
// of answering it (2026-07-28, basic/patterns/cancellation).
func (h *hub) listenEnded(msg *wire.Message) {
	h.mu.Lock()
	k := h.findLocked(msg.Bytes(msg.P.RequestID))
	if k != nil && k.method == mcp.SubscriptionsListen {
		h.takeLocked(k)
	} else {
		k = nil
	}
	h.mu.Unlock()
	if k == nil {
		h.srv.drops.add(DropUnattributable, methodName(msg))
		return
	}
	k.sink.Deliver(upstream.Frame{Data: upstream.ListenEnd(k.id), Method: k.method, Relation: upstream.Reply})
	k.sink.End(nil)
}

// logged passes a log message to the one call that has asked for such.
func (h *hub) logged(msg *wire.Message) {
	h.mu.Lock()
	k := h.logging
	if h.lateLocked() {
		h.lateUntil = time.Now().Add(lateLogs)
	}
	h.mu.Unlock()
	frame := upstream.Frame{Data: msg.Raw, Method: mcp.NotifMessage, Relation: upstream.Own}
	if k == nil || k.sink.Deliver(frame) != upstream.Taken {
		h.srv.drops.add(DropUnattributable, methodName(msg))
	}
}

// ownSubscription puts the client's id into the result that ends a listen.
func (k *call) ownSubscription(raw []byte) []byte {
	span, ok := wire.Lookup(raw, "result", "_meta", mcp.MetaSubscription)
	if !ok {
		return raw
	}
	return wire.Splice(nil, raw, wire.Edit{Span: span, New: k.id})
}
