//go:build unix

package redis

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
)

// everyCall returns what each method says of k, all asked at the same time.
func everyCall(ctx context.Context, s *Store, k session.Key) map[string]error {
	fresh := newRecord()
	calls := map[string]func() error{
		"Create": func() error { return s.Create(ctx, fresh, time.Hour) },
		"Get":    func() error { _, err := s.Get(ctx, k); return err },
		"Update": func() error {
			_, err := s.Update(ctx, k, func(*session.Record) error { return nil })
			return err
		},
		"Touch":  func() error { return s.Touch(ctx, k, time.Now()) },
		"Delete": func() error { return s.Delete(ctx, k) },
		"Put":    func() error { return s.Registry().Put(ctx, "r", nil, time.Second) },
		"Lookup": func() error { _, err := s.Registry().Get(ctx, "r"); return err },
		"List":   func() error { _, err := s.Registry().List(ctx); return err },
		"Left":   func() error { _, err := s.Registry().Left(ctx, "r"); return err },
		"Remove": func() error { return s.Registry().Remove(ctx, "r") },
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	errs := make(map[string]error)
	for name, call := range calls {
		wg.Go(func() {
			err := call()
			mu.Lock()
			defer mu.Unlock()
			errs[name] = err
		})
	}
	wg.Wait()
	return errs
}

// allUnavailable checks that every call says so, and only so.
func allUnavailable(t *testing.T, s *Store, k session.Key) {
	t.Helper()
	started := time.Now()
	for name, err := range everyCall(t.Context(), s, k) {
		if !errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrExists) {
			t.Errorf("%s: error %v, want ErrUnavailable", name, err)
		}
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, but the caller's context has not ended", name, err)
		}
	}
	if took := time.Since(started); took > 3500*time.Millisecond { // of a machine with other work
		t.Errorf("the calls took %v, are bounded by 2s", took)
	}
}

func works(s *Store, r session.Record) bool {
	_, err := s.Get(context.Background(), r.Key())
	return err == nil && s.Ready() == nil
}

// A server that is there but silent.
func TestPaused(t *testing.T) {
	t.Parallel()
	var out logs
	server := redistest.Start(t)
	s := open(t, server, Config{Log: out.logger()})
	r, cold := newRecord(), newRecord()
	create(t, s, r)
	create(t, s, cold)
	get(t, s, r.Key())
	eventually(t, "ready", func() bool { return s.Ready() == nil })

	server.Pause()
	if _, err := s.Get(t.Context(), r.Key()); err != nil {
		t.Errorf("warm Get just after: %v", err)
	}
	for range 2 { // with a connection, then without
		allUnavailable(t, s, cold.Key())
	}
	// The connection is given up by then, and the copies with it.
	eventually(t, "copies end", func() bool {
		_, err := s.Get(t.Context(), r.Key())
		return errors.Is(err, session.ErrUnavailable)
	})
	eventually(t, "not ready", func() bool { return s.Ready() != nil })

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	for name, err := range everyCall(ctx, s, cold.Key()) {
		if !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("%s: error %v, want ErrUnavailable", name, err)
		}
	}
	if took := time.Since(started); took > time.Second {
		t.Errorf("a context of 50 ms ended the calls after %v", took)
	}

	server.Resume()
	eventually(t, "works again", func() bool { return works(s, r) })
	if got := out.String(); strings.Count(got, "out of reach") != 1 || strings.Count(got, "is reached") != 2 {
		t.Errorf("each change of state must be logged once:\n%s", got)
	}
}

// What was sent while the server was silent is done when it goes on. The Store's
// own reads must see it in the end.
func TestPausedWriteIsSeen(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server, Config{Timeout: 300 * time.Millisecond})
	r := newRecord()
	if err := s.Delete(t.Context(), r.Key()); !errors.Is(err, session.ErrNotFound) { // Redis knows the script now
		t.Fatalf("Delete: %v", err)
	}
	create(t, s, r)
	get(t, s, r.Key())
	server.Pause()
	if err := s.Delete(t.Context(), r.Key()); !errors.Is(err, session.ErrUnavailable) {
		t.Fatalf("Delete: %v", err)
	}
	server.Resume()
	eventually(t, "the delete shows", func() bool {
		_, err := s.Get(t.Context(), r.Key())
		return errors.Is(err, session.ErrNotFound)
	})
}

// More calls than rueidis has room for must not wait longer than others.
func TestPausedFlood(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server, Config{})
	create(t, s, newRecord())
	server.Pause()
	var late atomic.Int32
	var wg sync.WaitGroup
	for range 1500 {
		wg.Go(func() {
			started := time.Now()
			if err := s.Touch(t.Context(), newRecord().Key(), time.Now()); !errors.Is(err, session.ErrUnavailable) {
				t.Errorf("Touch: %v", err)
			}
			if time.Since(started) > 5*time.Second {
				late.Add(1)
			}
		})
	}
	wg.Wait()
	if n := late.Load(); n > 0 {
		t.Errorf("%d calls took longer than 5s", n)
	}
}

func TestKilledAndRestarted(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	eventually(t, "ready", func() bool { return s.Ready() == nil })
	server.Kill()
	eventually(t, "copies end with the connection", func() bool {
		_, err := s.Get(t.Context(), r.Key())
		return errors.Is(err, session.ErrUnavailable)
	})
	allUnavailable(t, s, r.Key())
	eventually(t, "not ready", func() bool { return s.Ready() != nil })

	server.Restart()
	eventually(t, "the record is back", func() bool { return works(s, r) })
	if _, err := s.Update(t.Context(), r.Key(), func(*session.Record) error { return nil }); err != nil {
		t.Errorf("Update after a restart, which forgets scripts: %v", err)
	}
}

// A server that forgot everything says so: the session is gone.
func TestRestartedEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	server.Kill()
	server.Restart()
	eventually(t, "the record is gone", func() bool {
		_, err := s.Get(t.Context(), r.Key())
		return errors.Is(err, session.ErrNotFound)
	})
}

// FLUSHALL tells of no key by its name.
func TestFlushed(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	do(t, plain(t, server.Addr), "FLUSHALL")
	settle(t, s)
	if _, err := s.Get(t.Context(), r.Key()); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
}

func TestNotThereAtStart(t *testing.T) {
	t.Parallel()
	var out logs
	server := redistest.Start(t)
	server.Kill()
	s := open(t, server, Config{URL: "redis://:topsecret@" + server.Addr, Log: out.logger()})
	allUnavailable(t, s, newRecord().Key())
	if err := s.Ready(); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("Ready: %v", err)
	}
	server.Restart()
	eventually(t, "ready", func() bool { return s.Ready() == nil })
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	got := out.String()
	if strings.Count(got, "level=WARN") != 1 || strings.Count(got, "level=INFO") != 1 || strings.Count(got, server.Addr) < 2 {
		t.Errorf("want one warning and one info, with the address:\n%s", got)
	}
	if strings.Contains(got, "topsecret") {
		t.Errorf("the password is logged:\n%s", got)
	}
}

// An address where nobody answers, not even by a refusal.
func TestSilentAddress(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := open(t, nil, Config{URL: "redis://" + l.Addr().String()})
	allUnavailable(t, s, newRecord().Key())
	started := time.Now()
	s.Close()
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
}

func TestClosePaused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server, Config{})
	create(t, s, newRecord())
	server.Pause()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { everyCall(t.Context(), s, newRecord().Key()) })
	}
	started := time.Now()
	s.Close()
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("Close took %v", took)
	}
	wg.Wait()
}
