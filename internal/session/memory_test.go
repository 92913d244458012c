package session_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/sessiontest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestMemory(t *testing.T) {
	sessiontest.Run(t, func(*testing.T) session.Store { return session.NewMemory() },
		sessiontest.Options{FakeTime: true})
}

// Records that nobody asks for again do not stay in memory.
func TestMemoryFreesExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := session.NewMemory()
		defer m.Close()
		add := func(n int, idle time.Duration) (last session.Key) {
			for range n {
				r := session.Record{ID: session.NewID(), Server: "s"}
				if err := m.Create(t.Context(), r, idle); err != nil {
					t.Fatal(err)
				}
				last = r.Key()
			}
			return last
		}
		wantLen := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := m.Len(); got != want {
				t.Fatalf("%d records are held, want %d", got, want)
			}
		}

		kept := add(50, time.Hour)
		add(50, time.Minute) // the timer is set for a later time already
		wantLen(100)
		time.Sleep(time.Minute + 2*time.Second)
		wantLen(50)

		time.Sleep(30 * time.Minute)
		if err := m.Touch(t.Context(), kept, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
		wantLen(1)
		time.Sleep(time.Hour)
		wantLen(0)

		touched := add(1, time.Hour)
		add(1, 90*time.Minute)
		time.Sleep(50 * time.Minute)
		if err := m.Touch(t.Context(), touched, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(41 * time.Minute) // the other one is first now
		wantLen(1)
		time.Sleep(20 * time.Minute)
		wantLen(0)

		add(1, time.Millisecond) // armed anew after it was empty
		time.Sleep(2 * time.Second)
		wantLen(0)
	})
}

func TestMemoryExpiresExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := session.NewMemory()
		defer m.Close()
		r := session.Record{ID: "1", Server: "s"}
		const idle = 100 * time.Millisecond // shorter than the pause between sweeps
		if err := m.Create(t.Context(), r, idle); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idle - time.Nanosecond)
		if _, err := m.Get(t.Context(), r.Key()); err != nil {
			t.Errorf("a nanosecond before: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if _, err := m.Get(t.Context(), r.Key()); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("at the end: error %v, want ErrNotFound", err)
		}
	})
}

func TestMemoryContextEnded(t *testing.T) {
	m := session.NewMemory()
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.Get(ctx, session.Key{})
	if !errors.Is(err, session.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want ErrUnavailable and Canceled", err)
	}
}

// Close in the middle of sweeps and calls; goleak sees what stays behind.
func TestMemoryCloseRaces(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			m := session.NewMemory()
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					for j := 0; ; j++ {
						r := session.Record{ID: fmt.Sprint(i, ".", j), Server: "s"}
						err := m.Create(t.Context(), r, time.Millisecond*time.Duration(1+j%1500))
						if errors.Is(err, session.ErrUnavailable) {
							return
						}
						time.Sleep(time.Millisecond)
					}
				})
			}
			time.Sleep(2 * time.Second) // together with a sweep
			m.Close()
			wg.Wait()
		})
	}
}

func TestNewID(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := session.NewID()
		if b, err := base64.RawURLEncoding.DecodeString(id); err != nil || len(b) != 16 {
			t.Fatalf("id %q is not 16 bytes of base64url", id)
		}
		if seen[id] {
			t.Fatal("an id came twice")
		}
		seen[id] = true
	}
}

func TestIDStaysOutOfLogs(t *testing.T) {
	// printf abc | sha256sum
	if got, want := session.ShortHash("abc"), "ba7816bf"; got != want {
		t.Errorf("ShortHash is %q, want %q", got, want)
	}
	r := session.Record{ID: "abc", Server: "s", UpstreamSession: "secret", Initialize: []byte("secret")}
	var b strings.Builder
	fmt.Fprintf(&b, "%v %+v %s ", r, r, r.Key())
	slog.New(slog.NewJSONHandler(&b, nil)).Info("m", "record", r, "key", r.Key())
	slog.New(slog.NewTextHandler(&b, nil)).Info("m", "record", r, "key", r.Key())
	if got := b.String(); strings.Contains(got, "abc") || strings.Contains(got, "secret") {
		t.Errorf("the id or a secret is shown: %s", got)
	}
	if got := strings.Count(b.String(), "s/ba7816bf"); got != 7 {
		t.Errorf("the short hash is shown %d times, want 7: %s", got, b.String())
	}
}
