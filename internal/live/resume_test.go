package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// streamed starts a call whose client got the first event id and left.
func (r *rig) streamed(s *Session, id int) (eventID string, k *fakeCall) {
	rd, k := r.call(s, id, TakesBoth)
	rd.Keep()
	eventID = rd.EventID(rd.Position())
	rd.Close()
	return eventID, k
}

func (r *rig) resume(s *Session, id string) string {
	r.t.Helper()
	rd, err := s.Resume(id)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rd.Close()
	got := drain(rd)
	drain(rd) // the events were written
	return got
}

func TestDetachedCallIsFetchedLater(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	id, k := r.streamed(s, 4)
	k.deliver(progressText, upstream.Own)
	if err := k.why(); err != nil {
		t.Fatalf("leaving was taken for a cancel: %v", err)
	}
	k.answer(`{"x":1}`)
	want := "1 " + progressText + "\n2 " + `{"jsonrpc":"2.0","id":4,"result":{"x":1}}` + "\nover"
	for range 3 {
		if got := r.resume(s, id); got != want {
			t.Errorf("resumed: %s", got)
		}
	}
}

// Progress gives way, so that the reply can still be reached from the position
// that the client has.
func TestDetachedCallWithMuchProgressKeepsItsReply(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.WaitingEvents = 10 })
	s, _ := r.open()
	id, k := r.streamed(s, 4)
	taken := 0
	for range 1000 {
		if k.deliver(progressText, upstream.Own) == upstream.Taken {
			taken++
		}
	}
	k.answer(`{}`)
	got := r.resume(s, id)
	if taken != 10 || strings.Count(got, "\n") != 11 || !strings.Contains(got, `"id":4`) {
		t.Errorf("%d taken; resumed: %s", taken, got)
	}
}

func TestLargeReplyWaitsForItsClient(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.SessionLogBytes = 1000; l.LogBytes = 1000 })
	s, _ := r.open()
	large := `"` + strings.Repeat("x", 5000) + `"`
	id, k := r.streamed(s, 4)
	k.answer(large)
	// It is fetched, and the connection breaks before it is written.
	rd, err := s.Resume(id)
	if err != nil {
		t.Fatal(err)
	}
	drain(rd)
	rd.Close()
	if got := r.resume(s, id); !strings.Contains(got, large) {
		t.Errorf("second try: %.100s", got)
	}
	// It was written: now the bounds count.
	if _, err := s.Resume(id); !errors.Is(err, ErrPosition) {
		t.Errorf("after it was read: %v", err)
	}
}

func TestResumeOfAnOpenCallGoesOnLive(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	rd, k := r.call(s, 4, TakesBoth)
	rd.Keep()
	k.deliver(progressText, upstream.Own)
	drain(rd)
	id := rd.EventID(1)
	again, err := s.Resume(id) // before the first has left
	if err != nil {
		t.Fatal(err)
	}
	if got := drain(rd); got != ErrTakenOver.Error() {
		t.Errorf("first: %s", got)
	}
	rd.Close()
	if got := drain(again); got != "" {
		t.Errorf("replayed: %s", got)
	}
	k.answer(`{}`)
	if got := drain(again); !strings.HasPrefix(got, "2 ") || !strings.HasSuffix(got, "over") {
		t.Errorf("live: %s", got)
	}
	again.Close()
}

func TestResumeOfTheOwnStream(t *testing.T) {
	r := newRig(t, nil)
	s, conn := r.open()
	rd, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	rd.Keep()
	start := rd.EventID(rd.Position())
	var want []string
	for i := range 4 {
		text := fmt.Sprintf(`{"jsonrpc":"2.0","method":"x","params":[%d]}`, i)
		conn.tell(text, upstream.Loose)
		want = append(want, fmt.Sprint(i+1, " ", text))
	}
	drain(rd)
	second := rd.EventID(2)
	rd.Close()
	for range 2 {
		if got := r.resume(s, start); got != strings.Join(want, "\n") {
			t.Errorf("from the start: %s", got)
		}
		if got := r.resume(s, second); got != strings.Join(want[2:], "\n") {
			t.Errorf("from 2: %s", got)
		}
	}
	rd, _ = s.Listen()
	if got := drain(rd); got != "" {
		t.Errorf("a new stream repeats: %s", got)
	}
	rd.Close()
}

