package remote

import (
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge/header"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Requests of the per-request era have no session: each goes to any address, and
// what its connection brings is its own. They are the calls of one conn that is
// never opened and has no target.

func newLone(s *Server) *conn {
	return &conn{srv: s, events: nowhere{}, lone: true, calls: make(map[*call]struct{})}
}

// nowhere is the stream of a session that is none.
type nowhere struct{}

func (nowhere) Deliver(upstream.Frame) upstream.Verdict { return upstream.NoTaker }
func (nowhere) End(error)                               {}

// Ask sends one request of the per-request era. What the server sends before the
// response are notifications, all of this request. The end of the connection is
// how the server hears of Cancel. subscriptions/listen may last for ever: it ends
// with its response, or with the error of a connection that broke. No stream is
// resumed (2026-07-28, streamable-http).
func (s *Server) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	if req.Method == mcp.Initialize {
		return nil, errNoHandshake
	}
	k := s.lone.newCall(req, sink)
	if !k.enter() {
		return nil, upstream.ErrShutdown
	}
	if req.Inline && len(req.Msg.Raw) <= inlineMost {
		k.prepare()
		return k, nil
	}
	go k.run()
	return k, nil
}

var errNoHandshake = upstream.Errorf(mcp.CodeMethodNotFound, "no_handshake", "initialize is none of this revision's methods")

// enter puts a call into the table, to be run; false: the server is closed.
func (k *call) enter() bool {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if k.c.ended {
		return false
	}
	k.c.calls[k] = struct{}{}
	k.c.srv.wg.Add(1)
	return true
}

// attemptsAnywhere is attempts for a call without a session. It goes to the address
// that has what it goes on with, if there is one, else to the one with the least to
// do, or to the next where it was certainly not sent.
func (k *call) attemptsAnywhere() error {
	addrs := k.c.srv.addrs
	if err := addrs.ready(k.alone); err != nil {
		return upstream.Errorf(mcp.CodeInternal, "unreachable", "the server cannot be found: %v", err)
	}
	var tried map[*address]bool // by far the most need none
	var last error = errNoAddress
	a := addrs.find(k.req.Address)
	for ; ; a = nil {
		if a == nil {
			a = addrs.pick(tried)
		}
		if a == nil {
			return unreachable(last)
		}
		state, err := k.onceAt(a)
		addrs.release(a)
		if err == nil || k.hold.aborted() {
			return err
		}
		if end := k.failedAt(a, state, err); end != nil {
			return end
		}
		if tried == nil {
			tried = make(map[*address]bool)
		}
		tried[a] = true
		last = err
	}
}

// failedAt is the error that a failure ends the call with; nil: it may go elsewhere.
func (k *call) failedAt(a *address, state sent, err error) error {
	var own *upstream.Error
	switch {
	case state != notSent:
		a.broke(err)
		return k.explain(err)
	case errors.As(err, &own): // there is no token for the server
		return own
	case ownFault(err):
		return unreachable(err)
	}
	return nil
}

// onceAt sends the request to a, and again where an idle connection had been
// closed and twice does nothing.
func (k *call) onceAt(a *address) (sent, error) {
	if !k.calmAt(a) {
		return notSent, errGivenUp
	}
	t := target{addr: a}
	state, err := k.once(t, false)
	if isStale(err) && repeatable(k.method) && !k.hold.aborted() {
		state, err = k.once(t, true)
	}
	return state, err
}

// appendMetadata adds the headers that repeat the body (2026-07-28,
// streamable-http, "Request Metadata"). What cannot stand in a header is left out:
// the server says that it is wrong.
func appendMetadata(dst []byte, req *upstream.Request) []byte {
	m := &req.Msg
	version := mcp.R20260728 // as a rule: no string has to be made then
	if v, _ := wire.Unquote(m.Bytes(m.P.MetaVersion)); string(v) != string(version) {
		version = mcp.Revision(v)
	}
	if version != "" && visible(string(version)) {
		dst = appendHeader(dst, mcp.HeaderVersion, string(version))
	}
	method := req.Method.String()
	if req.Method == mcp.Other {
		method = string(m.MethodName())
	}
	if visible(method) {
		dst = appendHeader(dst, mcp.HeaderMethod, method)
	}
	if name, ok := header.Name(req); ok {
		dst = appendHeader(dst, mcp.HeaderName, header.Encode(name))
	}
	return dst
}

// own delivers what came on the stream of a call without a session: all of it is
// the call's own. There are no requests to the client.
func (k *call) own(f upstream.Frame, msg *wire.Message) {
	if msg.Kind == wire.Request {
		k.c.srv.cfg.Log.Warn("the server sent a request on a response stream, which MCP 2026-07-28 forbids; dropped", "method", f.Method.String())
		k.c.srv.dropped(dropRequest, f.Method)
		return
	}
	f.Relation = upstream.Own
	k.sink.Deliver(f)
}

// cancelsListen: the server ends a subscription by a cancel, which some do instead of
// answering it (2026-07-28, basic/patterns/cancellation).
func (k *call) cancelsListen(msg *wire.Message) bool {
	return k.c.lone && k.method == mcp.SubscriptionsListen && msg.Kind == wire.Notification &&
		mcp.MethodOf(msg.MethodName()) == mcp.NotifCancelled && sameID(k.id, msg.Bytes(msg.P.RequestID))
}

// endListen ends a subscription that the server cancelled as one that it answered.
func (k *call) endListen() {
	if k.take() {
		k.sink.Deliver(upstream.Frame{Data: upstream.ListenEnd(k.id), Method: k.method, Relation: upstream.Reply})
		k.sink.End(nil)
	}
}

// underOwnID is an error response that names no request under the id of the call:
// there is nothing else on its connection that it could mean.
func (k *call) underOwnID(msg *wire.Message) *wire.Message {
	edit := wire.Insert(msg.Raw, 0, `"id":`+string(k.id))
	if null, ok := wire.Lookup(msg.Raw, "id"); ok {
		edit = wire.Edit{Span: null, New: k.id}
	}
	named, err := wire.Parse(wire.Splice(make([]byte, 0, len(msg.Raw)+len(k.id)+8), msg.Raw, edit))
	if err != nil {
		return msg
	}
	return &named
}

// bareAnswer tells whether an error response that names no request is the answer to a
// call without a session. Where the status says more than it, to whoever runs
// Signalbox or about when to come again, it is not.
func bareAnswer(status int) bool {
	return status < 500 && status != 401 && status != 403 && status != 429
}

// broke is conn.broke for calls without a session.
func (a *address) broke(err error) {
	if !endedUnder(err) {
		return
	}
	a.pool.Doubt()
	now := time.Now()
	a.brokeAt.Store(&now)
}

// calmAt is conn.calm for them.
func (k *call) calmAt(a *address) bool {
	at := a.brokeAt.Load()
	if at == nil {
		return true
	}
	wait := vanishTime - time.Since(*at)
	if wait <= 0 {
		return true
	}
	k.alone()
	return k.c.srv.pause(wait, k.hold.gone)
}
