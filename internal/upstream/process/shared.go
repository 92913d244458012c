package process

import (
	"bytes"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// startShared sends a request to the shared process, or answers what is a
// matter of one session and must not reach all.
func (c *conn) startShared(k *call, req upstream.Request) (upstream.Call, error) {
	h := c.hub
	h.mu.Lock()
	ended := c.ended
	h.mu.Unlock()
	if ended {
		return nil, upstream.ErrClosed
	}
	switch req.Method {
	case mcp.Ping:
		k.answer("{}")
		return k, nil
	case mcp.LoggingSetLevel:
		// No log message of a shared process is delivered, so no level can matter.
		if level, _ := wire.Unquote(req.Msg.Bytes(req.Msg.P.Level)); !mcp.IsLogLevel(string(level)) {
			k.fail(upstream.Errorf(mcp.CodeInvalidParams, "level", "unknown log level"))
		} else {
			k.answer("{}")
		}
		return k, nil
	case mcp.TasksList, mcp.TasksGet, mcp.TasksResult, mcp.TasksCancel, mcp.TasksUpdate:
		k.fail(upstream.Errorf(mcp.CodeMethodNotFound, "tasks_shared", "tasks are not offered where sessions share a process"))
		return k, nil
	case mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe:
		return c.startSubscription(k, &req.Msg)
	}
	if req.Msg.P.Task.Present() {
		k.fail(upstream.Errorf(mcp.CodeInvalidParams, "tasks_shared", "tasks are not offered where sessions share a process"))
		return k, nil
	}
	k.line = k.encode(&req)
	h.mu.Lock()
	begin, err := c.queueLocked(k)
	h.mu.Unlock()
	if begin != nil {
		h.start(begin)
	}
	if err != nil {
		return nil, err
	}
	return k, nil
}

// queueLocked sends a call to the shared process, or has it wait for one that
// starts. The caller must start the link it gets, if any.
func (c *conn) queueLocked(k *call) (*link, error) {
	h := c.hub
	if c.ended {
		return nil, upstream.ErrClosed
	}
	begin, err := h.beginLocked()
	if err != nil {
		return nil, err
	}
	k.setDeadlines(&h.srv.cfg)
	enter := h.sendLocked
	if !h.upLocked() {
		enter = h.holdLocked
	}
	if err := enter(k); err != nil {
		return begin, err
	}
	h.armLocked(k)
	return begin, nil
}

// passSharedLocked passes what one client says without asking, unless it
// could matter to others.
func (h *hub) passSharedLocked(req *upstream.Request) error {
	switch req.Method {
	case mcp.NotifInitialized: // said once, by Signalbox
		return nil
	case mcp.NotifRootsListChanged, mcp.NotifProgress: // the process asked nobody for roots, nor for anything that has progress
		h.srv.drops.add(DropSharedState, req.Method.String())
		return nil
	}
	if !h.upLocked() {
		h.srv.drops.add(DropNoProcess, methodName(&req.Msg))
		return nil
	}
	return h.writeLocked(ownLine(req.Msg.Raw), req.Header)
}

// sharedNotification routes what a shared process says. Progress was routed
// before; what cannot be attributed is dropped.
func (h *hub) sharedNotification(method mcp.Method, msg *wire.Message) {
	switch {
	case method.IsListChanged():
		h.toAll(method)
	case method == mcp.NotifResourcesUpdated:
		h.updated(msg)
	default:
		h.srv.drops.add(DropUnattributable, methodName(msg))
	}
}

// toAll tells every live session that a list changed. The message is built
// from the method alone, so that nothing of one session reaches another.
func (h *hub) toAll(method mcp.Method) {
	frame := upstream.Frame{
		Data:   []byte(`{"jsonrpc":"2.0","method":"` + method.String() + `"}`),
		Method: method,
	}
	h.mu.Lock()
	all := make([]homes, 0, len(h.conns))
	for _, c := range h.conns {
		if c.events != nil {
			all = append(all, c.homesLocked(false))
		}
	}
	h.mu.Unlock()
	h.deliverAll(all, frame)
}

// deliverAll gives every session a copy of its own.
func (h *hub) deliverAll(all []homes, frame upstream.Frame) {
	data := frame.Data
	for _, hs := range all {
		frame.Data = bytes.Clone(data)
		if hs.deliver(frame) == 0 {
			h.srv.drops.add(DropNoReader, frame.Method.String())
		}
	}
}

// sharedRequest answers what a shared process asks: nobody can tell which
// session's client it means, be there only one.
func (h *hub) sharedRequest(method mcp.Method, msg *wire.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if method == mcp.Ping {
		h.pongLocked(msg.Bytes(msg.ID))
		return
	}
	h.srv.drops.add(DropRefusedRequest, methodName(msg))
	h.refuseLocked(msg, upstream.Errorf(mcp.CodeMethodNotFound, "shared_process",
		"several clients share this process, so none of them can be asked"))
}
