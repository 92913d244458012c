package dialog

import (
	"bytes"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// handle is one request to the server. It can be cancelled before Ask has
// returned.
type handle struct {
	c *conn

	// guarded by conn.mu
	up   upstream.Call // nil until Ask has returned
	over error         // cancel as soon as up is known; nil: not
	done bool          // answered, or ended by the server's side
}

// opened notes what Ask returned.
func (h *handle) opened(up upstream.Call) {
	h.c.mu.Lock()
	h.up = up
	over, done := h.over, h.done
	h.c.mu.Unlock()
	if over != nil && !done {
		up.Cancel(over)
	}
}

// cancel tells the server that nobody waits any more.
func (h *handle) cancel(reason error) {
	h.c.mu.Lock()
	h.over = reason
	up, done := h.up, h.done
	h.c.mu.Unlock()
	if up != nil && !done {
		up.Cancel(reason)
	}
}

// leg is one request of a call and the sink of what comes back.
type leg struct {
	handle
	k *call
}

// ask makes the next leg. The error is the call's, which is still in the table.
func (k *call) ask() error {
	req, err := k.request()
	if err != nil {
		return err
	}
	if k.again = true; !retries(k.method) {
		k.msg = wire.Message{} // it is not needed again
	}
	c := k.c
	l := &leg{handle: handle{c: c}, k: k}
	c.mu.Lock()
	if k.over != nil {
		c.mu.Unlock()
		return nil
	}
	k.leg = l
	c.mu.Unlock()
	up, err := c.srv.cfg.Asker.Ask(req, l)
	if err != nil {
		return err
	}
	l.opened(up)
	return nil
}

// proceed makes the next leg of a call that has had one.
func (k *call) proceed() {
	if err := k.ask(); err != nil {
		k.end(err)
	}
}

// request is the client's request as the server takes it.
func (k *call) request() (upstream.Request, error) {
	id := k.id
	if k.again {
		id = wire.AppendQuote(nil, mint())
	}
	raw, err := k.encode(id, &k.next)
	if err != nil {
		return upstream.Request{}, err
	}
	msg, err := wire.Parse(raw)
	if bad, is := err.(*wire.Error); is { // members that the client wrote in other letters
		return upstream.Request{}, upstream.Errorf(mcp.CodeInvalidParams, "params", "%s", bad.Msg)
	}
	req := upstream.NewRequest(msg)
	req.Header, req.Principal, req.Address, req.Span = k.from.header, k.from.principal, k.next.address, k.from.span
	if k.method == mcp.ToolsCall && k.c.srv.cfg.Params != nil {
		k.c.srv.cfg.Params(&req)
	}
	return req, nil
}

// Deliver takes what the server sends for one leg.
func (l *leg) Deliver(f upstream.Frame) upstream.Verdict {
	k, c := l.k, l.c
	c.mu.Lock()
	current := k.leg == l
	if f.Relation == upstream.Reply {
		l.done = true
		if current {
			k.leg = nil
		}
	}
	c.mu.Unlock()
	switch {
	case f.Relation == upstream.Reply:
		if current {
			k.answered(f)
		}
		return upstream.Taken
	case !current:
		return upstream.Closed
	}
	return k.notify(f)
}

// End is the end of a leg: after its response, or without one.
func (l *leg) End(reason error) {
	k, c := l.k, l.c
	c.mu.Lock()
	l.done = true
	current := k.leg == l
	if current {
		k.leg = nil
	}
	c.mu.Unlock()
	if !current {
		return
	}
	if reason == nil {
		reason = upstream.Errorf(mcp.CodeInternal, "no_answer", "the server %q ended the request without an answer", c.srv.cfg.Name)
	}
	k.end(reason)
}

// notify passes on what came before the response.
func (k *call) notify(f upstream.Frame) upstream.Verdict {
	if k.method == mcp.Initialize {
		return upstream.NoTaker
	}
	switch f.Method {
	case mcp.NotifProgress:
		f.Relation = upstream.Own
		if v := k.sink.Deliver(f); v != upstream.NoTaker {
			return v
		}
		f.Relation = upstream.Loose
		return k.c.events.Deliver(f)
	case mcp.NotifCancelled, mcp.NotifSubscriptionsAcknowledged, mcp.NotifTasks:
		return upstream.NoTaker // nothing that the client could make sense of
	}
	if k.c.homes(k.sink, f) {
		return upstream.Taken
	}
	return upstream.NoTaker
}

// answered takes the response to the call's current leg.
func (k *call) answered(f upstream.Frame) {
	msg, err := wire.Parse(f.Data)
	if err != nil || msg.Kind != wire.Response {
		k.end(badAnswer("is no JSON-RPC response"))
		return
	}
	if msg.Error.Present() {
		k.failed(&msg, f.Buffer)
		return
	}
	if !isObject(msg.Raw, msg.Result) {
		k.end(badAnswer("has a result that is no object"))
		return
	}
	r, err := readResult(&msg)
	if err != nil {
		k.end(badAnswer("cannot be read: " + err.Error()))
		return
	}
	switch r.kind {
	case "", "complete":
	case "input_required":
		k.inquire(&msg, &r, f.Address)
		return
	default:
		k.end(badAnswer("has the resultType " + cut([]byte(r.kind), 64) + ", which Signalbox did not ask for"))
		return
	}
	if k.method == mcp.Initialize {
		k.discovered(&msg)
		return
	}
	k.complete(&msg, f.Buffer)
}

func badAnswer(why string) *upstream.Error {
	return upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server's answer %s", why)
}

// restore is the edit that gives the answer the client's own id; none where it
// has it.
func (k *call) restore(msg *wire.Message) []wire.Edit {
	if bytes.Equal(msg.Bytes(msg.ID), k.id) || !msg.ID.Present() {
		return nil
	}
	return []wire.Edit{{Span: msg.ID, New: k.id}}
}