func TestEventIDsOfOthersAreRefused(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	id, k := r.streamed(s, 1)
	otherID, otherK := r.streamed(s, 2)
	defer k.answer(`{}`)
	defer otherK.answer(`{}`)
	n, rest, _ := strings.Cut(id, ".")
	seq, mac, _ := strings.Cut(rest, ".")
	otherN, _, _ := strings.Cut(otherID, ".")
	foreign, _ := r.open()
	own, _ := s.Listen()
	defer own.Close()
	for name, bad := range map[string]string{
		"empty":               "",
		"no parts":            "x",
		"two parts":           n + "." + seq,
		"truncated":           id[:len(id)-1],
		"longer":              id + "A",
		"other stream":        otherN + "." + seq + "." + mac,
		"own stream":          "0." + seq + "." + mac,
		"not a number":        "_." + seq + "." + mac,
		"negative":            n + ".-1." + mac,
		"too far":             n + ".zzz." + mac,
		"huge":                n + ".zzzzzzzzzzzzzzzzzzzzzzzz." + mac,
		"unknown stream":      "zz." + seq + "." + s.m.streamMAC("srv", s.ID(), "", 35*36+35),
		"a server's event id": "17",
	} {
		if _, err := s.Resume(bad); !errors.Is(err, ErrPosition) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := foreign.Resume(id); !errors.Is(err, ErrPosition) {
		t.Errorf("other session: %v", err)
	}
	s.Delete()
	if _, err := s.Resume(id); !errors.Is(err, ErrNotFound) {
		t.Errorf("ended session: %v", err)
	}
}

func FuzzEventID(f *testing.F) {
	r := newRig(f, nil)
	s, _ := r.open()
	rd, k := r.call(s, 1, TakesBoth)
	rd.Keep()
	for range 3 {
		k.deliver(progressText, upstream.Own)
	}
	drain(rd)
	good := map[string]bool{}
	for seq := range uint64(4) {
		good[rd.EventID(seq)] = true
		f.Add(rd.EventID(seq))
	}
	f.Add(rd.EventID(4))
	f.Add("0.0.")
	f.Add("1.2.AAAAAAAAAAAA")
	rd.Close()
	_, mac, _ := strings.Cut(rd.EventID(0)[2:], ".") // initialize had stream 1
	f.Fuzz(func(t *testing.T, id string) {
		rd, err := s.Resume(id)
		if err != nil {
			if good[id] || !errors.Is(err, ErrPosition) {
				t.Errorf("%q: %v", id, err)
			}
			return
		}
		// Numbers may be spelled in other ways; the stream is still the one that
		// the code stands for.
		if !strings.HasSuffix(id, "."+mac) || rd.st.n != 2 || rd.Position() > 3 {
			t.Errorf("%q was taken", id)
		}
		rd.Close()
	})
}

// The owner check comes first where ids are guessed, but not for a client with
// two sessions: what is of one must not pass in the other.
func TestEventIDOfASiblingSessionIsRefused(t *testing.T) {
	r := newRig(t, nil)
	a, _ := r.open()
	b, _ := r.open()
	for _, s := range []*Session{a, b} {
		id, k := r.streamed(s, 1)
		k.deliver(progressText, upstream.Own)
		defer k.answer(`{}`)
		if n, _, _ := strings.Cut(id, "."); n != "2" {
			t.Fatalf("the call has stream %s", n)
		}
		own, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		ownID := own.EventID(0)
		own.Close()
		other := a
		if s == a {
			other = b
		}
		for _, id := range []string{id, ownID} {
			if _, err := other.Resume(id); !errors.Is(err, ErrPosition) {
				t.Errorf("%s in the other session: %v", id, err)
			}
			rd, err := s.Resume(id)
			if err != nil {
				t.Fatal(err)
			}
			rd.Close()
		}
	}
}

// Writing an event must not wait for the session, nor compute a code again.
func TestEventIDIsCheap(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	rd, k := r.call(s, 1, TakesBoth)
	defer rd.Close()
	defer k.answer(`{}`)
	first := rd.EventID(7)
	s.mu.Lock()
	done := make(chan string)
	go func() { done <- rd.EventID(7) }()
	select {
	case again := <-done:
		if again != first {
			t.Errorf("%s, then %s", first, again)
		}
	case <-time.After(10 * time.Second):
		t.Error("EventID waits for the session's mutex")
	}
	s.mu.Unlock()
	if n := testing.AllocsPerRun(100, func() { rd.EventID(7) }); n > 2 {
		t.Errorf("%v allocations", n)
	}
}
