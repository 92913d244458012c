package live

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// callSink takes what belongs to one call, into the stream that its client
// reads.
type callSink struct {
	st      *Stream
	id      []byte // the client's raw id token
	method  mcp.Method
	started time.Time
	arrived time.Time    // see upstream.Request
	audited *audit.Entry // what is known of it before its end; nil: there is no audit log
	refused bool         // it was not sent; set before End
	entered bool         // it is one of Backend.lone
	spans   spans        // zero: nothing is traced

	// guarded by Session.mu
	call    upstream.Call // nil until Start returned
	replied bool
	failed  bool // by an error of the server
	size    measured
	handed  time.Duration // from arrived until its server had it, or so far; 0: not measured
	given   bool          // its place in flight is free again
	over    bool
	doomed  error // cancel as soon as call is known
}

// newCallSink makes the sink of a call which the session has just been used for.
func newCallSink(st *Stream, req *upstream.Request) *callSink {
	c := &callSink{st: st, id: bytes.Clone(req.Msg.Bytes(req.Msg.ID)), method: req.Method, started: st.s.lastUse, arrived: req.Arrived}
	if st.s.m.cfg.Observe.On() && c.method != mcp.Initialize { // whose time is that of a start
		c.handed = c.sinceArrival(c.started) // the answer may come before anything else is known
	}
	c.measure(req)
	c.trace(req)
	if st.s.m.cfg.Audit != nil {
		c.audited = auditedOf(req)
	}
	return c
}

// Deliver appends to the stream. Progress and the reply belong to the call,
// whether anybody reads at this moment or not; what is loose needs a reader.
func (c *callSink) Deliver(f upstream.Frame) upstream.Verdict {
	s := c.st.s
	s.mu.Lock()
	verdict, cut := c.deliverLocked(f)
	s.mu.Unlock()
	s.delivered(cut && c.st.own)
	return verdict
}

func (c *callSink) deliverLocked(f upstream.Frame) (verdict upstream.Verdict, cut bool) {
	s := c.st.s
	if c.st.ended {
		return upstream.Closed, false
	}
	switch f.Relation {
	case upstream.Reply:
		c.replied = true
		c.answeredLocked(f.Data)
		c.giveLocked()
		if c.method == mcp.Initialize {
			s.answeredLocked(f.Data)
		}
	case upstream.Own:
		if c.over || c.st.takes == TakesJSON {
			return upstream.NoTaker, false
		}
		if c.st.reader == nil && !c.st.roomLocked(len(f.Data)) {
			return upstream.NoTaker, false // what it holds stays in one piece up to the reply
		}
	default:
		if c.st.takes == TakesJSON || c.st.reader == nil {
			return upstream.NoTaker, false
		}
	}
	cut = c.st.appendInLocked(f.Data, f.Buffer, kindOf(&f))
	s.sentLocked(&f, c)
	return upstream.Taken, cut
}

// giveLocked gives the call's place in flight back, once.
func (c *callSink) giveLocked() {
	if c.given {
		return
	}
	c.given = true
	c.st.s.places--
	c.st.s.m.places.give(c.st.s.principal)
}

// delivered does what an event may have made necessary, after the mutex was
// released.
func (s *Session) delivered(ownCut bool) {
	if ownCut {
		s.tellListener()
	}
	s.m.makeRoom()
}

// End closes the call's place in its stream. A call without a reply gets an
// error under its own id; one that its client cancelled gets none, for none is
// owed, unless the client waits for a plain JSON body.
func (c *callSink) End(reason error) {
	s := c.st.s
	s.mu.Lock()
	cut := false
	if !c.replied && !(errors.Is(reason, upstream.ErrCancelled) && c.st.takes != TakesJSON) {
		if reason == nil {
			reason = upstream.ErrClosed
		}
		if errors.Is(reason, upstream.ErrLost) && c.method != mcp.Initialize && !s.lone {
			c.st.lost++
		}
		var e *upstream.Error
		if errors.As(reason, &e) {
			c.st.retryAfter = e.RetryAfter
		}
		data := c.errorReply(reason)
		c.size.out = len(data)
		cut = c.st.appendLocked(data, reply)
		s.failedLocked(c, len(data), reason)
	}
	failedStart := c.method == mcp.Initialize && !s.accepted
	replied, failed, size := c.replied, c.failed, c.size
	abandoned := c.method == mcp.Initialize && s.abandoned
	s.closeCallLocked(c)
	now := s.lastUse
	s.mu.Unlock()
	s.delivered(cut && c.st.own)
	how := outcome(replied, failed, c.refused, reason)
	c.count(size, how, now)
	c.log(how, size, now)
	c.traced(how, size)
	s.m.cfg.Observe.Called(now)
	c.audit(how, now)
	s.m.leaveLone(c, replied, reason)
	s.callEnded()
	switch {
	case c.method != mcp.Initialize:
		return
	case failedStart && replied:
		s.m.failed(s.backend, errRefusedStart)
	case failedStart:
		s.m.failed(s.backend, reason)
	default:
		s.m.worked(s.backend)
	}
	switch {
	case abandoned:
		s.end(errGone)
	case failedStart && s.transport != legacy:
		s.end(upstream.ErrClosed)
	case failedStart:
		s.unstart()
	}
}

// closeCallLocked takes the call off its stream, which ends with its last one.
func (s *Session) closeCallLocked(c *callSink) {
	st := c.st
	c.over = true
	c.giveLocked()
	st.sinks = slices.DeleteFunc(st.sinks, func(o *callSink) bool { return o == c })
	s.calls--
	s.usedLocked()
	if st.own || len(st.sinks) > 0 {
		return
	}
	st.endLocked()
	s.detached = without(s.detached, st)
	if st.reader == nil {
		s.retireLocked(st)
	}
}

// answeredLocked reads the server's answer to initialize.
func (s *Session) answeredLocked(answer []byte) {
	v, ok := wire.Lookup(answer, "result", "protocolVersion")
	if !ok {
		if _, isResult := wire.Lookup(answer, "result"); !isResult {
			return
		}
	}
	s.accepted = true
	version, _ := wire.Unquote(v.Of(answer))
	s.revision = mcp.Revision(version)
}
