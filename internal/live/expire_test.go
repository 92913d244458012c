package live

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

func (r *rig) alive(s *Session) bool {
	r.t.Helper()
	synctest.Wait()
	_, err := r.m.Find(r.t.Context(), r.b, s.transport, s.ID(), s.principal)
	if err != nil && !errors.Is(err, ErrNotFound) {
		r.t.Fatal(err)
	}
	return err == nil
}

func (r *rig) record(s *Session) bool {
	_, err := r.mem.Get(context.Background(), session.Key{Server: "srv", ID: s.ID()})
	return err == nil
}

const idle = time.Hour

func idleHour(l *Limits) { l.Idle = idle }

func TestIdleSessionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, idleHour)
		s, conn := r.open()
		for range 5 { // a message now and then is use
			if err := s.Send(message(logText)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(idle - time.Second)
		}
		if err := s.Send(message(logText)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(idle - time.Second)
		if !r.alive(s) || !r.record(s) {
			t.Fatal("ended too early")
		}
		time.Sleep(2 * time.Second)
		if r.alive(s) || conn.endedWith() == nil {
			t.Fatal("still there")
		}
		if r.record(s) {
			t.Error("the record is still there")
		}
		r.empty()
	})
}

func TestOpenStreamAndOpenCallAreUse(t *testing.T) {
	for _, what := range []string{"stream", "call", "detached call"} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, idleHour)
				s, _ := r.open()
				var done func()
				switch what {
				case "stream":
					rd, err := s.Listen()
					if err != nil {
						t.Fatal(err)
					}
					done = rd.Close
				case "call":
					rd, k := r.call(s, 1, TakesJSON)
					done = func() { k.answer(`{}`); rd.Close() }
				default:
					_, k := r.streamed(s, 1)
					done = func() { k.answer(`{}`) }
				}
				for range 9 {
					time.Sleep(idle)
					if !r.alive(s) || !r.record(s) {
						t.Fatalf("session %v, record %v while in use", r.alive(s), r.record(s))
					}
				}
				time.Sleep(idle * 9 / 10)
				done()
				time.Sleep(idle - time.Second)
				if !r.alive(s) || !r.record(s) {
					t.Fatalf("session %v, record %v before the idle time is over", r.alive(s), r.record(s))
				}
				time.Sleep(2 * time.Second)
				if r.alive(s) {
					t.Error("still there")
				}
			})
		})
	}
}

func TestMaxAgeEndsASessionInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(l *Limits) { l.MaxAge = 90 * time.Minute })
		s, _ := r.open()
		rd, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		time.Sleep(90*time.Minute - time.Second)
		if !r.alive(s) {
			t.Fatal("ended too early")
		}
		time.Sleep(2 * time.Second)
		if r.alive(s) {
			t.Fatal("still there")
		}
		drain(rd)
		if got := drain(rd); got != "over" {
			t.Errorf("its stream: %s", got)
		}
	})
}

func TestHandshakeThatIsNeverFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(l *Limits) { l.Handshake = time.Minute })
		s, _ := r.open()
		shaken, _ := r.open()
		if err := shaken.Send(message(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
			t.Fatal(err)
		}
		silent, rd, err := r.m.OpenLegacy(t.Context(), r.b, "p")
		if err != nil {
			t.Fatal(err)
		}
		defer rd.Close()
		legacy, lrd := r.legacy()
		defer legacy.HungUp(nil)
		defer lrd.Close()
		time.Sleep(58 * time.Second)
		if !r.alive(s) || !r.alive(silent) {
			t.Error("ended too early")
		}
		time.Sleep(4 * time.Second)
		if r.alive(s) || r.alive(silent) {
			t.Errorf("still there: streamable %v, legacy %v", r.alive(s), r.alive(silent))
		}
		if !r.alive(shaken) || !r.alive(legacy) {
			t.Errorf("finished its handshake and is gone: streamable %v, legacy %v", !r.alive(shaken), !r.alive(legacy))
		}
	})
}

func TestLastSeenIsWrittenRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(l *Limits) { l.Idle = 100 * time.Minute })
		s, _ := r.open()
		for range 1000 { // 1000 minutes, each with three uses
			time.Sleep(time.Minute)
			_ = s.Send(message(logText))
			rd, k := r.call(s, 1, TakesBoth)
			k.answer(`{}`)
			rd.Close()
		}
		synctest.Wait()
		if n := r.store.touches.Load(); n < 80 || n > 100 {
			t.Errorf("%d writes", n)
		}
	})
}

func TestUnregisteredSessionHasNoRecord(t *testing.T) {
	r := newRig(t, nil)
	s, rd, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize"))
	if err != nil {
		t.Fatal(err)
	}
	if r.record(s) {
		t.Error("a record before the id was handed out")
	}
	rd.Close()
	s.Abandon() // its client left
	r.empty()
	if r.store.deletes.Load() != 0 {
		t.Error("the store was asked to delete what it never had")
	}
}

func TestStoreOutOfReachAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		for range 100 {
			r.open()
		}
		r.store.hang.Store(true)
		begin := time.Now()
		r.m.Close()
		if d := time.Since(begin); d > 2*storeTimeout {
			t.Errorf("took %v", d)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		s, _ := r.open()
		own, _ := s.Listen()
		rd, k := r.call(s, 1, TakesBoth)
		done := make(chan time.Duration)
		go func() {
			begin := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			r.m.Drain(ctx)
			done <- time.Since(begin)
		}()
		synctest.Wait()
		if _, _, err := r.m.Open(r.b, "p", TakesJSON, request(1, "initialize")); !errors.Is(err, ErrDraining) {
			t.Errorf("new session: %v", err)
		}
		if got := drain(own); got != ErrDraining.Error() {
			t.Errorf("own stream: %s", got)
		}
		own.Close()
		time.Sleep(10 * time.Second)
		k.answer(`{}`)
		if d := <-done; d != 10*time.Second {
			t.Errorf("drained for %v", d)
		}
		if got := drain(rd); !strings.HasSuffix(got, "over") {
			t.Errorf("the call: %s", got)
		}
		rd.Close()
	})
}

func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		s, _ := r.open()
		last, stuck := r.call(s, 2, TakesBoth)
		defer last.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		r.m.Drain(ctx)
		r.m.Close()
		if stuck.take() {
			t.Error("the call outlives the manager")
		}
	})
}
