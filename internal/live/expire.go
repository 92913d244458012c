package live

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// A session is used by every message from its client, by an open stream and by
// a call in flight; what it has subscribed to does not count.

// touchLocked notes a message of the client.
func (s *Session) touchLocked() {
	s.usedLocked()
	if s.accepted {
		s.shaken = true
	}
}

// usedLocked starts the idle time anew. What needs to know the time next to it
// takes lastUse: reading the clock costs more than most of what else is done for
// a message.
func (s *Session) usedLocked() {
	s.lastUse = time.Now()
	s.storeUseLocked(s.lastUse)
}

// storeUseLocked tells the store, at most once in a tenth of the idle time;
// the record lives longer by two of these.
func (s *Session) storeUseLocked(now time.Time) {
	if !s.registered || s.ended || now.Sub(s.lastStored) <= s.idle()/10 {
		return
	}
	s.lastStored = now
	s.m.chores.touch(session.Key{Server: s.backend.Name, ID: s.id}, now)
}

// armLocked sets the session's one timer for the next time at which it could
// have to end.
func (s *Session) armLocked() {
	d := time.Until(s.lastUse.Add(s.idleLocked()))
	if s.busyLocked() {
		d = min(s.idle()/2, s.idleLocked()) // look again, and keep the record alive
	}
	if age := s.maxAge(); age > 0 {
		d = min(d, time.Until(s.created.Add(age)))
	}
	d = max(d, time.Millisecond)
	if s.timer == nil {
		s.timer = time.AfterFunc(d, s.expire)
	} else {
		s.timer.Reset(d)
	}
}

// busyLocked: an open stream is use, but not that of a legacy client which
// never says what it wants.
func (s *Session) busyLocked() bool {
	return s.calls > 0 || s.readers > 0 && (s.transport != legacy || s.shakenLocked())
}

// shakenLocked tells whether the client has done its part of the handshake.
func (s *Session) shakenLocked() bool {
	if s.transport == legacy {
		return s.opener != nil
	}
	return s.shaken
}

// idleLocked is shorter until the client has finished the handshake.
func (s *Session) idleLocked() time.Duration {
	if !s.shakenLocked() {
		return min(s.m.cfg.Handshake, s.idle())
	}
	return s.idle()
}

func (s *Session) expire() {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	now := time.Now()
	var reason error
	switch {
	case s.maxAge() > 0 && now.Sub(s.created) >= s.maxAge():
		reason = errMaxAge
	case s.busyLocked():
		s.storeUseLocked(now)
	case now.Sub(s.lastUse) >= s.idleLocked():
		reason = errIdle
		if !s.shakenLocked() {
			reason = errHandshake
		}
	}
	if reason == nil {
		s.armLocked()
	}
	s.mu.Unlock()
	switch {
	case reason == nil:
	case !errors.Is(reason, errMaxAge) && s.Moves():
		s.idleHere(reason)
	default:
		s.end(reason)
	}
}

// idleHere: the session was not used through this replica. It has expired when
// its record has; then the server hears of it.
func (s *Session) idleHere(reason error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	rec, err := s.m.cfg.Store.Get(ctx, session.Key{Server: s.backend.Name, ID: s.id})
	if errors.Is(err, session.ErrNotFound) || err == nil && !rec.Used && errors.Is(reason, errHandshake) {
		s.end(reason)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		s.shaken = s.shaken || err == nil
		s.timer.Reset(s.idle() / 5)
	}
}

func (s *Session) callStarted() {
	s.m.calls.Add(1)
	s.callGauge().Inc()
}

func (s *Session) callEnded() {
	s.callGauge().Dec()
	if m := s.m; m.calls.Add(-1) == 0 {
		select {
		case m.quiet <- struct{}{}:
		default:
		}
	}
}

// Drain refuses new sessions, and calls of those that are at home here, lets go
// of streams that carry no call, and waits for the calls in flight until ctx is
// over. What these need still passes: answers to the server, notifications,
// streams that are resumed.
func (m *Manager) Drain(ctx context.Context) {
	m.StartDrain()
	for m.calls.Load() > 0 {
		select {
		case <-m.quiet:
		case <-ctx.Done():
			return
		}
	}
}

// StartDrain is Drain without the wait. Idempotent.
func (m *Manager) StartDrain() {
	m.mu.Lock()
	m.draining.Store(true)
	sessions := m.listLocked()
	m.mu.Unlock()
	for _, s := range sessions {
		s.mu.Lock() // who holds it has seen draining, or is seen here
		if r := s.own.reader; r != nil && s.transport != legacy {
			r.cutLocked(ErrDraining)
		}
		s.mu.Unlock()
		s.tellListener()
	}
	m.endListens(nil, ErrDraining)
}

// Draining tells whether new sessions and calls are refused.
func (m *Manager) Draining() bool { return m.draining.Load() }

func (m *Manager) listLocked() []*Session {
	list := make([]*Session, 0, len(m.all))
	for s := range m.all {
		list = append(list, s)
	}
	return list
}

// Close ends every session and the manager itself. The store is closed by its
// owner, afterwards.
func (m *Manager) Close() {
	m.mu.Lock()
	m.draining.Store(true)
	m.ended = true
	sessions := m.listLocked()
	m.mu.Unlock()
	for _, s := range sessions {
		s.end(upstream.ErrShutdown)
	}
	m.endLone(upstream.ErrShutdown, func(*callSink) bool { return true })
	m.mu.Lock()
	for len(m.all) > 0 { // others may be ending a session just now, which never takes long
		m.gone.Wait()
	}
	m.mu.Unlock()
	m.cancel()
	m.sweeping.Wait()
	m.chores.close()
}
