package remote

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Kind is the transport that a server speaks.
type Kind uint8

const (
	Detect     Kind = iota // Streamable HTTP, else HTTP+SSE (2025-11-25, transports, backwards compatibility)
	Streamable             // 2025-03-26 and later
	SSE                    // 2024-11-05
)

// Config describes one HTTP server. URL, the limits, Log and Version are
// required, and Legacy where Kind is SSE.
type Config struct {
	Name           string
	URL            *url.URL // path and query are used for every request
	Kind           Kind
	Endpoints      []*url.URL  // scheme and host of its addresses, if they are not the URL's
	Header         http.Header // sent with every request
	Authorizer     Authorizer  // nil: none; else Header has no Authorization
	ForwardHeaders []string    // of the client's request, passed on
	Reinitialize   bool        // a lost session is opened anew instead of ended
	CallTimeout    time.Duration
	CallLimit      time.Duration
	StartTimeout   time.Duration
	MaxMessage     int
	TLS            *tls.Config // nil: the system's roots
	Version        string
	Buffers        *buf.Pool // of the requests' bodies, and for those of answers; nil: none are reused
	// Legacy opens sessions of HTTP+SSE: the routing of a process of one
	// session, over a stream and POSTs instead of pipes.
	Legacy upstream.Server
	Log    *slog.Logger
	// Dropped is told of each message that is not passed on, by any goroutine, and
	// must not block; nil: nobody is. reason is one of a fixed set.
	Dropped func(reason string, method mcp.Method)

	// For tests: how names are resolved and connections made.
	resolve func(ctx context.Context, host string) ([]string, error)
	dial    func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Server is an HTTP server. It implements upstream.Server, and upstream.Asker for
// a server of the per-request era.
type Server struct {
	cfg       Config
	addrs     *addresses
	lone      *conn // has the calls without a session
	heads     heads
	redirects sync.Once // the log has heard of them

	ctx    context.Context // over after Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // calls, listeners, pipes, DELETEs, probes

	mu     sync.Mutex
	closed bool
	kind   Kind // what was detected
	conns  map[*conn]struct{}
}

// New makes the server; nothing is dialled before the first Open.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, kind: cfg.Kind, conns: make(map[*conn]struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.addrs = newAddresses(&cfg)
	s.addrs.ctx, s.addrs.spawn = s.ctx, s.spawn
	s.heads = newHeads(&cfg)
	s.lone = newLone(s)
	return s
}

// Open begins a session with the client's initialize.
func (s *Server) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, upstream.ErrShutdown
	}
	if s.kind == SSE {
		s.mu.Unlock()
		return s.cfg.Legacy.Open(init, &sseSink{Sink: reply, s: s}, events)
	}
	c := newConn(s, init, events)
	k := c.newCall(init, reply)
	c.calls[k] = struct{}{}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go k.runInitialize()
	return c, nil
}

// spawn runs f in the background, unless the server is closed.
func (s *Server) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.wg.Go(f)
	return true
}

// Close ends every session and request and waits for what still goes on.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	conns := []*conn{s.lone}
	for c := range s.conns {
		conns = append(conns, c)
	}
	s.mu.Unlock()
	for _, c := range conns {
		c.End(upstream.ErrShutdown)
	}
	if s.cfg.Legacy != nil {
		s.cfg.Legacy.Close()
	}
	done := make(chan struct{})
	go s.await(done)
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select { // DELETEs may take a moment
	case <-done:
	case <-timer.C:
	}
	s.cancel()
	s.addrs.close()
	<-done
}

func (s *Server) await(done chan struct{}) {
	s.wg.Wait()
	close(done)
}

// farewell bounds how long a server has to hear that a session is over.
const farewell = 2 * time.Second

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// detected remembers the transport, so that later sessions need no second try.
// Detect: what was remembered has not worked.
func (s *Server) detected(k Kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Kind == Detect {
		s.kind = k
	}
}

func (s *Server) mayFallBack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kind == Detect && s.cfg.Legacy != nil
}

// pause waits; false: the server was closed, or gone is.
func (s *Server) pause(d time.Duration, gone <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-gone:
	case <-s.ctx.Done():
	}
	return false
}

var errNoAddress = errors.New("no address of the server can be reached")
