package live

import (
	"errors"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Delete ends the session at its client's wish.
func (s *Session) Delete() { s.end(errDeleted) }

// HungUp ends a legacy session, which lives as long as its stream.
func (s *Session) HungUp(reason error) {
	if reason == nil {
		reason = errHungUp
	}
	s.end(reason)
}

// Abandon is for a client that left before its session began. A server that
// is still starting is not stopped in the middle of it (it may be downloading),
// but when it answers.
func (s *Session) Abandon() {
	s.mu.Lock()
	s.abandoned = true
	over := s.accepted
	s.mu.Unlock()
	if over {
		s.end(errGone)
	}
}

// unstart lets a legacy client whose initialize failed try again.
func (s *Session) unstart() {
	s.mu.Lock()
	conn := s.conn
	s.conn, s.opener = nil, nil
	s.greeted, s.told = false, false
	s.mu.Unlock()
	if conn != nil {
		conn.End(upstream.ErrClosed)
	}
}

// end ends the session once, from any goroutine, and never blocks. At the end
// of this process a session that others can serve lives on.
func (s *Session) end(reason error) {
	s.endAs(reason, errors.Is(reason, upstream.ErrShutdown) && s.Moves())
}

// endAs ends what is here of the session, and with away nothing else.
func (s *Session) endAs(reason error, away bool) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended = true
	conn := s.conn
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	first := s.m.remove(s, reason, away)
	s.m.failed(s.backend, reason)
	s.tellListener()
	switch c, movable := conn.(upstream.Movable); {
	case conn == nil:
	case away && movable:
		c.Detach(sessionOver(reason))
	default:
		conn.End(sessionOver(reason)) // open calls get their errors now
	}
	if first {
		s.m.release(s.backend, s.principal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		s.endStreamLocked(st)
	}
	s.endStreamLocked(s.own)
}

// endStreamLocked leaves to a reader what it has not fetched yet, and to calls
// that are just being started the error that they will end with.
func (s *Session) endStreamLocked(st *Stream) {
	st.keep = false
	if st.own || len(st.sinks) == 0 {
		st.endLocked()
	}
	if st.reader == nil {
		st.freeLocked()
	}
}

// remove takes an ended session out of every table; with away its record stays.
// Idempotent: first is true once.
func (m *Manager) remove(s *Session, reason error, away bool) (first bool) {
	s.mu.Lock()
	registered := s.registered
	s.mu.Unlock()
	if registered && !away { // before it leaves all, for which Close waits
		m.chores.delete(session.Key{Server: s.backend.Name, ID: s.id})
	}
	m.mu.Lock()
	delete(m.sessions, s.key())
	_, counted := m.all[s]
	if counted {
		delete(m.all, s)
		m.slots--
		if m.perPrincipal[s.principal]--; m.perPrincipal[s.principal] == 0 {
			delete(m.perPrincipal, s.principal)
		}
		m.gone.Broadcast()
	}
	m.mu.Unlock()
	if counted {
		m.cfg.Metrics.closed(s.backend.Name, s.transport)
		m.cfg.Log.Info("session ended", "session", s.Hash(), "server", s.backend.Name, "reason", reason.Error())
		s.audit("ended", reason.Error())
	}
	return counted
}
