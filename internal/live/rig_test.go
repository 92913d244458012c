package live

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// rig is a manager with a fake server. At the end of the test it is closed, and
// nothing may be left.
type rig struct {
	t     testing.TB
	m     *Manager
	mem   *session.Memory
	store *spyStore
	srv   *fakeServer
	b     *Backend
	reg   *prometheus.Registry
}

// spyStore counts writes, and can be out of reach.
type spyStore struct {
	session.Store
	touches, deletes atomic.Int64
	down             atomic.Bool
	hang             atomic.Bool // writes wait for their context
	onCreate         func()      // before a record is made
}

func (s *spyStore) fault(ctx context.Context) error {
	if s.hang.Load() {
		<-ctx.Done()
		return fmt.Errorf("%w: %w", session.ErrUnavailable, ctx.Err())
	}
	if s.down.Load() {
		return session.ErrUnavailable
	}
	return nil
}

func (s *spyStore) Create(ctx context.Context, r session.Record, idle time.Duration) error {
	if err := s.fault(ctx); err != nil {
		return err
	}
	if s.onCreate != nil {
		s.onCreate()
	}
	return s.Store.Create(ctx, r, idle)
}

func (s *spyStore) Get(ctx context.Context, k session.Key) (session.Record, error) {
	if err := s.fault(ctx); err != nil {
		return session.Record{}, err
	}
	return s.Store.Get(ctx, k)
}

func (s *spyStore) Touch(ctx context.Context, k session.Key, seen time.Time) error {
	s.touches.Add(1)
	if err := s.fault(ctx); err != nil {
		return err
	}
	return s.Store.Touch(ctx, k, seen)
}

func (s *spyStore) Delete(ctx context.Context, k session.Key) error {
	s.deletes.Add(1)
	if err := s.fault(ctx); err != nil {
		return err
	}
	return s.Store.Delete(ctx, k)
}

