package bridge

import (
	"errors"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// trial is a session of the handshake era at a server of which it is not known
// whether it knows a handshake. If it refuses one, its era is looked up, and the
// session may become a dialog, without its client noticing. It is an
// upstream.Conn with all options, as far as the one behind it has them.
type trial struct {
	s      *Server
	init   upstream.Request // a copy
	reply  upstream.Sink
	events upstream.Sink

	mu     sync.Mutex
	conn   upstream.Conn // nil until Open returned
	turned bool          // the handshake was refused, and what its connection says counts no more
	over   error         // End was called
}

// try begins a session by a handshake.
func (s *Server) try(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	t := &trial{s: s, init: init, reply: reply, events: events}
	msg, err := wire.Parse(append([]byte(nil), init.Msg.Raw...))
	if err != nil {
		return nil, err
	}
	t.init.Msg, t.init.Buffer = msg, nil
	conn, err := s.cfg.Handshake.Open(init, &trialReply{t: t}, &trialEvents{t: t})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	late := t.conn != nil // it is a dialog by now
	if !late {
		t.conn = conn
	}
	t.mu.Unlock()
	if late {
		conn.End(upstream.ErrClosed)
	}
	return t, nil
}

// trialReply is the sink of the handshake's initialize.
type trialReply struct {
	t    *trial
	held []byte // the refusal, while the era is looked up
}

func (r *trialReply) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation != upstream.Reply {
		return r.t.reply.Deliver(f)
	}
	if wire.IsErrorResponse(f.Data) {
		r.held = f.Data
		return upstream.Taken
	}
	r.t.s.note(func(e *eras) { e.handshake = yes })
	return r.t.reply.Deliver(f)
}

func (r *trialReply) End(reason error) {
	var e *upstream.Error
	refused := r.held != nil || errors.As(reason, &e) && e.Reason != "timeout"
	if !refused || !r.t.turn() {
		r.finish(reason)
		return
	}
	go r.reconsider(reason)
}

// finish gives the client what the handshake brought.
func (r *trialReply) finish(reason error) {
	if r.held != nil {
		r.t.reply.Deliver(upstream.Frame{Data: r.held, Method: r.t.init.Method, Relation: upstream.Reply})
	}
	r.t.reply.End(reason)
}

// turn lets go of what the handshake's connection says from now on; false: the
// session is over.
func (t *trial) turn() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.turned = t.over == nil
	return t.turned
}

// reconsider looks the era up and begins anew, or reports the refusal.
func (r *trialReply) reconsider(reason error) {
	t := r.t
	known, err := t.s.look()
	if err != nil || known.perRequest != yes {
		r.finish(reason)
		t.fall(reason)
		return
	}
	if !known.listsBoth { // else it may be this client that it refused
		t.s.note(func(e *eras) { e.handshake = no })
	}
	conn, err := t.s.cfg.Dialog.Open(t.init, t.reply, t.events)
	if err != nil {
		t.reply.End(err)
		t.fall(err)
		return
	}
	t.mu.Lock()
	old, over := t.conn, t.over
	t.conn = conn
	t.mu.Unlock()
	if old != nil {
		old.End(upstream.ErrClosed)
	}
	if over != nil {
		conn.End(over)
	}
}

// fall ends a session that never began, with its handshake's connection.
func (t *trial) fall(reason error) {
	if conn := t.now(); conn != nil {
		conn.End(upstream.ErrClosed)
	}
	if reason == nil {
		reason = upstream.ErrClosed
	}
	t.events.End(reason)
}

// trialEvents is what the handshake's connection says unasked; after the turn it
// says nothing more to anybody.
type trialEvents struct{ t *trial }

func (e *trialEvents) mute() bool {
	e.t.mu.Lock()
	defer e.t.mu.Unlock()
	return e.t.turned
}

func (e *trialEvents) Deliver(f upstream.Frame) upstream.Verdict {
	if e.mute() {
		return upstream.Closed
	}
	return e.t.events.Deliver(f)
}

func (e *trialEvents) End(reason error) {
	if !e.mute() {
		e.t.events.End(reason)
	}
}

// Changed and Renewed make trialEvents an upstream.Keeper.
func (e *trialEvents) Changed(change func(*upstream.State)) {
	if k, ok := e.t.events.(upstream.Keeper); ok {
		k.Changed(change)
	}
}

func (e *trialEvents) Renewed(lost, now upstream.State) (upstream.State, error) {
	if k, ok := e.t.events.(upstream.Keeper); ok {
		return k.Renewed(lost, now)
	}
	return now, nil
}

func (t *trial) now() upstream.Conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conn
}

func (t *trial) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	return t.now().Start(req, sink)
}

func (t *trial) Send(req upstream.Request) error { return t.now().Send(req) }

func (t *trial) End(reason error) {
	t.mu.Lock()
	conn := t.conn
	if t.over == nil {
		t.over = reason
	}
	t.mu.Unlock()
	conn.End(reason)
}

func (t *trial) Listen(on bool) {
	if l, ok := t.now().(upstream.Listener); ok {
		l.Listen(on)
	}
}

func (t *trial) movable() (upstream.Movable, bool) {
	m, ok := t.now().(upstream.Movable)
	return m, ok
}

func (t *trial) Moves() bool {
	m, ok := t.movable()
	return ok && m.Moves()
}

func (t *trial) State() upstream.State {
	if m, ok := t.movable(); ok {
		return m.State()
	}
	return upstream.State{}
}

func (t *trial) Adopt(st upstream.State) {
	if m, ok := t.movable(); ok {
		m.Adopt(st)
	}
}

func (t *trial) Detach(reason error) {
	if m, ok := t.movable(); ok {
		m.Detach(reason)
		return
	}
	t.End(reason)
}
