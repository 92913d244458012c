package live

import (
	"context"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func (m *Manager) newSession(b *Backend, principal string, t session.Transport) *Session {
	now := time.Now()
	s := &Session{
		m: m, backend: b, id: session.NewID(), principal: principal, transport: t,
		created: now, lastUse: now, lastStored: now, streams: make(map[uint64]*Stream),
	}
	s.own = &Stream{s: s, own: true}
	return s
}

// Open begins a session with a client's initialize. Its id may be handed out
// after Register only. The reader gets the server's answer.
func (m *Manager) Open(b *Backend, principal string, takes Takes, init upstream.Request) (*Session, *Reader, error) {
	s := m.newSession(b, principal, session.Streamable)
	if err := m.places.take(principal, 1); err != nil {
		return nil, nil, err
	}
	if err := m.reserve(s); err != nil {
		m.places.give(principal)
		return nil, nil, err
	}
	s.mu.Lock()
	s.who = init.Principal
	st := s.newStreamLocked(takes)
	sink := s.enterLocked(st, &init)
	s.opener = sink
	r := st.attachLocked(0)
	s.mu.Unlock()
	if err := s.open(init, sink); err != nil {
		r.Close()
		return nil, nil, err
	}
	return s, r, nil
}

// open asks the server for a connection. The sink learns of an error, too.
func (s *Session) open(init upstream.Request, sink *callSink) error {
	conn, err := s.backend.Server.Open(init, sink, eventsSink{s, sink})
	if err != nil {
		sink.End(err)
		return err
	}
	s.mu.Lock()
	wanted := s.opener == sink && !s.ended // or it has failed already
	if wanted {
		s.conn = conn
	}
	s.mu.Unlock()
	if !wanted {
		conn.End(upstream.ErrClosed)
	}
	return nil
}

// OpenLegacy makes the session of a client that connected to /sse; initialize
// follows. It lives as long as the returned reader, see HungUp.
func (m *Manager) OpenLegacy(ctx context.Context, b *Backend, principal string) (*Session, *Reader, error) {
	s := m.newSession(b, principal, session.LegacySSE)
	if err := m.reserve(s); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	r := s.own.attachLocked(0)
	s.mu.Unlock()
	if err := s.Register(ctx); err != nil {
		r.Close()
		return nil, nil, err
	}
	return s, r, nil
}

// Initialize begins a legacy session at the server; the answer goes to the
// session's stream.
func (s *Session) Initialize(init upstream.Request) error {
	s.mu.Lock()
	if s.ended || s.opener != nil {
		defer s.mu.Unlock()
		if s.ended {
			return ErrNotFound
		}
		return ErrStarted
	}
	if s.m.Draining() {
		s.mu.Unlock()
		return ErrDraining
	}
	if err := s.m.places.take(s.principal, 1); err != nil {
		s.mu.Unlock()
		return err
	}
	s.touchLocked()
	s.who = init.Principal
	sink := s.enterLocked(s.own, &init)
	s.opener = sink
	s.mu.Unlock()
	s.audit("opened", "")  // /sse alone does not say who, and may never begin
	_ = s.open(init, sink) // the sink has told the client
	return nil
}

// Register enters the session in the table and the store, from where on its id
// is good. It does nothing the second time.
func (s *Session) Register(ctx context.Context) error {
	s.mu.Lock()
	if s.registered || s.ended {
		s.mu.Unlock()
		return nil
	}
	s.registered = true
	rec := session.Record{
		ID: s.id, Server: s.backend.Name, Principal: s.principal, Transport: s.transport,
		Revision: s.revision, Created: s.created, LastSeen: s.lastUse,
	}
	s.mu.Unlock()
	at := s.state()
	s.m.putState(&rec, at)
	if err := s.m.cfg.Store.Create(ctx, rec, s.idle()+s.idle()/5); err != nil {
		s.end(err)
		return err
	}
	s.m.mu.Lock()
	s.m.sessions[s.key()] = s
	s.m.mu.Unlock()
	s.mu.Lock()
	ended := s.ended
	if !ended {
		s.armLocked()
	}
	s.mu.Unlock()
	if now := s.state(); now.Address != at.Address { // the server was slow, and has answered since
		s.changed(func(st *upstream.State) { *st = now })
	}
	if !ended {
		s.m.cfg.Log.Info("session opened", "session", s.Hash(), "server", s.backend.Name, "transport", string(s.transport))
		if s.transport != legacy {
			s.audit("opened", "")
		}
	} else { // meanwhile, and too early to find what was entered here
		s.m.remove(s, upstream.ErrClosed, false)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		_ = s.m.cfg.Store.Delete(ctx, session.Key{Server: s.backend.Name, ID: s.id}) // else it expires there
	}
	return nil
}
