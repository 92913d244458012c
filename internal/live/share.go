package live

import (
	"context"
	"errors"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Where several replicas share a store, a session whose conn is Movable is
// served by all of them at once: each makes a Session of its own by the record.
// Every other session has a home, the replica that opened it.

// Elsewhere is the error for what another replica has to serve.
type Elsewhere struct{ Home string }

func (e *Elsewhere) Error() string { return "another replica serves this session" }

// errEndedElsewhere ends what is here of a session whose record is gone.
var errEndedElsewhere = errors.New("the session was ended through another replica, or has expired")

// state is that of the session's Movable conn; without Address where it has none.
func (s *Session) state() upstream.State {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if c, ok := conn.(upstream.Movable); ok && s.transport != legacy {
		return c.State()
	}
	return upstream.State{}
}

// Moves tells whether other replicas may serve the session at the same time.
func (s *Session) Moves() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.movesLocked()
}

func (s *Session) movesLocked() bool {
	if s.m.cfg.Replica == "" || s.transport == legacy {
		return false
	}
	c, ok := s.conn.(upstream.Movable)
	return ok && c.Moves()
}

// putState writes st into a record, and who has the session at home.
func (m *Manager) putState(rec *session.Record, st upstream.State) {
	rec.Home = m.cfg.Replica
	if st.Address == "" {
		return
	}
	rec.Home = ""
	rec.Upstream, rec.UpstreamSession, rec.UpstreamRevision = st.Address, st.Session, st.Revision
	rec.Initialize, rec.LogLevel, rec.Subscriptions = st.Initialize, st.LogLevel, st.Subscriptions
}

func stateOf(rec *session.Record) upstream.State {
	return upstream.State{
		Address: rec.Upstream, Session: rec.UpstreamSession, Revision: rec.UpstreamRevision,
		Initialize: rec.Initialize, LogLevel: rec.LogLevel, Subscriptions: slices.Clone(rec.Subscriptions),
	}
}

// findShared is Find where the record decides. local is the session of this
// process, nil if there is none.
func (m *Manager) findShared(ctx context.Context, b *Backend, t session.Transport, id, principal string, local *Session) (*Session, error) {
	if local != nil && local.principal != principal {
		return nil, ErrNotFound
	}
	if local != nil && !local.Moves() {
		return local, nil // it is at home, whatever the store knows by now; see sweep
	}
	key := session.Key{Server: b.Name, ID: id}
	rec, err := m.cfg.Store.Get(ctx, key)
	switch {
	case errors.Is(err, session.ErrNotFound):
		if local != nil {
			local.leave(errEndedElsewhere)
		}
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	case rec.Principal != principal || rec.Transport != t || rec.Server != b.Name || rec.ID != id:
		return nil, ErrNotFound
	case local != nil:
		local.follow(&rec)
		return local, nil
	case rec.Home == m.cfg.Replica: // it has ended here
		m.chores.delete(key)
		return nil, ErrNotFound
	case rec.Home != "":
		return nil, &Elsewhere{rec.Home}
	}
	return m.attach(b, &rec)
}

// attach makes this process's own Session of a record.
func (m *Manager) attach(b *Backend, rec *session.Record) (*Session, error) {
	server, ok := b.Server.(upstream.Attacher)
	if !ok {
		return nil, ErrNotFound // the name has become another server's
	}
	s := m.newSession(b, rec.Principal, rec.Transport)
	s.id, s.revision, s.listener, s.version = rec.ID, rec.Revision, rec.Listener, rec.Version
	s.registered, s.accepted, s.shaken, s.greeted = true, true, true, true
	conn, err := server.Attach(stateOf(rec), eventsSink{s, nil})
	if errors.Is(err, upstream.ErrLost) {
		m.chores.delete(rec.Key())
		return nil, errLost
	}
	if err != nil {
		return nil, err
	}
	s.conn = conn
	m.mu.Lock()
	first := m.sessions[s.key()]
	if first == nil {
		err = m.enterLocked(s)
	}
	m.mu.Unlock()
	if first != nil || err != nil {
		s.mu.Lock()
		s.ended = true // this Session, which nobody has seen; the end of its conn is not that of the record
		s.mu.Unlock()
		conn.(upstream.Movable).Detach(upstream.ErrClosed)
		return first, err
	}
	s.mu.Lock()
	s.armLocked()
	s.mu.Unlock()
	if !rec.Used { // by a message that led here
		m.chores.update(rec.Key(), func(rec *session.Record) error { rec.Used = true; return nil })
	}
	m.cfg.Log.Debug("session attached", "session", s.Hash(), "server", b.Name)
	return s, nil
}

