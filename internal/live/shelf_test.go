package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

var kilobyte = `"` + strings.Repeat("x", 1000) + `"`

// Many sessions whose clients never come back for their answers.
func TestUnfetchedAnswersGiveWay(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.AllLogBytes = 10_500 })
	var sessions []*Session
	var ids []string
	for range 30 {
		s, _ := r.open()
		id, k := r.streamed(s, 1)
		k.answer(kilobyte)
		sessions, ids = append(sessions, s), append(ids, id)
		if n := r.m.cfg.Metrics.logged.Load(); n > 10_500 {
			t.Fatalf("%d bytes held", n)
		}
		r.check()
	}
	for i, s := range sessions {
		rd, err := s.Resume(ids[i])
		if i < 20 && !errors.Is(err, ErrPosition) {
			t.Errorf("answer %d: %v", i, err)
		}
		if i >= 22 { // each is a little larger than a kilobyte
			if err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
			if got := drain(rd); !strings.Contains(got, kilobyte) {
				t.Errorf("answer %d: %.100s", i, got)
			}
		}
		if err == nil {
			rd.Close()
		}
	}
	if n := r.metric("signalbox_answers_given_up_total"); n < 20 || n > 22 {
		t.Errorf("counted %v answers given up", n)
	}
}

func TestWhatIsBeingReadNeverGivesWay(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.AllLogBytes = 5000 })
	s, _ := r.open()
	other, _ := r.open()
	read, k := r.call(s, 1, TakesBoth)
	id, kept := r.streamed(other, 1)
	kept.answer(kilobyte)
	k.answer(`"` + strings.Repeat("y", 20_000) + `"`)
	if _, err := other.Resume(id); !errors.Is(err, ErrPosition) {
		t.Errorf("the other's answer: %v", err)
	}
	for range 3 {
		_, k := r.streamed(other, 2)
		k.answer(kilobyte)
	}
	if got := drain(read); !strings.Contains(got, "yyy") || !strings.HasSuffix(got, "over") {
		t.Errorf("got %.100s", got)
	}
	read.Close()
	// One that comes back in time reads it.
	id, k = r.streamed(other, 3)
	k.answer(kilobyte)
	again, err := other.Resume(id)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for range 10 {
		_, k := r.streamed(s, 4)
		k.answer(kilobyte)
	}
	if got := drain(again); !strings.Contains(got, kilobyte) {
		t.Errorf("resumed: %.100s", got)
	}
}

// What a client has had goes before what one has not, however old that is.
func TestWhatWasReadGivesWayFirst(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.AllLogBytes = 5500 })
	s, _ := r.open()
	old, k := r.streamed(s, 1)
	k.answer(kilobyte)
	other, _ := r.open()
	var had []string
	for i := range 4 {
		id, k := r.streamed(other, i)
		k.answer(kilobyte)
		r.resume(other, id)
		had = append(had, id)
	}
	for range 3 {
		_, k := r.streamed(s, 2)
		k.answer(kilobyte)
	}
	for i, id := range had {
		rd, err := other.Resume(id)
		if (err == nil) != (i == 3) {
			t.Errorf("read answer %d: %v", i, err)
		}
		if err == nil {
			rd.Close()
		}
	}
	if got := r.resume(s, old); !strings.Contains(got, kilobyte) {
		t.Errorf("the oldest, which nobody has had: %.100s", got)
	}
	if n := r.metric("signalbox_answers_given_up_total"); n != 0 {
		t.Errorf("counted %v answers given up", n)
	}
}

// Half of a batch is answered and its client away: what there is gives way, the
// call goes on, and its client is told that there is a gap.
func TestOpenStreamGivesWay(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.AllLogBytes = 500 })
	s, conn := r.open()
	rd, err := s.Call(TakesBoth, []upstream.Request{request(1, "x"), request(2, "y")})
	if err != nil {
		t.Fatal(err)
	}
	rd.Keep()
	id := rd.EventID(0)
	rd.Close()
	(<-conn.calls).answer(kilobyte)
	second := <-conn.calls
	if err := second.why(); err != nil {
		t.Errorf("the other call: %v", err)
	}
	if n := r.m.cfg.Metrics.logged.Load(); n != 0 {
		t.Errorf("%d bytes held", n)
	}
	if _, err := s.Resume(id); !errors.Is(err, ErrPosition) {
		t.Errorf("from the start: %v", err)
	}
	r.check()
	second.answer(`{}`)
	r.check()
}
