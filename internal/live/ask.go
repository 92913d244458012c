package live

import (
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Ask sends a request of the per-request era. It is of no session, so there is
// nothing to resume, and a client that leaves its reader has cancelled it
// (2026-07-28, basic/transports/streamable-http, "Cancellation"). An error:
// nothing was sent.
func (m *Manager) Ask(b *Backend, principal string, takes Takes, req upstream.Request) (*Reader, error) {
	server, ok := b.Server.(upstream.Asker)
	if !ok {
		return nil, upstream.ErrNoAsker
	}
	if err := m.places.take(principal, 1); err != nil {
		return nil, err
	}
	now := time.Now()
	s := &Session{m: m, backend: b, principal: principal, transport: session.Streamable, lone: true, created: now, lastUse: now}
	s.who = req.Principal
	st := &Stream{s: s, takes: takes}
	s.mu.Lock()
	sink := s.enterLocked(st, &req)
	r := st.attachLocked(0)
	s.mu.Unlock()
	if err := m.enterLone(sink); err != nil {
		s.refuse(sink, r, err)
		return nil, err
	}
	req.Inline = true
	call, err := server.Ask(req, sink)
	if err != nil {
		s.refuse(sink, r, err)
		return nil, err
	}
	r.call = s.started(sink, call)
	return r, nil
}

// refuse ends a call that was not sent. One that is for another replica is no
// refusal, and that one's to write down.
func (s *Session) refuse(sink *callSink, r *Reader, err error) {
	if isAway(err) {
		sink.audited, sink.size.away = nil, true
	}
	sink.refused = true
	sink.End(err)
	r.Close()
}

// enterLone counts a call that is of no session: its server stays open for it.
func (m *Manager) enterLone(c *callSink) error {
	b := c.st.s.backend
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ended || m.draining.Load() && c.method == mcp.SubscriptionsListen:
		return ErrDraining
	case b.retired:
		return ErrRetired
	}
	b.lone++
	c.entered = true
	m.lone[c] = struct{}{}
	return nil
}

// leaveLone also notes how the server has done.
func (m *Manager) leaveLone(c *callSink, replied bool, reason error) {
	if !c.entered {
		return
	}
	b := c.st.s.backend
	if !replied && !c.refused {
		m.failed(b, reason)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if replied {
		b.state.WorkedAt = time.Now()
	}
	b.lone--
	delete(m.lone, c)
	m.closeRetiredLocked(b)
}

// endListens ends the subscriptions/listen of a server, or of all where b is
// nil, each with the result that says so: their clients ask anew.
func (m *Manager) endListens(b *Backend, reason error) {
	m.endLone(reason, func(c *callSink) bool {
		return c.method == mcp.SubscriptionsListen && (b == nil || c.st.s.backend == b)
	})
}

// endLone cancels the calls which are of no session that which is true of.
func (m *Manager) endLone(reason error, which func(*callSink) bool) {
	m.mu.Lock()
	var list []*callSink
	for c := range m.lone {
		if which(c) {
			list = append(list, c)
		}
	}
	m.mu.Unlock()
	for _, c := range list {
		c.st.s.cancelAll(c.st, reason)
	}
}

// farewell is the result of a subscriptions/listen that ends because this end
// does (2026-07-28, basic/patterns/subscriptions, "Graceful closure"); nil: the
// reason is an error.
func (c *callSink) farewell(reason error) []byte {
	if c.method != mcp.SubscriptionsListen || !c.st.s.lone {
		return nil
	}
	if !errors.Is(reason, ErrDraining) && !errors.Is(reason, ErrRetired) && !errors.Is(reason, upstream.ErrShutdown) {
		return nil
	}
	return upstream.ListenEnd(c.id)
}

// errorReply is the call's answer where the server gave none.
func (c *callSink) errorReply(reason error) []byte {
	if data := c.farewell(reason); data != nil {
		return data
	}
	if c.st.s.lone {
		return upstream.PerRequestErrorReply(c.id, reason)
	}
	return upstream.ErrorReply(c.id, reason)
}
