package remote

import (
	"bytes"
	"errors"
	"sync/atomic"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/h1"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// call is one open request, run by one goroutine. It is in conn.calls until
// somebody takes it out, who then ends its sink.
type call struct {
	// static
	c       *conn
	method  mcp.Method
	id      []byte // raw token
	token   []byte // raw progress token; nil for none
	sink    upstream.Sink
	hold    *hold
	limitAt time.Time // zero: no such bound

	status atomic.Int32 // of the server's answer; 0: there is none yet

	req    upstream.Request // owned by run
	inline inline           // owned by run, but for next

	// guarded by conn.mu
	until  time.Time     // it may wait inline; zero: it does not
	idleAt time.Time     // without answer and progress; zero: no such bound
	moved  upstream.Call // what it became at a server that speaks HTTP+SSE
}

func (c *conn) newCall(req upstream.Request, sink upstream.Sink) *call {
	upstream.PutTrace(&req)
	k := &call{c: c, req: req, method: req.Method, sink: sink, hold: newHold()}
	k.id = bytes.Clone(req.Msg.Bytes(req.Msg.ID))
	if tok := req.Msg.Bytes(req.Msg.P.MetaToken); wire.ValidIDToken(tok) {
		k.token = bytes.Clone(tok)
	}
	now := time.Now()
	k.limitAt = now.Add(c.srv.cfg.CallLimit)
	switch {
	case k.method == mcp.Initialize:
		k.idleAt = now.Add(c.srv.cfg.StartTimeout)
	case k.method == mcp.SubscriptionsListen && c.lone: // for days
		k.limitAt = time.Time{}
	case k.method == mcp.TasksResult || k.method == mcp.SubscriptionsListen: // silent by nature, until something happens
	default:
		k.idleAt = now.Add(c.srv.cfg.CallTimeout)
	}
	return k
}

// take takes the call out of the table; one of several who end it gets true.
func (k *call) take() bool {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if _, open := k.c.calls[k]; !open {
		return false
	}
	delete(k.c.calls, k)
	k.c.forgetAsksLocked(k)
	return true
}

// stop ends the call without a word to the server.
func (k *call) stop(reason error) bool {
	if !k.take() {
		return false
	}
	k.hold.abort()
	k.sink.End(reason)
	return true
}

// Cancel ends the call and tells the server, but for initialize, which must not
// be cancelled (2025-11-25, cancellation), and for calls without a session, whose
// connection says it (2026-07-28, cancellation).
func (k *call) Cancel(reason error) {
	if k.stop(reason) {
		if k.method != mcp.Initialize && !k.c.lone {
			k.c.srv.spawn(func() { k.tell(reason) })
		}
		return
	}
	k.c.mu.Lock()
	moved := k.moved
	k.c.mu.Unlock()
	if moved == nil {
		k.hold.abort() // move may be about to begin it
		return
	}
	moved.Cancel(reason)
}

// tell sends a cancel of Signalbox's own.
func (k *call) tell(reason error) {
	body := append([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), k.id...)
	body = append(body, `,"reason":`...)
	body = append(wire.AppendQuote(body, reason.Error()), "}}"...)
	msg, err := wire.Parse(body)
	if err == nil {
		err = k.c.post(upstream.NewRequest(msg))
	}
	if err != nil {
		k.c.srv.cfg.Log.Debug("cancel not sent to the server", "err", err)
	}
}

func (k *call) run() {
	defer k.c.srv.wg.Done()
	attempts := k.attempts
	if k.c.lone {
		attempts = k.attemptsAnywhere
	}
	err := attempts()
	k.c.srv.cfg.Buffers.Put(k.req.Buffer) // nil where another has it
	if err == nil || !k.take() {
		return
	}
	k.sink.End(err)
	if errors.Is(err, upstream.ErrTimeout) && !k.c.lone {
		k.tell(err)
	}
}

// attempts sends the request, again only where it is certain that the server
// has not run it, or where running it twice does nothing.
func (k *call) attempts() error {
	fresh, reopened := false, false
	tried := make(map[*address]bool)
	for {
		t, via, err := k.c.target(k.hold.gone, k.alone)
		switch {
		case err != nil:
			return err
		case via != nil:
			return k.move(via)
		case !k.c.calm(k.hold.gone):
			return errGivenUp
		}
		state, err := k.once(t, fresh)
		switch {
		case err == nil || k.hold.aborted():
			return err
		case isStale(err) && !fresh && repeatable(k.method):
			fresh = true
		case state == notSent && ownFault(err):
			return unreachable(err)
		case state == notSent && t.session == "": // nothing of it is lost
			if err := k.c.elsewhere(t, tried, err); err != nil {
				return err
			}
		case state == notSent || isLost(err): // it did not run
			if reopened {
				return k.c.lose(err)
			}
			reopened = true
			k.alone()
			if err := k.c.recover(t, err, k.hold.gone); err != nil {
				return err
			}
		default:
			k.c.broke(t, err)
			return k.explain(err)
		}
	}
}

// move hands the call over to a server that turned out to speak HTTP+SSE.
func (k *call) move(via upstream.Conn) error {
	if !k.take() {
		return nil
	}
	req := k.req
	k.req.Buffer = nil
	moved, err := via.Start(req, k.sink)
	if err != nil {
		k.sink.End(err)
		return nil
	}
	k.c.mu.Lock()
	k.moved = moved
	k.c.mu.Unlock()
	if k.hold.aborted() {
		moved.Cancel(upstream.ErrCancelled)
	}
	return nil
}

// repeatable: what reads, or sets what is set already. A tool is never run
// twice (field: doubled mails and payments).
func repeatable(m mcp.Method) bool {
	switch m {
	case mcp.Ping, mcp.ToolsList, mcp.PromptsList, mcp.PromptsGet, mcp.ResourcesList, mcp.ResourcesTemplatesList,
		mcp.ResourcesRead, mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe, mcp.CompletionComplete, mcp.LoggingSetLevel,
		mcp.TasksGet, mcp.TasksList, mcp.TasksResult, mcp.ServerDiscover, mcp.SubscriptionsListen:
		return true
	}
	return false
}

// explain makes a failure after sending an error for the client.
func (k *call) explain(err error) error {
	var e *upstream.Error
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &timeout) && timeout.Timeout():
		return k.timeout()
	case errors.Is(err, h1.ErrMalformed):
		return upstream.Errorf(mcp.CodeInternal, "bad_answer", "%v", err)
	}
	return upstream.Errorf(mcp.CodeInternal, "outcome_unknown",
		"the connection to the server broke before its answer (%v); outcome unknown: the request may have run", rootCause(err))
}

