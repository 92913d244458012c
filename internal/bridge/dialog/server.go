package dialog

import (
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Config describes one server. Name, Asker, Question, CallLimit and Log are required.
type Config struct {
	Name  string
	Asker upstream.Asker // the per-request server; it is not closed here
	// Params sets in a tools/call the headers that repeat its arguments
	// (Mcp-Param-*), as far as the tool's schema is known: req.Header becomes a copy
	// then. It must not block. nil: the server needs none.
	Params func(req *upstream.Request)
	// Refresh reads the schemas of the tools anew, after the server said that headers
	// do not fit (-32020). list is a tools/list without cursor that is ready to be
	// asked. It must not block, and calls done once, perhaps before it
	// returns; the call is then sent again, once. nil: such a call fails.
	Refresh func(list upstream.Request, done func(error))
	// Tools changes the server's answer to tools/list, a whole response, before
	// anything else is done with it. It may return reply itself, and must not block. nil:
	// nothing is changed.
	Tools func(reply []byte) []byte
	// Question is how long a client may take to answer what one input_required
	// result asks for.
	Question  time.Duration
	CallLimit time.Duration // for one call with all its rounds
	MaxRounds int           // input_required results of one call; 0: 10
	Version   string        // of Signalbox, for the clientInfo where a client gives none
	Log       *slog.Logger
	Metrics   *Metrics // nil: not counted
}

// Server makes sessions of the handshake era. It implements upstream.Server.
type Server struct {
	cfg   Config
	count counters

	mu     sync.Mutex
	closed bool
	conns  map[*conn]struct{}
}

var _ upstream.Server = (*Server)(nil)

// New makes the server; nothing is asked before the first Open.
func New(cfg Config) *Server {
	if cfg.MaxRounds == 0 {
		cfg.MaxRounds = 10
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	return &Server{cfg: cfg, count: cfg.Metrics.of(cfg.Name), conns: make(map[*conn]struct{})}
}

// Open begins a session: the server is asked what it is by server/discover, and
// reply gets the answer to initialize that follows from it. Where the server turns
// out not to speak the per-request era, reply ends with an *upstream.Error of the
// reason "era".
func (s *Server) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	c := newConn(s, &init, events)
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, upstream.ErrShutdown
	}
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	if err := c.discover(&init, reply); err != nil {
		s.forget(c)
		return nil, err
	}
	return c, nil
}

// Close ends every session with ErrShutdown.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.End(upstream.ErrShutdown)
	}
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}
