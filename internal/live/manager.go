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
