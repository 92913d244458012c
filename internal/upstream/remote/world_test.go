package remote

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// world is a network of its own: names with their addresses, and at each
// address a scripted server, reached through net.Pipe, so that time can be moved.
type world struct {
	t *testing.T

	mu    sync.Mutex
	names map[string][]string // nil: cannot be resolved
	sites map[string]*site    // by IP:PORT
	dials []string
	log   bytes.Buffer
}

// inWorld runs a test in a bubble with a world that has one server, at mcp.test.
func inWorld(t *testing.T, test func(t *testing.T, w *world, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		test(t, w, w.site("10.0.0.1:80"))
	})
}

func newWorld(t *testing.T) *world {
	return &world{t: t, names: map[string][]string{"mcp.test": {"10.0.0.1"}}, sites: make(map[string]*site)}
}

func (w *world) close() {
	for _, s := range w.sites {
		_ = s.srv.Close()
		s.stop()
	}
}

func (w *world) site(addr string) *site {
	s := &site{t: w.t, addr: addr, up: true, conns: make(chan net.Conn), closed: make(chan struct{}), on: make(map[string]http.HandlerFunc), session: "sess-" + addr}
	s.srv = &http.Server{Handler: s, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { _ = s.srv.Serve(s) }()
	w.sites[addr] = s
	return s
}

func (w *world) resolve(_ context.Context, host string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if net.ParseIP(host) != nil {
		return []string{host}, nil
	}
	if ips := w.names[host]; ips != nil {
		return slices.Clone(ips), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (w *world) name(host string, ips ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names[host] = ips
}

func (w *world) dial(_ context.Context, _, addr string) (net.Conn, error) {
	w.mu.Lock()
	w.dials = append(w.dials, addr)
	s := w.sites[addr]
	w.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	if s == nil || !s.isUp() {
		return nil, refused
	}
	ours, theirs := net.Pipe()
	select {
	case s.conns <- theirs:
		return ours, nil
	case <-s.closed:
		return nil, refused
	}
}

// dialled are the addresses that were dialled, in order.
func (w *world) dialled() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dials)
}

func (w *world) config() Config {
	u, _ := url.Parse("http://mcp.test/base/mcp?tenant=a%2Fb")
	return Config{
		Name: "crm", URL: u, CallTimeout: time.Minute, CallLimit: time.Hour, StartTimeout: 30 * time.Second, MaxMessage: 1 << 20, Version: "1.2.3",
		Log: slog.New(slog.NewTextHandler(&w.log, nil)), resolve: w.resolve, dial: w.dial,
	}
}

func (w *world) server(change ...func(*Config)) *Server {
	cfg := w.config()
	for _, f := range change {
		f(&cfg)
	}
	return New(cfg)
}
