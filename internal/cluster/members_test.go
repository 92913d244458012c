package cluster

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

var testKey = derive(testSecret, "signalbox/cluster/registration/v1")

// member makes one without network; its heartbeat runs until the returned
// function is called, or the test ends.
func testMember(t *testing.T, reg Registry, id string) (m *members, stop func()) {
	t.Helper()
	life, cancel := context.WithCancel(context.Background())
	cfg := Config{
		Registry: reg, Heartbeat: DefaultHeartbeat, Lease: DefaultLease,
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Metrics: NewMetrics(),
	}
	m = newMembers(life, &cfg, registration{id: id, address: "127.0.0.1:1", fingerprint: fingerprint{id[0]}}, testKey)
	go m.run()
	t.Cleanup(cancel)
	return m, func() { cancel(); <-m.done }
}

func wantLookup(t *testing.T, m *members, id string, want error) {
	t.Helper()
	r, err := m.lookup(id)
	if !errors.Is(err, want) || (want == nil && r.id != id) {
		t.Errorf("looking %s up gives %v, %v, want %v", id, r, err, want)
	}
}

var errDown = errors.New("connection refused")

func down(context.Context, string) error { return errDown }

func TestLeaseOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		a, _ := testMember(t, reg, "a")
		_, kill := testMember(t, reg, "b")
		time.Sleep(time.Minute)
		wantLookup(t, a, "b", nil)
		kill()
		began := time.Now()
		for {
			_, err := a.lookup("b")
			if errors.Is(err, ErrGone) {
				break
			}
			if err != nil {
				t.Fatalf("%v after its death: %v", time.Since(began), err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		// It had renewed within a heartbeat; "yes" is believed for a second.
		if took := time.Since(began); took < DefaultLease-DefaultHeartbeat || took > DefaultLease+freshFor {
			t.Errorf("known to be gone after %v", took)
		}
		if a.knows("b") {
			t.Error("it is still known")
		}
		wantLookup(t, a, "never was", ErrGone)
	})
}

func TestYesIsBelievedForASecondNoIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		a, _ := testMember(t, reg, "a")
		_, kill := testMember(t, reg, "b")
		time.Sleep(30*time.Second + 500*time.Millisecond)
		gets := 0
		reg.Fault(func(_ context.Context, op string) error {
			if op == "get" {
				gets++
			}
			return nil
		})
		for range 20 {
			wantLookup(t, a, "b", nil)
		}
		if gets != 0 {
			t.Errorf("%d round trips for what a list said half a second ago", gets)
		}
		time.Sleep(freshFor)
		wantLookup(t, a, "b", nil)
		wantLookup(t, a, "b", nil)
		if gets != 1 {
			t.Errorf("%d round trips after a second, want 1", gets)
		}
		kill()
		_ = reg.Remove(t.Context(), "b")
		time.Sleep(freshFor)
		wantLookup(t, a, "b", ErrGone)
		wantLookup(t, a, "b", ErrGone)
		if gets != 3 {
			t.Errorf("%d round trips, want one more for each no", gets)
		}
	})
}

func TestOutageEndsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		a, _ := testMember(t, reg, "a")
		b, _ := testMember(t, reg, "b")
		time.Sleep(time.Minute)

		reg.Fault(down)
		for range 300 { // 30 s: all leases are over
			time.Sleep(100 * time.Millisecond)
			if _, err := a.lookup("b"); err != nil && !errors.Is(err, session.ErrUnavailable) {
				t.Fatalf("in the outage: %v", err)
			}
		}
		wantLookup(t, a, "b", session.ErrUnavailable)
		if a.registered() || b.registered() {
			t.Error("registered while the store is out of reach")
		}
		reg.Fault(nil)
		for range 50 { // before the others are back, nobody is dead
			if _, err := a.lookup("b"); err != nil && !errors.Is(err, session.ErrUnavailable) {
				t.Fatalf("after the outage: %v", err)
			}
			wantLookup(t, a, "never was", session.ErrUnavailable)
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		wantLookup(t, a, "b", nil) // little more than half a second after
		for name, m := range map[string]*members{"a": a, "b": b} {
			select {
			case <-m.back:
			default:
				t.Errorf("%s has not been told that it is back", name)
			}
		}
		time.Sleep(DefaultLease)
		wantLookup(t, a, "never was", ErrGone)
	})
}

func TestReturnOfOneThatWasCutOff(t *testing.T) {
	for name, cutoff := range map[string]time.Duration{"shorter than the lease": 5 * time.Second, "longer than the lease": 40 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg := new(Memory)
				far := &cuttable{Registry: reg}
				a, _ := testMember(t, reg, "a")
				b, _ := testMember(t, far, "b")
				time.Sleep(time.Minute)
				far.cut.Store(true)
				time.Sleep(cutoff)
				var want error
				if cutoff > DefaultLease {
					want = ErrGone // the store says so, and a has always been in reach of it
				}
				wantLookup(t, a, "b", want)
				wantLookup(t, b, "a", session.ErrUnavailable)
				far.cut.Store(false)
				time.Sleep(DefaultHeartbeat / retries)
				<-b.back
				wantLookup(t, a, "b", nil)
				select {
				case <-a.back:
					t.Error("a has never been away")
				default:
				}
			})
		})
	}
}

// slowAfterList takes a while after the store has answered its next list.
type slowAfterList struct {
	*Memory
	next atomic.Int64 // ns
}

