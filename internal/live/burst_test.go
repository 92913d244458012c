package live

import (
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const burst = 20_000

// take fetches everything and fails where the events are not one row from 1.
func takeRow(t *testing.T, rd *Reader, from uint64) []Event {
	t.Helper()
	events, _, err := rd.Take(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.Seq != from+uint64(i) {
			t.Fatalf("event %d at place %d after %d", e.Seq, i, from)
		}
	}
	return events
}

// What a server writes faster than anybody could read is dropped, where it only
// tells how something goes on; the answer comes, after what was kept.
func TestBurstCutsNobody(t *testing.T) {
	for name, text := range map[string]string{"progress": progressText, "log": logText} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			s, _ := r.open()
			rd, k := r.call(s, 7, TakesBoth)
			defer rd.Close()
			l, lrd := r.legacy()
			defer l.HungUp(nil)
			defer lrd.Close()
			if err := l.CallOnOwn(request(8, "tools/call")); err != nil {
				t.Fatal(err)
			}
			lk := <-r.srv.last().calls
			for range burst {
				for _, k := range []*fakeCall{k, lk} {
					if v := k.deliver(text, upstream.Own); v != upstream.Taken {
						t.Fatalf("verdict %v", v)
					}
				}
			}
			k.answer(`{}`)
			lk.answer(`{}`)
			for from, rd := range map[uint64]*Reader{1: rd, 2: lrd} {
				events := takeRow(t, rd, from)
				if n := len(events); n != r.m.cfg.QueueEvents+1 || !events[n-1].Reply {
					t.Errorf("%d events, the last is %s", n, events[n-1].Data)
				}
			}
			if n := r.metric("signalbox_stream_drops_total"); n != float64(2*(burst-r.m.cfg.QueueEvents)) {
				t.Errorf("counted %v drops", n)
			}
			if n := r.metric("signalbox_slow_readers_total"); n != 0 {
				t.Errorf("counted %v slow readers", n)
			}
		})
	}
}

func TestBurstOnTheOwnStream(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.QueueBytes = 10 * len(logText) })
	s, conn := r.open()
	rd, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	for range burst {
		if v := conn.tell(logText, upstream.Loose); v != upstream.Taken {
			t.Fatalf("verdict %v", v)
		}
	}
	if n := len(takeRow(t, rd, 1)); n != 10 {
		t.Errorf("%d events", n)
	}
	conn.tell(logText, upstream.Loose)
	if n := len(takeRow(t, rd, 11)); n != 1 {
		t.Errorf("%d events after it was fetched", n)
	}
}

// What cannot be dropped has room of its own, and cuts the reader off only
// where that is used up.
func TestBurstLeavesRoomForTheRest(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.QueueEvents = 10 })
	s, _ := r.open()
	rd, k := r.call(s, 7, TakesBoth)
	defer rd.Close()
	for range 10 {
		for range 100 {
			k.deliver(progressText, upstream.Own)
		}
		k.deliver(customText, upstream.Loose)
	}
	events := takeRow(t, rd, 1)
	custom := 0
	for _, e := range events {
		custom += strings.Count(string(e.Data), "custom")
	}
	if len(events) != 20 || custom != 10 {
		t.Errorf("%d events, %d of them custom", len(events), custom)
	}
	for range 11 {
		k.deliver(customText, upstream.Loose)
	}
	if got := drain(rd); got != ErrTooSlow.Error() {
		t.Errorf("got %.100s", got)
	}
	k.answer(`{}`)
}
