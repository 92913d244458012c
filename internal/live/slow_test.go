package live

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestSlowReaderIsCutOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Limits)
		size   int
		taken  int // before it is cut
	}{
		{"count", func(l *Limits) { l.QueueEvents = 10 }, 10, 10},
		{"bytes", func(l *Limits) { l.QueueBytes = 1000 }, 400, 2},
		{"one large event passes", func(l *Limits) { l.QueueBytes = 1000 }, 5000, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.change)
			s, _ := r.open()
			slow, k := r.call(s, 1, TakesBoth)
			fast, fk := r.call(s, 2, TakesBoth)
			event := `"` + strings.Repeat("x", c.size-2) + `"`
			for range c.taken + 1 {
				k.deliver(event, upstream.Own)
			}
			if got := drain(slow); got != ErrTooSlow.Error() {
				t.Errorf("slow: %.100s", got)
			}
			if n := r.metric("signalbox_slow_readers_total"); n != 1 {
				t.Errorf("counted %v slow readers", n)
			}
			fk.answer(`{}`)
			if got := drain(fast); !strings.HasSuffix(got, "over") {
				t.Errorf("the other stream: %s", got)
			}
			fast.Close()
			// It comes back and finds all, the reply included.
			id := slow.EventID(slow.Position())
			slow.Close()
			k.answer(`{}`)
			again, err := s.Resume(id)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			if got := drain(again); strings.Count(got, "\n") != c.taken+2 || !strings.HasSuffix(got, "over") {
				t.Errorf("resumed: %.300s", got)
			}
		})
	}
}

// The answer to a POST is what its client waits for, however large, and
// however much came just before it.
func TestReplyNeverCutsItsReader(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.QueueBytes = 1000; l.QueueEvents = 3 })
	s, conn := r.open()
	large := `"` + strings.Repeat("x", 100_000) + `"`
	rd, err := s.Call(TakesBoth, []upstream.Request{request(1, "a"), request(2, "b"), request(3, "c"), request(4, "d"), request(5, "e")})
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	first := <-conn.calls
	for range 3 {
		first.deliver(progressText, upstream.Own)
	}
	first.answer(large)
	for range 4 {
		(<-conn.calls).answer(large)
	}
	if got := drain(rd); strings.Count(got, `"result"`) != 5 || !strings.HasSuffix(got, "over") {
		t.Errorf("got %.200s", got)
	}
}

func TestLogOfOneStreamIsBounded(t *testing.T) {
	for name, change := range map[string]func(*Limits){
		"count": func(l *Limits) { l.LogEvents = 5 },
		"bytes": func(l *Limits) { l.LogBytes = 5 * len(progressText) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			s, _ := r.open()
			rd, k := r.call(s, 1, TakesBoth)
			rd.Keep()
			for range 20 {
				k.deliver(progressText, upstream.Own)
				drain(rd)
			}
			s.mu.Lock()
			held := len(rd.st.log)
			s.mu.Unlock()
			if held > 6 {
				t.Errorf("%d events held", held)
			}
			oldest := rd.EventID(uint64(20 - held))
			gone := rd.EventID(uint64(20-held) - 1)
			rd.Close()
			if _, err := s.Resume(gone); !errors.Is(err, ErrPosition) {
				t.Errorf("a position no longer held: %v", err)
			}
			again, err := s.Resume(oldest)
			if err != nil {
				t.Fatal(err)
			}
			k.answer(`{}`)
			if got := drain(again); strings.Count(got, "\n") != held+1 {
				t.Errorf("resumed: %s", got)
			}
			again.Close()
		})
	}
}

func TestAllLogsTogetherAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(l *Limits) { l.AllLogBytes = 10_000; l.SessionLogBytes = 1 << 20 })
		event := `"` + strings.Repeat("x", 998) + `"`
		for range 10 {
			s, _ := r.open()
			rd, k := r.call(s, 1, TakesBoth)
			rd.Keep()
			for range 10 {
				k.deliver(event, upstream.Own)
				drain(rd)
			}
			k.answer(`{}`)
			drain(rd)
			drain(rd)
			rd.Close()
		}
		if n := r.m.cfg.Metrics.logged.Load(); n > 11_000 {
			t.Errorf("%d bytes held", n)
		}
	})
}

// A legacy stream cannot be resumed: nothing is held that was fetched.
func TestLegacyStreamHoldsNothingOld(t *testing.T) {
	r := newRig(t, nil)
	s, rd := r.legacy()
	defer s.HungUp(nil)
	defer rd.Close()
	for i := range 20 {
		if err := s.CallOnOwn(request(i, "x")); err != nil {
			t.Fatal(err)
		}
		(<-r.srv.last().calls).answer(`{}`)
		drain(rd)
	}
	s.mu.Lock()
	held := len(s.own.log)
	s.mu.Unlock()
	if held > 1 {
		t.Errorf("%d events held", held)
	}
}

func TestLegacyReaderTooFarBehindIsCut(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.QueueBytes = 1000 })
	s, rd := r.legacy()
	defer s.HungUp(ErrTooSlow)
	defer rd.Close()
	large := `"` + strings.Repeat("x", 5000) + `"`
	for i := range 3 { // several large answers at once are no sign of slowness
		if err := s.CallOnOwn(request(i, "x")); err != nil {
			t.Fatal(err)
		}
		(<-r.srv.last().calls).answer(large)
	}
	if got := drain(rd); strings.Count(got, "result") != 3 {
		t.Errorf("got %.100s", got)
	}
	for i := range 4 {
		if err := s.CallOnOwn(request(i, "x")); err != nil {
			t.Fatal(err)
		}
		(<-r.srv.last().calls).answer(large)
	}
	if got := drain(rd); got != ErrTooSlow.Error() {
		t.Errorf("got %.100s", got)
	}
}

// Many events are no sign of slowness where they are fetched.
func TestReaderThatKeepsUpIsNotCut(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.QueueEvents = 2; l.QueueBytes = 3 * len(progressText) })
	s, _ := r.open()
	rd, k := r.call(s, 1, TakesBoth)
	defer rd.Close()
	for i := range 50 {
		k.deliver(progressText, upstream.Own)
		k.deliver(progressText, upstream.Own)
		if got := drain(rd); strings.Count(got, "progressToken") != 2 {
			t.Fatalf("round %d: %s", i, got)
		}
	}
	k.answer(`{}`)
}