func (s *slowAfterList) List(ctx context.Context) (map[string][]byte, error) {
	all, err := s.Memory.List(ctx)
	time.Sleep(time.Duration(s.next.Swap(0)))
	return all, err
}

// A process that was stopped sees no failure: its lease ran out all the same.
func TestReturnOfOneThatWasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		slow := &slowAfterList{Memory: reg}
		a, _ := testMember(t, slow, "a")
		time.Sleep(time.Minute)
		synctest.Wait()                  // the heartbeat of this very moment is over
		_ = reg.Remove(t.Context(), "a") // as if the lease were over
		time.Sleep(DefaultHeartbeat)
		wantBack(t, a, "after it was not registered")

		// Stopped in the middle of a heartbeat, at each of its calls of the store:
		// its lease is over before the call takes place.
		for _, at := range []string{"list", "put"} {
			stopped := make(chan struct{})
			reg.Fault(func(_ context.Context, op string) error {
				if op == at {
					<-stopped
				}
				return nil
			})
			time.Sleep(15 * time.Second)
			reg.Fault(nil)
			close(stopped)
			time.Sleep(DefaultHeartbeat)
			wantBack(t, a, "after it was stopped at "+at)
			time.Sleep(time.Minute)
		}

		// And between the two, where neither call sees it.
		synctest.Wait()
		slow.next.Store(int64(15 * time.Second))
		time.Sleep(15*time.Second + DefaultHeartbeat)
		wantBack(t, a, "after it was stopped between list and put")
	})
}

func wantBack(t *testing.T, m *members, when string) {
	t.Helper()
	synctest.Wait()
	select {
	case <-m.back:
	default:
		t.Errorf("its return is not told %s", when)
	}
}

func TestAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		reg.Fault(down)
		a, _ := testMember(t, reg, "a")
		synctest.Wait()
		if a.registered() {
			t.Error("registered, but the store is out of reach")
		}
		time.Sleep(time.Minute)
		wantLookup(t, a, "x", session.ErrUnavailable)
		reg.Fault(nil)
		time.Sleep(DefaultHeartbeat / retries)
		synctest.Wait()
		if !a.registered() {
			t.Error("not registered soon after the store came")
		}
		select {
		case <-a.back:
			t.Error("back, but it has never been there")
		default:
		}
		wantLookup(t, a, "x", session.ErrUnavailable) // others may be a moment late
		time.Sleep(DefaultHeartbeat)
		wantLookup(t, a, "x", ErrGone)
	})
}

func TestSilentStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		a, _ := testMember(t, reg, "a")
		time.Sleep(time.Minute)
		reg.Fault(func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() })
		began := time.Now()
		wantLookup(t, a, "x", session.ErrUnavailable)
		if took := time.Since(began); took != storeTimeout {
			t.Errorf("given up after %v, want %v", took, storeTimeout)
		}
	})
}

func TestStrangersDoNotHammerTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		a, _ := testMember(t, reg, "a")
		time.Sleep(time.Minute)
		var lists atomic.Int64
		reg.Fault(func(_ context.Context, op string) error {
			if op == "list" {
				lists.Add(1)
			}
			return nil
		})
		const rounds = 30
		for i := range rounds {
			for j := range 50 {
				go func() {
					if _, err := a.admit(t.Context(), fingerprint{1, byte(i), byte(j)}); !errors.Is(err, ErrPeer) {
						t.Errorf("a stranger: %v", err)
					}
				}()
			}
			time.Sleep(100 * time.Millisecond)
		}
		// One who has just joined gets in meanwhile.
		testMember(t, reg, "b")
		synctest.Wait()
		began := time.Now()
		if id, err := a.admit(t.Context(), fingerprint{'b'}); id != "b" || err != nil {
			t.Errorf("a new peer: %q, %v", id, err)
		}
		if took := time.Since(began); took > 2*listPause {
			t.Errorf("a new peer waited for %v", took)
		}
		if n := lists.Load(); n > 8 { // 3 s to 5 s, heartbeats of two included
			t.Errorf("%d lists", n)
		}
		time.Sleep(5 * time.Second)
	})
}

func TestAdmitWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := new(Memory)
		a, _ := testMember(t, reg, "a")
		testMember(t, reg, "b")
		time.Sleep(time.Minute)
		reg.Fault(down)
		time.Sleep(time.Minute)
		if id, err := a.admit(t.Context(), fingerprint{'b'}); id != "b" || err != nil {
			t.Errorf("one that is known: %q, %v", id, err)
		}
		if _, err := a.admit(t.Context(), fingerprint{'c'}); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("a stranger: %v", err)
		}
	})
}

// cuttable is one replica's way to a Registry.
type cuttable struct {
	Registry
	cut atomic.Bool
}

func (c *cuttable) err() error {
	if c.cut.Load() {
		return session.ErrUnavailable
	}
	return nil
}

func (c *cuttable) Put(ctx context.Context, id string, value []byte, lease time.Duration) error {
	if err := c.err(); err != nil {
		return err
	}
	return c.Registry.Put(ctx, id, value, lease)
}

func (c *cuttable) Get(ctx context.Context, id string) ([]byte, error) {
	if err := c.err(); err != nil {
		return nil, err
	}
	return c.Registry.Get(ctx, id)
}

func (c *cuttable) List(ctx context.Context) (map[string][]byte, error) {
	if err := c.err(); err != nil {
		return nil, err
	}
	return c.Registry.List(ctx)
}