func (k *call) timeout() error {
	switch {
	case k.method == mcp.Initialize:
		return &upstream.Error{Code: mcp.CodeServer, Reason: "timeout", Err: upstream.ErrTimeout,
			Message: "the server did not answer initialize in time (--start-timeout)"}
	case !time.Now().Before(k.limitAt):
		return upstream.CallLimit
	}
	return upstream.CallTimeout
}

// once sends the request to the session's address and passes the answer on.
func (k *call) once(t target, fresh bool) (sent, error) {
	raw := k.req.Msg.Raw
	scratch := scratches.Get().(*[4 << 10]byte)
	head := append(append(scratch[:0], k.c.srv.heads.post...), t.lines...)
	if k.c.lone {
		head = appendMetadata(head, &k.req)
	}
	head = k.c.srv.heads.appendForwarded(head, withoutTrace(k.req.Header, k.req.Span))
	head = appendTrace(head, k.req.Span)
	head = appendLength(head, len(raw))
	h, resp, state, err := k.c.srv.roundTrip(t.addr, head, raw, options{arm: k.arm, fresh: fresh, hold: k.hold, waiter: k, dialing: k.alone})
	scratches.Put(scratch)
	if err != nil {
		return state, err
	}
	return mayBeRun, k.answer(t, h, resp)
}
