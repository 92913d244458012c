package process

import (
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Pipe is a running process as the routing table needs it; *child.Process is
// one. Write and Withdraw never block.
type Pipe interface {
	Write(line []byte) (*child.Ticket, error)
	Withdraw(*child.Ticket) bool
	Stop()
	Tail() string
	Partial() string
}

// HeaderPipe is a Pipe that also takes what came with a client's message in the
// headers of its HTTP request, for allow-lists; nil for Signalbox's own.
type HeaderPipe interface {
	WriteWith(line []byte, header http.Header) (*child.Ticket, error)
}

// Config describes one stdio server. All fields but What, Buffers and
// ShowStderr are required.
type Config struct {
	Name   string
	Shared bool // one process for all sessions
	// PerRequest: the server speaks 2026-07-28, and is reached by Ask instead of
	// Open; Shared is of no account.
	PerRequest bool
	// Start starts one process. The handler's methods are called by one
	// goroutine, perhaps before Start returns; Start must not wait for them. The
	// request is the client's initialize; empty for a shared process.
	Start        func(child.Handler, upstream.Request) (Pipe, error)
	StartTimeout time.Duration // until the answer to initialize
	CallTimeout  time.Duration // without answer and progress
	CallLimit    time.Duration // for one call in all
	MaxMessage   int           // bytes; for the text of errors, the pipe enforces it
	What         string        // runs, for errors; empty: "server process"
	ShowStderr   bool          // the last stderr lines may stand in errors (nobody else could see them)
	Version      string        // of Signalbox, for the clientInfo of a shared process
	Buffers      *buf.Pool     // for large messages; nil: none are reused
	Log          *slog.Logger
	Metrics      *Metrics
}

// Server is a stdio server. It implements upstream.Server.
type Server struct {
	cfg   Config
	drops *drops
	count counters

	mu      sync.Mutex
	closed  bool
	hubs    map[*hub]struct{} // with a process each; ended ones are removed when it is gone
	shared  *hub              // nil with a process for each session
	breaker breaker
}

// New makes the server; nothing is started before the first Open.
func New(cfg Config) *Server {
	if cfg.What == "" {
		cfg.What = "server process"
	}
	s := &Server{
		cfg:   cfg,
		hubs:  make(map[*hub]struct{}),
		count: cfg.Metrics.of(cfg.Name),
		drops: &drops{server: cfg.Name, count: cfg.Metrics.Drops, told: cfg.Metrics.Dropped, log: cfg.Log, warned: make(map[string]bool)},
	}
	cfg.Shared = cfg.Shared || cfg.PerRequest
	s.cfg = cfg
	if cfg.Shared {
		s.shared = newHub(s)
		s.hubs[s.shared] = struct{}{}
	}
	return s
}

// Open begins a session: on a process of its own, or on the shared one.
func (s *Server) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	if s.shared != nil {
		return s.shared.open(init, reply, events)
	}
	if err := s.mayStart(); err != nil {
		return nil, err
	}
	h := newHub(s)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, upstream.ErrShutdown
	}
	s.hubs[h] = struct{}{}
	s.mu.Unlock()
	c, err := h.openOwn(init, reply, events)
	if err != nil {
		s.forget(h)
		return nil, err
	}
	return c, nil
}

// Close ends every session and begins to stop every process; the supervisor
// that started them waits for their end.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	hubs := make([]*hub, 0, len(s.hubs))
	for h := range s.hubs {
		hubs = append(hubs, h)
	}
	s.mu.Unlock()
	for _, h := range hubs {
		h.close(upstream.ErrShutdown)
	}
}

func (s *Server) forget(h *hub) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h != s.shared {
		delete(s.hubs, h)
	}
}

// launch starts a process for l. The error is ready for a client.
func (s *Server) launch(l *link, init upstream.Request) error {
	p, err := s.cfg.Start(l, init)
	if err != nil {
		if errors.Is(err, child.ErrTooMany) {
			return upstream.ErrTooMany
		}
		e := &upstream.Error{Code: mcp.CodeInternal, Reason: "start_failed", Message: err.Error(), Err: err}
		s.failedStart(e)
		s.cfg.Log.Error("server process could not be started", "err", err)
		return e
	}
	s.count.starts.Inc()
	l.hub.mu.Lock()
	l.pipe = p
	l.hub.mu.Unlock()
	return nil
}

func (s *Server) mayStart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.breaker.admit(time.Now())
}

func (s *Server) failedStart(err *upstream.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaker.failed(time.Now(), err)
}

func (s *Server) goodStart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.breaker.reset()
}

// Backoff between starts that failed. Of a shared process, exits before the
// answer to initialize count. A process of one session may have been killed by
// what its client sent, so there only a command that cannot be started counts:
// one client must not keep the others out.
const (
	backoffMin = 500 * time.Millisecond
	backoffMax = time.Minute
)

type breaker struct {
	fails int
	until time.Time
	cause *upstream.Error
}

// admit tells whether a process may be started now. After failures only one
// may in each pause, until one has come up.
func (b *breaker) admit(now time.Time) error {
	if !now.Before(b.until) {
		if b.fails > 0 {
			b.until = now.Add(b.delay())
		}
		return nil
	}
	wait := b.until.Sub(now).Round(100 * time.Millisecond)
	return upstream.Errorf(b.cause.Code, b.cause.Reason, "%s (failed %d times; next start in %s)", b.cause.Message, b.fails, wait)
}

func (b *breaker) failed(now time.Time, cause *upstream.Error) {
	b.fails++
	b.cause = cause
	b.until = now.Add(b.delay())
}

// delay is the pause after the failures so far.
func (b *breaker) delay() time.Duration {
	n := max(b.fails-1, 0)
	if n >= 7 {
		return backoffMax
	}
	return min(backoffMin<<n, backoffMax)
}

func (b *breaker) reset() { b.fails, b.until, b.cause = 0, time.Time{}, nil }
