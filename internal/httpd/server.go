package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Config sets a Server up. Handler and Log are required.
type Config struct {
	Handler http.Handler
	// ReadHeaderTimeout bounds how long a new connection may be silent, the
	// handshake of TLS, and the head of a request from its first byte on; 0:
	// nothing does.
	ReadHeaderTimeout time.Duration
	// IdleTimeout is how long a connection may be silent between two requests;
	// 0: forever.
	IdleTimeout time.Duration
	// MaxHeaderBytes bounds request line and headers together; 0: 1 MiB.
	MaxHeaderBytes int
	TLS            *tls.Config       // nil: plain, unless a listener returns *tls.Conn
	HTTP2          *http.HTTP2Config // nil: the defaults of net/http
	// Log gets panics of handlers as errors, their mistakes as warnings and
	// those of clients as debug messages. Nothing a client sent is in them.
	Log *slog.Logger
}

// Server serves HTTP/1.1 and 1.0, and hands HTTP/2 to net/http.
type Server struct {
	cfg Config

	stopping atomic.Bool   // no new requests
	stop     chan struct{} // closed then
	closed   atomic.Bool   // running ones are cut off

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	http2     *http2Server  // nil before the first connection
	empty     chan struct{} // closed when stopping and without connections
	serving   sync.WaitGroup
	sweeper   sweeper
}

// New makes a server.
func New(cfg Config) *Server {
	if cfg.MaxHeaderBytes == 0 {
		cfg.MaxHeaderBytes = http.DefaultMaxHeaderBytes
	}
	if cfg.TLS != nil && len(cfg.TLS.NextProtos) == 0 {
		cfg.TLS = cfg.TLS.Clone()
		cfg.TLS.NextProtos = []string{"h2", "http/1.1"}
	}
	return &Server{
		cfg: cfg, listeners: make(map[net.Listener]struct{}), conns: make(map[*conn]struct{}),
		stop: make(chan struct{}), empty: make(chan struct{}),
	}
}

// Serve accepts connections until the listener fails or the server is shut
// down; then it returns http.ErrServerClosed. It closes the listener. Several
// may be served at once.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.addListener(l) {
		return http.ErrServerClosed
	}
	defer s.removeListener(l)
	for pause := time.Duration(0); ; {
		nc, err := l.Accept()
		if err == nil {
			pause = 0
			if s.cfg.TLS != nil {
				nc = tls.Server(nc, s.cfg.TLS)
			}
			s.start(nc)
			continue
		}
		if s.stopping.Load() {
			return http.ErrServerClosed
		}
		var temporary interface{ Temporary() bool }
		if !errors.As(err, &temporary) || !temporary.Temporary() {
			return err
		}
		// Out of descriptors, for example: there may be some again.
		pause = min(max(2*pause, 5*time.Millisecond), time.Second)
		s.cfg.Log.Warn("http: a connection was not accepted", "err", err, "retry", pause.String())
		select {
		case <-time.After(pause):
		case <-s.stop:
		}
	}
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	s.serving.Add(1)
	return true
}

func (s *Server) removeListener(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
	s.serving.Done()
}

func (s *Server) start(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		_ = nc.Close()
		return
	}
	s.conns[c] = struct{}{}
	go c.serve()
}

func (s *Server) untrack(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.signalLocked()
}

// signalLocked wakes Shutdown when it has nothing to wait for.
func (s *Server) signalLocked() {
	if len(s.conns) > 0 || !s.stopping.Load() {
		return
	}
	select {
	case <-s.empty:
	default:
		close(s.empty)
	}
}

// stopLocked begins the end: no more connections, and no more requests on
// those that are idle.
func (s *Server) stopLocked() (err error) {
	if !s.stopping.Swap(true) {
		close(s.stop)
	}
	for l := range s.listeners {
		err = errors.Join(err, l.Close())
	}
	for c := range s.conns {
		if c.state.CompareAndSwap(stateIdle, stateClosed) {
			c.kill()
		} else if c.state.Load() == stateNew {
			c.expire()
		}
	}
	s.signalLocked()
	return err
}

// expire lets a new connection bring the request that may be on its way.
func (c *conn) expire() { c.readBefore(newGrace) }

// Shutdown stops listening, closes connections without a request and waits for
// the others. It returns the error of ctx if that is over first; then Close
// ends the rest.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	err := s.stopLocked()
	h2 := s.http2
	s.mu.Unlock()
	s.serving.Wait()
	var h2Done chan error
	if h2 != nil {
		h2Done = make(chan error, 1)
		go func() { h2Done <- h2.shutdown(ctx) }()
	}
	select {
	case <-s.empty:
		s.sweeper.close()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if h2 != nil {
		if e := <-h2Done; e != nil {
			err = e
		}
	}
	return err
}

// Close closes all listeners and connections and cancels the contexts of
// running requests. It does not wait for their handlers.
func (s *Server) Close() error {
	s.closed.Store(true)
	s.mu.Lock()
	err := s.stopLocked()
	conns := slices.Collect(maps.Keys(s.conns))
	h2 := s.http2
	s.mu.Unlock()
	for _, c := range conns {
		c.kill()
		if x := c.cur.Load(); x != nil {
			x.ctx.cancel()
		}
	}
	s.sweeper.close()
	s.serving.Wait()
	if h2 != nil {
		err = errors.Join(err, h2.close())
	}
	return err
}
