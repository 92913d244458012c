package live

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// closeSpy counts how often a server is closed.
type closeSpy struct {
	fakeServer
	closes atomic.Int64
}

func (s *closeSpy) Close() { s.closes.Add(1) }

// openOn opens a session of b and leaves its stream.
func (r *rig) openOn(b *Backend, principal string) (*Session, error) {
	s, rd, err := r.m.Open(b, principal, TakesJSON, request(1, "initialize"))
	if err != nil {
		return nil, err
	}
	rd.Close()
	return s, s.Register(r.t.Context())
}

func TestLimitsOfOneBackend(t *testing.T) {
	r := newRig(t, nil)
	b := &Backend{Name: "bounded", Server: &fakeServer{}, MaxSessions: 3, MaxPerPrincipal: 2}
	var opened []*Session
	for i, want := range []error{nil, nil, ErrPrincipalLimit} {
		s, err := r.openOn(b, "p")
		if !errors.Is(err, want) {
			t.Fatalf("session %d: %v, want %v", i, err, want)
		}
		opened = append(opened, s)
	}
	if _, err := r.openOn(b, "q"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.openOn(b, "r"); !errors.Is(err, ErrSessionLimit) {
		t.Errorf("beyond the backend's bound: %v", err)
	}
	if _, err := r.openOn(r.b, "p"); err != nil {
		t.Errorf("another backend is bounded too: %v", err)
	}
	opened[0].Delete()
	if _, err := r.openOn(b, "p"); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}

func TestAgesOfOneBackend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(l *Limits) { l.Idle, l.Handshake = time.Hour, time.Hour })
		short, err := r.openOn(&Backend{Name: "idle", Server: &fakeServer{}, Idle: time.Minute}, "p")
		if err != nil {
			t.Fatal(err)
		}
		aged, err := r.openOn(&Backend{Name: "aged", Server: &fakeServer{}, MaxAge: 10 * time.Minute}, "p")
		if err != nil {
			t.Fatal(err)
		}
		plain, err := r.openOn(r.b, "p")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			after time.Duration
			want  [3]bool // ended
		}{{59 * time.Second, [3]bool{}}, {2 * time.Second, [3]bool{true}}, {10 * time.Minute, [3]bool{true, true}}, {time.Hour, [3]bool{true, true, true}}} {
			time.Sleep(c.after)
			synctest.Wait()
			for i, s := range []*Session{short, aged, plain} {
				s.mu.Lock()
				if s.ended != c.want[i] {
					t.Errorf("session %d after another %v: ended is %t", i, c.after, s.ended)
				}
				s.mu.Unlock()
			}
		}
	})
}

// A retired backend goes when its last session has ended, and not before.
func TestRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		server := &closeSpy{}
		b := &Backend{Name: "old", Server: server}
		s, err := r.openOn(b, "p")
		if err != nil {
			t.Fatal(err)
		}
		r.m.Retire(b)
		r.m.Retire(b)
		synctest.Wait()
		if server.closes.Load() != 0 || r.m.Gone(b) {
			t.Error("it is closed below its session")
		}
		if _, err := r.openOn(b, "p"); !errors.Is(err, ErrRetired) {
			t.Errorf("a new session: %v", err)
		}
		if found, err := r.m.Find(t.Context(), &Backend{Name: "old"}, s.transport, s.ID(), "p"); found != s {
			t.Errorf("its session by a backend of the same name: %v, %v", found, err)
		}
		s.Delete()
		r.m.WaitRetired()
		if n := server.closes.Load(); n != 1 || !r.m.Gone(b) {
			t.Errorf("closed %d times, gone is %t", n, r.m.Gone(b))
		}
		unused := &closeSpy{}
		r.m.Retire(&Backend{Name: "unused", Server: unused})
		r.m.WaitRetired()
		if n := unused.closes.Load(); n != 1 {
			t.Errorf("one without sessions was closed %d times", n)
		}
	})
}

func TestStateOfABackend(t *testing.T) {
	r := newRig(t, nil)
	if st := r.m.State(r.b); st != (State{}) {
		t.Errorf("before anything: %+v", st)
	}
	r.srv.onOpen = func(c *fakeConn) error {
		return upstream.Errorf(mcp.CodeInternal, "start_failed", "no such command\nlast words")
	}
	if _, err := r.openOn(r.b, "p"); err == nil {
		t.Error("no error")
	}
	if st := r.m.State(r.b); st.Failure != "no such command" || st.FailedAt.IsZero() || st.Sessions != 0 {
		t.Errorf("after a failed start: %+v", st)
	}
	r.srv.onOpen = nil
	s, err := r.openOn(r.b, "p")
	if err != nil {
		t.Fatal(err)
	}
	if st := r.m.State(r.b); st.Sessions != 1 || st.Started != 1 || st.WorkedAt.IsZero() {
		t.Errorf("with a session: %+v", st)
	}
	failedAt := r.m.State(r.b).FailedAt
	s.Delete()
	if st := r.m.State(r.b); st.Sessions != 0 || st.FailedAt != failedAt {
		t.Errorf("after its client ended it: %+v", st)
	}
}
