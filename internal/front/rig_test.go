package front

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/httpd"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const (
	keepalive    = 15 * time.Second
	writeTimeout = 30 * time.Second
	readTimeout  = 30 * time.Second
	maxMessage   = 256 << 10
	bodyBudget   = 1 << 20
)

// setup is what a test may change. The zero value is a process for each
// session, one server called srv.
type setup struct {
	shared    bool
	direct    bool     // servers of the per-request era
	names     []string // of servers; default: srv
	public    string
	hosts     []string
	origins   []string
	limits    func(*live.Limits)
	manager   func(*live.Config)
	keepalive time.Duration
	upstream  upstream.Server // instead of processes
	config    func(*Config)
}

// rig is Signalbox without operating system: clients reach it over pipes in
// memory, and its servers are procs.
type rig struct {
	t testing.TB
	// Poisoned: whoever reads a buffer that was given back reads rubbish.
	buffers buf.Pool
	procs   *procs
	live    *live.Manager
	store   *testStore
	mem     *session.Memory
	reg     *prometheus.Registry
	log     *bytes.Buffer
	client  *http.Client
	front   *Front
	server  *httpd.Server
	listen  *memListener
	settle  func() // waits until all is quiet
}

// inBubble runs a test in which all time is fake.
func inBubble(t *testing.T, s setup, test func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, s)
		r.settle = synctest.Wait
		test(t, r)
	})
}

func newRig(t testing.TB, s setup) *rig {
	r := &rig{t: t, buffers: buf.Pool{Poison: true}, settle: func() {}, procs: &procs{}, mem: session.NewMemory(), reg: prometheus.NewRegistry(), log: &bytes.Buffer{}}
	r.store = &testStore{Store: r.mem}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	quiet := slog.New(slog.DiscardHandler)
	limits := live.DefaultLimits()
	if s.limits != nil {
		s.limits(&limits)
	}
	sessions, processes := live.NewMetrics(), process.NewMetrics()
	requests := NewMetrics(sessions.Streams)
	r.reg.MustRegister(sessions, processes, requests)
	manager := live.Config{Limits: limits, Store: r.store, Key: bytes.Repeat([]byte("k"), 32), Metrics: sessions, Log: quiet}
	if s.manager != nil {
		s.manager(&manager)
	}
	r.live = live.NewManager(manager)
	if s.names == nil {
		s.names = []string{"srv"}
	}
	var backends []*live.Backend
	for _, name := range s.names {
		server := s.upstream
		if server == nil {
			server = process.New(process.Config{
				Name: name, Shared: s.shared, PerRequest: s.direct, Start: r.procs.start, StartTimeout: 2 * time.Minute, CallTimeout: 10 * time.Minute,
				CallLimit: 2 * time.Hour, MaxMessage: maxMessage, Buffers: &r.buffers, ShowStderr: true, Version: "test", Log: quiet, Metrics: processes,
			})
		}
		backends = append(backends, &live.Backend{Name: name, Server: server})
	}
	var public *url.URL
	if s.public != "" {
		public, _ = url.Parse(s.public)
	}
	if s.keepalive == 0 {
		s.keepalive = keepalive
	}
	cfg := Config{
		Backends: backends, Live: r.live, MaxMessage: maxMessage, BodyBudget: bodyBudget, Buffers: &r.buffers, Keepalive: s.keepalive, WriteTimeout: writeTimeout, ReadTimeout: readTimeout,
		PublicURL: public, Guard: guard.New(s.hosts, s.origins, public, log), Log: quiet, Metrics: requests,
	}
	if s.config != nil {
		s.config(&cfg)
	}
	f := New(cfg)
	r.front = f
	r.listen = newMemListener()
	r.server = f.HTTPServer(quiet, nil)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = r.server.Serve(r.listen)
	}()
	r.client = r.newClient()
	t.Cleanup(func() {
		r.live.Close()
		r.client.CloseIdleConnections()
		shut, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.server.Shutdown(shut); err != nil {
			t.Error("handlers are still running:", err)
			r.server.Close()
		}
		<-served
		for _, b := range backends {
			b.Server.Close()
		}
		r.procs.wait.Wait()
		r.settle()
		r.empty()
		r.mem.Close()
	})
	return r
}

// empty finds what is left after the end of all sessions.
func (r *rig) empty() {
	r.t.Helper()
	for _, name := range []string{"signalbox_sessions", "signalbox_streams", "signalbox_calls_in_flight", "signalbox_event_log_bytes"} {
		if v := r.metric(name, ""); v != 0 {
			r.t.Errorf("%s is %v at the end", name, v)
		}
	}
	if n := r.mem.Len(); n != 0 && !r.store.down.Load() {
		r.t.Errorf("%d records left in the store", n)
	}
}

// metric sums the series of one name that have the label value, if given.
func (r *rig) metric(name, label string) (sum float64) {
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Error(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (label == "" || strings.Contains(m.String(), label)) {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// testStore can be out of reach.
type testStore struct {
	session.Store
	down atomic.Bool
}

func (s *testStore) Create(ctx context.Context, r session.Record, idle time.Duration) error {
	if s.down.Load() {
		return fmt.Errorf("%w: test", session.ErrUnavailable)
	}
	return s.Store.Create(ctx, r, idle)
}

func (s *testStore) Get(ctx context.Context, k session.Key) (session.Record, error) {
	if s.down.Load() {
		return session.Record{}, fmt.Errorf("%w: test", session.ErrUnavailable)
	}
	return s.Store.Get(ctx, k)
}

// memListener accepts what dial makes.
type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   atomic.Bool
	dials  atomic.Int64
}

func newMemListener() *memListener {
	return &memListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	if !l.once.Swap(true) {
		close(l.closed)
	}
	return nil
}

func (l *memListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (l *memListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	l.dials.Add(1)
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// newClient makes a client with connections of its own.
func (r *rig) newClient() *http.Client {
	tr := &http.Transport{DialContext: r.listen.dial, DisableCompression: true}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// id of the one member "id" of a reply.
func replyID(body string) string {
	span, _ := wire.Lookup([]byte(body), "id")
	return string(span.Of([]byte(body)))
}

func lookup(body string, path ...string) string {
	span, _ := wire.Lookup([]byte(body), path...)
	return string(span.Of([]byte(body)))
}
