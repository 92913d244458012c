package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Config sets the manager up. All fields but Audit, Observe and Trace are required; see DefaultLimits.
type Config struct {
	Limits
	Store   session.Store
	Key     []byte // for event ids; replicas share it
	Replica string // the name of this process where the store is shared with others; else ""
	Metrics *Metrics
	Log     *slog.Logger
	Audit   *audit.Log        // nil: none
	Observe *observe.Recorder // nil: nobody looks back
	Trace   *trace.Tracer     // nil: nothing is traced
}

// Limits bound everything that a client can make grow.
type Limits struct {
	Idle            time.Duration // without message, open stream and call
	MaxAge          time.Duration // of a session, used or not; 0: none
	Handshake       time.Duration // until the first message after initialize; with HTTP+SSE until initialize
	MaxSessions     int
	MaxPerPrincipal int // sessions; 0: none
	MaxCalls        int // in flight, of one session
	PrincipalCalls  int // in flight, of one principal with this process; 0: none
	AllCalls        int // in flight, of this process; 0: none
	MaxDetached     int // calls in flight whose client left, of one session
	QueueBytes      int // unsent, of one stream that is being read: droppable ones, and others
	QueueEvents     int
	WaitingBytes    int // for the next reader of a session's own stream
	WaitingEvents   int
	LogBytes        int // for resumption, of one stream: what a client had already
	LogEvents       int
	KeptStreams     int   // over but resumable, of one session
	SessionLogBytes int   // beyond it only what no client has had stays
	AllLogBytes     int64 // beyond it, only what waits for a session's own stream and what is being read
}

// DefaultLimits are those of a process that is told nothing else.
func DefaultLimits() Limits {
	return Limits{
		Idle: 2 * time.Hour, Handshake: 2 * time.Minute, MaxSessions: 1024,
		MaxCalls: 1024, AllCalls: 4096, MaxDetached: 16,
		QueueBytes: 4 << 20, QueueEvents: 4096, WaitingBytes: 1 << 20, WaitingEvents: 256,
		LogBytes: 1 << 20, LogEvents: 256, KeptStreams: 16, SessionLogBytes: 2 << 20, AllLogBytes: 256 << 20,
	}
}

// Manager holds the sessions of this process.
type Manager struct {
	cfg    Config
	calls  atomic.Int64  // not ended yet
	quiet  chan struct{} // gets a value when calls reaches 0
	places *inFlight
	chores *chores
	shelf  shelf
	macs   sync.Pool // of hash.Hash with the key

	draining atomic.Bool // set under mu

	mu           sync.Mutex
	ended        bool           // Close was called
	slots        int            // sessions, those that are opening counted
	perPrincipal map[string]int // sessions by principal
	sessions     map[tableKey]*Session
	all          map[*Session]struct{}  // also those not yet registered
	lone         map[*callSink]struct{} // calls that are of no session
	gone         sync.Cond              // a session left all; uses mu

	closing  sync.WaitGroup // servers of retired backends
	sweeping sync.WaitGroup
	ctx      context.Context // over after Close
	cancel   context.CancelFunc
}

type tableKey struct {
	transport  session.Transport
	server, id string
}

// NewManager starts the manager; Close ends it.
func NewManager(cfg Config) *Manager {
	m := &Manager{
		cfg: cfg, quiet: make(chan struct{}, 1), places: newInFlight(&cfg.Limits),
		perPrincipal: make(map[string]int),
		sessions:     make(map[tableKey]*Session),
		all:          make(map[*Session]struct{}),
		lone:         make(map[*callSink]struct{}),
	}
	m.gone.L = &m.mu
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.chores = newChores(cfg.Store, cfg.Log)
	if cfg.Replica != "" {
		m.sweeping.Go(m.sweep)
	}
	return m
}

// reserve takes a slot before anything is started for the session.
func (m *Manager) reserve(s *Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.draining.Load():
		return ErrDraining
	case m.slots >= m.cfg.MaxSessions:
		return ErrSessionLimit
	case m.cfg.MaxPerPrincipal > 0 && m.perPrincipal[s.principal] >= m.cfg.MaxPerPrincipal:
		return ErrPrincipalLimit
	}
	if err := s.backend.reserveLocked(s.principal); err != nil {
		return err
	}
	m.slots++
	m.perPrincipal[s.principal]++
	m.all[s] = struct{}{}
	m.cfg.Metrics.opened(s.backend.Name, s.transport)
	return nil
}

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

func (s *Session) key() tableKey { return tableKey{s.transport, s.backend.Name, s.id} }

// Find returns the live session of that id, if it is of this server, transport
// and principal; in all other cases ErrNotFound, so that ids cannot be probed.
// A store out of reach is session.ErrUnavailable. An *Elsewhere names the
// replica that has what cannot move of the session.
func (m *Manager) Find(ctx context.Context, b *Backend, t session.Transport, id, principal string) (*Session, error) {
	m.mu.Lock()
	s := m.sessions[tableKey{t, b.Name, id}]
	m.mu.Unlock()
	if m.cfg.Replica != "" {
		return m.findShared(ctx, b, t, id, principal, s)
	}
	if s != nil {
		if s.principal != principal {
			return nil, ErrNotFound
		}
		return s, nil
	}
	_, err := m.cfg.Store.Get(ctx, session.Key{Server: b.Name, ID: id})
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		return nil, err
	}
	return nil, ErrNotFound
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
