package live

import (
	"cmp"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Backend is one server with its name, and what holds for its sessions. A
// zero limit is the manager's. A changed configuration makes another Backend
// of the same name: sessions stay with the one they began with.
type Backend struct {
	Name            string
	Server          upstream.Server
	Idle            time.Duration
	MaxAge          time.Duration
	MaxSessions     int   // of this server; 0: no bound of its own
	MaxPerPrincipal int   // sessions of one principal with this server; 0: none
	MaxMessage      int64 // bytes of a client's message; 0: the front's

	// guarded by Manager.mu
	retired      bool
	closing      bool // Server.Close was called
	slots        int
	lone         int // calls that are of no session
	perPrincipal map[string]int
	state        State

	metrics atomic.Pointer[serverMetrics] // see Metrics.of
}

// State is how a server has done so far.
type State struct {
	Sessions int       // now
	Started  int       // sessions that it accepted
	WorkedAt time.Time // it last accepted a session, or answered a request that is of none
	FailedAt time.Time // a session last failed to start, or was lost
	Failure  string    // why; "" if none ever was
}

// State returns a copy of it.
func (m *Manager) State(b *Backend) State {
	m.mu.Lock()
	defer m.mu.Unlock()
	st := b.state
	st.Sessions = b.slots
	return st
}

func (m *Manager) worked(b *Backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b.state.Started++
	b.state.WorkedAt = time.Now()
}

// failed notes what went wrong with the server, not with a client.
func (m *Manager) failed(b *Backend, reason error) {
	var e *upstream.Error
	if !errors.As(reason, &e) && !errors.Is(reason, upstream.ErrLost) && !errors.Is(reason, upstream.ErrTimeout) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b.state.FailedAt, b.state.Failure = time.Now(), firstLine(reason.Error())
}

// firstLine leaves out what a process said last: that is for its log.
func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s[:min(len(s), 500)]
}

// reserveLocked counts a session to be opened.
func (b *Backend) reserveLocked(principal string) error {
	switch {
	case b.retired:
		return ErrRetired
	case b.MaxSessions > 0 && b.slots >= b.MaxSessions:
		return ErrSessionLimit
	case b.MaxPerPrincipal > 0 && b.perPrincipal[principal] >= b.MaxPerPrincipal:
		return ErrPrincipalLimit
	}
	b.countLocked(principal)
	return nil
}

func (b *Backend) countLocked(principal string) {
	b.slots++
	if b.MaxPerPrincipal > 0 {
		if b.perPrincipal == nil {
			b.perPrincipal = make(map[string]int)
		}
		b.perPrincipal[principal]++
	}
}

// release gives back what reserveLocked took.
func (m *Manager) release(b *Backend, principal string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b.slots--
	if b.MaxPerPrincipal > 0 {
		if b.perPrincipal[principal]--; b.perPrincipal[principal] == 0 {
			delete(b.perPrincipal, principal)
		}
	}
	m.closeRetiredLocked(b)
}

// Retire lets b have no new sessions. Its server is closed, in the background,
// when it has none. Idempotent.
func (m *Manager) Retire(b *Backend) {
	m.mu.Lock()
	b.retired = true
	m.closeRetiredLocked(b)
	m.mu.Unlock()
	m.endListens(b, ErrRetired)
}

func (m *Manager) closeRetiredLocked(b *Backend) {
	if b.retired && b.slots == 0 && b.lone == 0 && !b.closing {
		b.closing = true
		m.closing.Go(b.Server.Close)
	}
}

// Gone tells whether b is retired and has no session.
func (m *Manager) Gone(b *Backend) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return b.closing
}

// WaitRetired waits until the servers of all that Gone are closed.
func (m *Manager) WaitRetired() { m.closing.Wait() }

func (s *Session) idle() time.Duration { return cmp.Or(s.backend.Idle, s.m.cfg.Idle) }

func (s *Session) maxAge() time.Duration { return cmp.Or(s.backend.MaxAge, s.m.cfg.MaxAge) }