// enterLocked counts a session that another process has admitted: no limit
// refuses it.
func (m *Manager) enterLocked(s *Session) error {
	if m.ended {
		return ErrDraining
	}
	if s.backend.retired {
		return ErrRetired
	}
	s.backend.countLocked(s.principal)
	m.slots++
	m.perPrincipal[s.principal]++
	m.all[s] = struct{}{}
	m.sessions[s.key()] = s
	m.cfg.Metrics.opened(s.backend.Name, s.transport)
	return nil
}

// follow brings the session up to date with its record.
func (s *Session) follow(rec *session.Record) {
	s.mu.Lock()
	conn, news := s.conn, s.version != rec.Version
	s.listener, s.version = rec.Listener, rec.Version
	s.mu.Unlock()
	if c, ok := conn.(upstream.Movable); ok && news && s.transport != legacy {
		c.Adopt(stateOf(rec))
	}
}

// leave drops what is here of a session, which lives on or is ended elsewhere.
func (s *Session) leave(reason error) { s.endAs(reason, true) }

// over is the error for a session that has ended here: of several replicas one
// that is shutting down cannot tell whether the session lives on at another.
func (s *Session) over() error {
	if s.m.cfg.Replica != "" && s.m.Draining() {
		return ErrDraining
	}
	return ErrNotFound
}

// changed writes what has changed of the state, in the background. That of a
// session of HTTP+SSE, whose stream ties it to its home, is in no record.
func (s *Session) changed(change func(*upstream.State)) {
	s.mu.Lock()
	known := s.registered && !s.ended
	s.mu.Unlock()
	if !known || s.m.cfg.Replica == "" || s.transport == legacy {
		return
	}
	s.m.chores.update(session.Key{Server: s.backend.Name, ID: s.id}, func(rec *session.Record) error {
		st := stateOf(rec)
		change(&st)
		s.m.putState(rec, st)
		return nil
	})
}

// Changed and Renewed make eventsSink an upstream.Keeper.
func (e eventsSink) Changed(change func(*upstream.State)) { e.s.changed(change) }

func (e eventsSink) Renewed(lost, now upstream.State) (upstream.State, error) {
	s := e.s
	s.mu.Lock()
	known := s.registered
	s.mu.Unlock()
	if s.m.cfg.Replica == "" || !known || s.transport == legacy {
		return now, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	rec, err := s.m.cfg.Store.Update(ctx, session.Key{Server: s.backend.Name, ID: s.id}, func(rec *session.Record) error {
		if rec.Upstream == lost.Address && rec.UpstreamSession == lost.Session { // else another replica was faster
			rec.Upstream, rec.UpstreamSession, rec.UpstreamRevision = now.Address, now.Session, now.Revision
		}
		return nil
	})
	if errors.Is(err, session.ErrNotFound) {
		return now, upstream.ErrClosed
	}
	return stateOf(&rec), err
}

// StreamHome is the other replica at which the session's own stream is open; ""
// if there is none, as far as is known.
func (s *Session) StreamHome() string {
	if !s.Moves() {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == s.m.cfg.Replica {
		return ""
	}
	return s.listener
}

// tellRecord notes in the record whether the session's own stream is open here.
func (s *Session) tellRecord(open bool) {
	me := s.m.cfg.Replica
	if !s.Moves() {
		return
	}
	s.m.chores.update(session.Key{Server: s.backend.Name, ID: s.id}, func(rec *session.Record) error {
		switch {
		case open:
			rec.Listener = me
		case rec.Listener == me:
			rec.Listener = ""
		}
		return nil
	})
}

// HasCall tells whether a call of that id is open here.
func (s *Session) HasCall(id []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		if slices.ContainsFunc(st.sinks, func(c *callSink) bool { return string(c.id) == string(id) }) {
			return true
		}
	}
	return false
}

// Local is Find for what this process has of a session already, whoever's it is.
func (m *Manager) Local(b *Backend, t session.Transport, id, principal string) (*Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.sessions[tableKey{t, b.Name, id}]; s != nil && s.principal == principal {
		return s, nil
	}
	if m.Draining() {
		return nil, ErrDraining // what is no longer here may live on elsewhere
	}
	return nil, ErrNotFound
}
