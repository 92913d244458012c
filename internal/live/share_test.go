package live

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// replica is one of several managers with a store of all.
type replica struct {
	*rig
	t *testing.T
}

// replicas share a store. The server of each accepts sessions which can move,
// unless fixed.
func replicas(t *testing.T, fixed bool, names ...string) []*replica {
	t.Helper()
	mem := session.NewMemory()
	t.Cleanup(func() { _ = mem.Close() })
	var all []*replica
	for _, name := range names {
		r := &replica{&rig{t: t, mem: mem, srv: &fakeServer{}}, t}
		r.store = &spyStore{Store: mem}
		r.b = &Backend{Name: "srv", Server: r.srv}
		r.srv.onOpen = func(c *fakeConn) error {
			if !fixed {
				c.state = upstream.State{Address: "http://10.0.0.1:80", Session: "theirs", Revision: "2025-11-25"}
			}
			c.init.answer(acceptedResult)
			return nil
		}
		r.m = NewManager(Config{
			Limits: DefaultLimits(), Store: r.store, Key: []byte("a key of thirty-two bytes or more"), Replica: name,
			Metrics: NewMetrics(), Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		t.Cleanup(r.m.Close)
		all = append(all, r)
	}
	return all
}

func (r *replica) begin() *Session {
	r.t.Helper()
	s, err := r.openOn(r.b, "p")
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *replica) find(id, principal string) (*Session, error) {
	return r.m.Find(r.t.Context(), r.b, session.Streamable, id, principal)
}

func (r *replica) record(id string) (session.Record, error) {
	return r.mem.Get(r.t.Context(), session.Key{Server: "srv", ID: id})
}

func TestMovableSessionIsServedByEveryReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		a, b := all[0], all[1]
		s := a.begin()
		if _, err := b.find(s.ID(), "another"); err != ErrNotFound {
			t.Errorf("another principal: %v", err)
		}
		other, err := b.find(s.ID(), "p")
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := b.find(s.ID(), "p"); again != other || other.Revision() != "2025-11-25" || !other.Accepted() {
			t.Errorf("found again: %v, revision %s", again == other, other.Revision())
		}
		r, err := other.Call(TakesJSON, []upstream.Request{request(1, "tools/call")})
		if err != nil {
			t.Fatal(err)
		}
		(<-b.srv.last().calls).answer(`{"ok":1}`)
		<-r.Wake()
		if events, _, err := r.Take(nil); err != nil || len(events) != 1 {
			t.Errorf("answer: %v, %v", events, err)
		}
		r.Close()
		if st := b.srv.last().State(); st.Session != "theirs" || st.Address != "http://10.0.0.1:80" {
			t.Errorf("attached as %+v", st)
		}

		// Ended through one replica, it is over at all of them, and the server hears
		// of it once.
		other.Delete()
		synctest.Wait()
		if _, err := a.find(s.ID(), "p"); err != ErrNotFound {
			t.Errorf("after DELETE: %v", err)
		}
		if !a.srv.last().detached || b.srv.last().detached {
			t.Errorf("detached: %t, %t", a.srv.last().detached, b.srv.last().detached)
		}
	})
}

// A session of HTTP+SSE has a home, whatever its server tells of its state.
func TestLegacySessionStaysAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		a, b := all[0], all[1]
		s, _, err := a.m.OpenLegacy(t.Context(), a.b, "p")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Initialize(request(1, "initialize")); err != nil {
			t.Fatal(err)
		}
		now := a.srv.last().State()
		keeper := eventsSink{s, nil}
		keeper.Changed(func(st *upstream.State) { *st = now })
		synctest.Wait()
		if rec, err := a.record(s.ID()); err != nil || rec.Home != "a" || rec.Upstream != "" {
			t.Errorf("record: home %q, address %q, %v", rec.Home, rec.Upstream, err)
		}
		var e *Elsewhere
		if _, err := b.m.Find(t.Context(), b.b, session.LegacySSE, s.ID(), "p"); !errors.As(err, &e) || e.Home != "a" {
			t.Errorf("found at another replica: %v", err)
		}
		if st, err := keeper.Renewed(upstream.State{Address: "lost"}, now); err != nil || st.Address != now.Address {
			t.Errorf("renewed: %+v, %v", st, err)
		}
	})
}

func TestSweepEndsWhatWasEndedElsewhere(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			a := replicas(t, fixed, "a")[0]
			s := a.begin()
			a.store.down.Store(true)
			if err := a.mem.Delete(t.Context(), session.Key{Server: "srv", ID: s.ID()}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * sweepEvery)
			if a.srv.last().endedWith() != nil {
				t.Error("ended although the store cannot tell")
			}
			a.store.down.Store(false)
			time.Sleep(2 * sweepEvery)
			synctest.Wait()
			if a.srv.last().endedWith() == nil {
				t.Error("still there")
			}
		})
	}
}

func TestSessionsThatCannotMoveHaveAHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, true, "a", "b")
		s := all[0].begin()
		var elsewhere *Elsewhere
		if _, err := all[1].find(s.ID(), "p"); !errors.As(err, &elsewhere) || elsewhere.Home != "a" {
			t.Errorf("at another replica: %v", err)
		}
		if _, err := all[1].find(s.ID(), "q"); err != ErrNotFound {
			t.Errorf("another principal learns of it: %v", err)
		}
		// At home it goes on while the store is out of reach; elsewhere nobody can tell.
		all[0].store.down.Store(true)
		all[1].store.down.Store(true)
		if got, err := all[0].find(s.ID(), "p"); got != s {
			t.Errorf("at home without store: %v", err)
		}
		if _, err := all[1].find(s.ID(), "p"); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("elsewhere without store: %v", err)
		}
		all[0].store.down.Store(false)
		all[1].store.down.Store(false)

		legacySession, reader, err := all[0].m.OpenLegacy(t.Context(), all[0].b, "p")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := all[1].m.Find(t.Context(), all[1].b, session.LegacySSE, legacySession.ID(), "p"); !errors.As(err, &elsewhere) || elsewhere.Home != "a" {
			t.Errorf("a legacy session at another replica: %v", err)
		}
		reader.Close()
		legacySession.HungUp(nil)

		all[1].m.HomeGone(all[1].b, s.ID())
		synctest.Wait()
		if _, err := all[1].find(s.ID(), "p"); err != ErrNotFound {
			t.Errorf("after its home is gone: %v", err)
		}
	})
}

// A record with this replica as home, of which nothing is here, is of a session
// that has ended.
func TestRecordWithoutSessionAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := replicas(t, true, "a")[0]
		rec := session.Record{ID: session.NewID(), Server: "srv", Principal: "p", Transport: session.Streamable, Home: "a"}
		if err := a.mem.Create(t.Context(), rec, time.Hour); err != nil {
			t.Fatal(err)
		}
		if _, err := a.find(rec.ID, "p"); err != ErrNotFound {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if _, err := a.record(rec.ID); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("its record: %v", err)
		}
	})
}

func TestReplicaThatStopsLeavesMovableSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s := all[0].begin()
		all[0].m.Drain(t.Context())
		all[0].m.Close()
		if !all[0].srv.last().detached {
			t.Error("the server was told that the session is over")
		}
		if _, err := all[1].find(s.ID(), "p"); err != nil {
			t.Errorf("at the other replica: %v", err)
		}
	})
}

func TestReplicaThatStopsEndsSessionsAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, true, "a", "b")
		s := all[0].begin()
		all[0].m.Close()
		if _, err := all[1].find(s.ID(), "p"); err != ErrNotFound {
			t.Errorf("at the other replica: %v", err)
		}
	})
}

// The first of two replicas that open a session anew wins, and the other
// follows it.
func TestRenewedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b", "c")
		s := all[0].begin()
		if _, err := all[1].find(s.ID(), "p"); err != nil {
			t.Fatal(err)
		}
		lost := upstream.State{Address: "http://10.0.0.1:80", Session: "theirs", Revision: "2025-11-25"}
		renew := func(r *replica, name string) upstream.State {
			now := lost
			now.Session = name
			st, err := r.srv.last().events.(upstream.Keeper).Renewed(lost, now)
			if err != nil {
				t.Error(err)
			}
			return st
		}
		var wg sync.WaitGroup
		results := make([]upstream.State, 2)
		for i, name := range []string{"one", "two"} {
			wg.Go(func() { results[i] = renew(all[i], name) })
		}
		wg.Wait()
		if results[0].Session != results[1].Session || results[0].Session == "theirs" {
			t.Errorf("renewed as %q and %q", results[0].Session, results[1].Session)
		}
		for _, r := range all[1:] {
			if _, err := r.find(s.ID(), "p"); err != nil {
				t.Fatal(err)
			}
			if st := r.srv.last().State(); st.Session != results[0].Session {
				t.Errorf("a replica goes on with %q", st.Session)
			}
		}
	})
}

func TestStateIsKeptForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s := all[0].begin()
		if _, err := all[1].find(s.ID(), "p"); err != nil {
			t.Fatal(err)
		}
		for i, uri := range []string{"x", "y"} { // each through another replica
			all[i].srv.last().events.(upstream.Keeper).Changed(func(st *upstream.State) { st.Subscriptions = append(st.Subscriptions, uri) })
			synctest.Wait()
		}
		all[0].srv.last().events.(upstream.Keeper).Changed(func(st *upstream.State) { st.LogLevel = "debug" })
		synctest.Wait()
		rec, err := all[0].record(s.ID())
		if err != nil || !slices.Equal(rec.Subscriptions, []string{"x", "y"}) || rec.LogLevel != "debug" || rec.Home != "" || rec.UpstreamSession != "theirs" {
			t.Errorf("record %+v, %v", rec.Subscriptions, err)
		}
	})
}

