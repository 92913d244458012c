package live

import (
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestTooManyDetachedCallsCancelTheOldest(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.MaxDetached = 3 })
	s, _ := r.open()
	var calls []*fakeCall
	var ids []string
	for i := range 10 {
		id, k := r.streamed(s, i)
		calls, ids = append(calls, k), append(ids, id)
		open := 0
		for _, k := range calls {
			if k.why() == nil {
				open++
			}
		}
		if open > 3 {
			t.Fatalf("%d abandoned calls are open", open)
		}
	}
	if calls[6].why() == nil || calls[7].why() != nil {
		t.Errorf("not the oldest were cancelled")
	}
	if got := r.resume(s, ids[6]); !strings.Contains(got, `"reason":"abandoned"`) {
		t.Errorf("a cancelled call says %s", got)
	}
	// One that is being read again does not count.
	rd, err := s.Resume(ids[7])
	if err != nil {
		t.Fatal(err)
	}
	_, k := r.streamed(s, 11)
	for _, k := range append(calls[7:], k) {
		if err := k.why(); err != nil {
			t.Errorf("call %s: %v", k.id, err)
		}
	}
	rd.Close()
}

// A reader that was cut off has left, too.
func TestCutOffReadersCountAsDetached(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.MaxDetached = 1; l.QueueEvents = 1 })
	s, _ := r.open()
	var calls []*fakeCall
	for i := range 3 {
		rd, k := r.call(s, i, TakesBoth)
		k.deliver(customText, upstream.Own)
		k.deliver(customText, upstream.Own)
		if got := drain(rd); got != ErrTooSlow.Error() {
			t.Fatalf("reader: %s", got)
		}
		rd.Close()
		calls = append(calls, k)
	}
	if calls[0].why() == nil || calls[1].why() == nil || calls[2].why() != nil {
		t.Errorf("cancelled: %v, %v, %v", calls[0].why(), calls[1].why(), calls[2].why())
	}
}

func TestKeptStreamsAreBounded(t *testing.T) {
	for name, change := range map[string]func(*Limits){
		"count": func(l *Limits) { l.KeptStreams = 3 },
		"bytes": func(l *Limits) { l.SessionLogBytes = 3 * 1050 },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, change)
			s, _ := r.open()
			var ids []string
			for i := range 8 {
				id, k := r.streamed(s, i)
				k.answer(`"` + strings.Repeat("x", 1000) + `"`)
				ids = append(ids, id)
			}
			for i, id := range ids {
				rd, err := s.Resume(id)
				if held := err == nil; held != (i >= 5) {
					t.Errorf("stream %d is held: %v", i, held)
				}
				if err == nil {
					rd.Close()
				}
			}
			s.mu.Lock()
			if len(s.streams) != 3 {
				t.Errorf("%d streams in the table", len(s.streams))
			}
			s.mu.Unlock()
		})
	}
}

func TestStreamWithoutEventIDIsNotKept(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	for i := range 5 {
		rd, k := r.call(s, i, TakesBoth)
		k.answer(`{}`)
		rd.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.streams) != 0 || s.logged != 0 {
		t.Errorf("%d streams with %d bytes are kept", len(s.streams), s.logged)
	}
}