func newRig(t testing.TB, change func(*Limits)) *rig {
	l := DefaultLimits()
	if change != nil {
		change(&l)
	}
	r := &rig{t: t, mem: session.NewMemory(), srv: &fakeServer{}, reg: prometheus.NewRegistry()}
	r.store = &spyStore{Store: r.mem}
	r.b = &Backend{Name: "srv", Server: r.srv}
	metrics := NewMetrics()
	r.reg.MustRegister(metrics)
	r.m = NewManager(Config{
		Limits: l, Store: r.store, Key: []byte("a key of thirty-two bytes or more"), Metrics: metrics,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	t.Cleanup(r.close)
	return r
}

func (r *rig) close() {
	r.check()
	r.m.Close()
	r.empty()
	if n := r.mem.Len(); n > 0 && !r.store.down.Load() && !r.store.hang.Load() {
		r.t.Errorf("%d records left in the store", n)
	}
	r.mem.Close()
}

// empty finds what is left after every session has ended.
func (r *rig) empty() {
	r.t.Helper()
	r.check()
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.slots != 0 || len(m.sessions) != 0 || len(m.all) != 0 || len(m.perPrincipal) != 0 {
		r.t.Errorf("left: %d slots, %d sessions, %d in all, %d principals", m.slots, len(m.sessions), len(m.all), len(m.perPrincipal))
	}
	if st := m.shelf.first(); st != nil {
		r.t.Errorf("left: a stream of session %s that could give way", st.s.Hash())
	}
	if n := m.calls.Load(); n != 0 {
		r.t.Errorf("left: %d calls", n)
	}
	if n, of := m.places.used.Load(), len(m.places.of); n != 0 || of != 0 {
		r.t.Errorf("left: %d places in flight, of %d principals", n, of)
	}
	if n := m.cfg.Metrics.logged.Load(); n != 0 {
		r.t.Errorf("left: %d bytes in logs", n)
	}
	for _, name := range []string{"signalbox_sessions", "signalbox_calls_in_flight", "signalbox_event_log_bytes"} {
		if v := r.metric(name); v != 0 {
			r.t.Errorf("%s is %v at the end", name, v)
		}
	}
}

// check compares every table with what it counts.
func (r *rig) check() {
	r.t.Helper()
	m := r.m
	m.mu.Lock()
	all := m.listLocked()
	if m.slots != len(all) {
		r.t.Errorf("%d slots for %d sessions", m.slots, len(all))
	}
	for k, s := range m.sessions {
		if s.key() != k || !s.registered {
			r.t.Errorf("session %s stands in the table under another key", s.Hash())
		}
	}
	m.mu.Unlock()
	for _, s := range all {
		s.mu.Lock()
		s.checkLocked(r.t)
		s.mu.Unlock()
	}
}

func (s *Session) checkLocked(t testing.TB) {
	t.Helper()
	calls, readers, logged := len(s.own.sinks), 0, 0
	streams := []*Stream{s.own}
	for n, st := range s.streams {
		if st.n != n {
			t.Errorf("stream %d stands under %d", st.n, n)
		}
		calls += len(st.sinks)
		streams = append(streams, st)
		if !st.ended && len(st.sinks) == 0 {
			t.Errorf("stream %d is open without a call", n)
		}
	}
	for _, st := range streams {
		size := 0
		for i, e := range st.log {
			size += len(e.Data)
			if e.Seq != st.dropped+uint64(i)+1 {
				t.Errorf("stream %d: event %d at position %d", st.n, e.Seq, i)
			}
		}
		if size != st.size {
			t.Errorf("stream %d: size %d, counted %d", st.n, size, st.size)
		}
		logged += size
		if st.reader != nil {
			readers++
		}
		if mayGo := !st.own && st.reader == nil && size > 0; mayGo != (st.rank != stays) || mayGo && (st.rank == owed) != (st.sent < st.last()) {
			t.Errorf("stream %d with %d bytes, up to %d of %d sent: rank %d", st.n, size, st.sent, st.last(), st.rank)
		}
	}
	if calls != s.calls || readers != s.readers || logged != s.logged {
		t.Errorf("session: calls %d, readers %d, bytes %d; counted %d, %d, %d", calls, readers, logged, s.calls, s.readers, s.logged)
	}
	if len(s.kept) > s.m.cfg.KeptStreams {
		t.Errorf("%d streams kept", len(s.kept))
	}
}

// metric sums all series of one name.
func (r *rig) metric(name string) (sum float64) {
	families, err := r.reg.Gather()
	if err != nil {
		r.t.Error(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sum
}

func request(id int, method string) upstream.Request {
	return message(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method))
}

func message(s string) upstream.Request {
	msg, err := wire.Parse([]byte(s))
	if err != nil {
		panic(err)
	}
	return upstream.NewRequest(msg)
}

// open begins a session as a client of Streamable HTTP does.
func (r *rig) open() (*Session, *fakeConn) {
	r.t.Helper()
	s, rd, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize"))
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	if got := drain(rd); !strings.Contains(got, `"result"`) {
		r.t.Fatalf("initialize: %s", got)
	}
	if err := s.Register(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	return s, r.srv.last()
}

// call starts a request and returns both its ends.
func (r *rig) call(s *Session, id int, takes Takes) (*Reader, *fakeCall) {
	r.t.Helper()
	rd, err := s.Call(takes, []upstream.Request{request(id, "tools/call")})
	if err != nil {
		r.t.Fatal(err)
	}
	s.mu.Lock()
	conn := s.conn.(*fakeConn)
	s.mu.Unlock()
	return rd, <-conn.calls
}

// drain is what a reader has to fetch now: events by line, then "over" or why
// it was cut off.
func drain(rd *Reader) string {
	var lines []string
	events, over, err := rd.Take(nil)
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("%d %s", e.Seq, e.Data))
	}
	switch {
	case err != nil:
		lines = append(lines, err.Error())
	case over:
		lines = append(lines, "over")
	}
	return strings.Join(lines, "\n")
}