// One replica has the session's own stream, and the others know which.
func TestOwnStreamHasAHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s := all[0].begin()
		r, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		other, err := all[1].find(s.ID(), "p")
		if err != nil {
			t.Fatal(err)
		}
		if home := other.StreamHome(); home != "a" {
			t.Errorf("its home is %q", home)
		}
		if home := s.StreamHome(); home != "" {
			t.Errorf("at home it is %q", home)
		}
		r.Close()
		synctest.Wait()
		if _, err := all[1].find(s.ID(), "p"); err != nil {
			t.Fatal(err)
		}
		if home := other.StreamHome(); home != "" {
			t.Errorf("after it was closed: %q", home)
		}
	})
}

// A session that was not used here may have been used elsewhere: it has expired
// when its record has, and then the server hears of it.
func TestIdleSessionsExpireWithTheirRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s := all[0].begin()
		for range 10 { // used through b only, from the end of the handshake on
			other, err := all[1].find(s.ID(), "p")
			if err != nil {
				t.Fatal(err)
			}
			if err := other.Send(message(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour)
		}
		if all[0].srv.last().endedWith() != nil {
			t.Fatal("ended while in use elsewhere")
		}
		time.Sleep(4 * time.Hour)
		synctest.Wait()
		for i, r := range all {
			if r.srv.last().endedWith() == nil {
				t.Errorf("replica %d still has it", i)
			}
		}
		if _, err := all[0].record(s.ID()); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("record: %v", err)
		}
	})
}

func TestAttachToALostAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s := all[0].begin()
		all[1].srv.attachErr = upstream.ErrLost
		if _, err := all[1].find(s.ID(), "p"); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if _, err := all[0].record(s.ID()); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("its record: %v", err)
		}
	})
}

// A stream is resumed where it is, and an event id says where that is.
func TestEventIDsNameTheReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s := all[0].begin()
		other, err := all[1].find(s.ID(), "p")
		if err != nil {
			t.Fatal(err)
		}
		r, err := s.Call(TakesBoth, []upstream.Request{request(1, "tools/call")})
		if err != nil {
			t.Fatal(err)
		}
		r.Keep()
		id := r.EventID(0)
		r.Close()
		if home := all[1].m.EventHome(all[1].b, s.ID(), id); home != "a" {
			t.Errorf("at another replica its home is %q", home)
		}
		if home := all[0].m.EventHome(all[0].b, s.ID(), id); home != "" {
			t.Errorf("at home it is %q", home)
		}
		if home := all[1].m.EventHome(all[1].b, "another session", id); home != "" {
			t.Errorf("for another session it is %q", home)
		}
		if _, err := other.Resume(id); !errors.Is(err, ErrPosition) {
			t.Errorf("resumed elsewhere: %v", err)
		}
		forged := id[:len(id)-1] + "b"
		if home := all[0].m.EventHome(all[0].b, s.ID(), forged); home != "" {
			t.Errorf("a forged replica is believed: %q", home)
		}
		again, err := s.Resume(id)
		if err != nil {
			t.Fatal(err)
		}
		again.Close()
	})
}

// A request that found its session just before the replica let go of it is told to
// come again, and not that the session is over.
func TestMovableSessionIsNotLostByDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s := all[0].begin()
		all[0].m.Drain(t.Context())
		all[0].m.Close()
		if _, err := s.Call(TakesJSON, []upstream.Request{request(1, "tools/call")}); err != ErrDraining {
			t.Errorf("call: %v", err)
		}
		if err := s.Send(request(0, "notifications/progress")); err != ErrDraining {
			t.Errorf("notification: %v", err)
		}
		if _, err := s.Listen(); err != ErrDraining {
			t.Errorf("listen: %v", err)
		}
		if _, err := all[0].m.Local(all[0].b, session.Streamable, s.ID(), "p"); err != ErrDraining {
			t.Errorf("what another replica asks for: %v", err)
		}
		if _, err := all[1].find(s.ID(), "p"); err != nil {
			t.Errorf("at the other replica: %v", err)
		}
	})
}

// A replica that drains serves to the end what is not at home there, so that no
// call is lost before a balancer notices.
func TestDrainServesWhatCanMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		fixed := replicas(t, true, "c")[0]
		s, home := all[0].begin(), fixed.begin()
		for _, m := range []*Manager{all[0].m, all[1].m, fixed.m} {
			m.StartDrain()
		}
		other, err := all[1].find(s.ID(), "p")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []*Session{s, other} {
			r, err := s.Call(TakesJSON, []upstream.Request{request(1, "tools/call")})
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			s.mu.Lock()
			conn := s.conn.(*fakeConn)
			s.mu.Unlock()
			(<-conn.calls).answer("{}")
		}
		if _, err := home.Call(TakesJSON, []upstream.Request{request(1, "tools/call")}); err != ErrDraining {
			t.Errorf("a call at home: %v", err)
		}
	})
}

// A Session that is made of a record and then not needed leaves the record alone.
func TestAttachInVainKeepsTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		s, b := all[0].begin(), all[1]
		b.m.Close()
		if _, err := b.find(s.ID(), "p"); err != ErrDraining {
			t.Errorf("at a replica that has drained: %v", err)
		}
		synctest.Wait()
		if _, err := all[0].record(s.ID()); err != nil {
			t.Errorf("record: %v", err)
		}
		if !b.srv.last().detached {
			t.Error("the connection in vain was not let go")
		}
	})
}
