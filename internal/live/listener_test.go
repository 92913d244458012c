package live

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const initializedText = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func TestServerHearsWhetherTheOwnStreamIsRead(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.QueueEvents = 1 })
	s, conn := r.open()
	hears := func(when, want string) {
		t.Helper()
		if got := conn.hears(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
		conn.mu.Lock()
		conn.heard = nil
		conn.mu.Unlock()
	}
	rd, k := r.call(s, 1, TakesBoth)
	k.answer(`{}`)
	rd.Close()
	hears("a call", "[]")
	first, _ := s.Listen()
	hears("listen", "[true]")
	second, _ := s.Listen()
	first.Close()
	hears("taken over", "[]")
	second.Keep()
	id := second.EventID(0)
	second.Close()
	second.Close()
	hears("closed", "[false]")
	again, err := s.Resume(id)
	if err != nil {
		t.Fatal(err)
	}
	hears("resumed", "[true]")
	for range 2 {
		conn.tell(customText, upstream.Loose)
	}
	hears("cut off", "[false]")
	again.Close()
	hears("closed after that", "[]")
	last, _ := s.Listen()
	defer last.Close()
	s.Delete()
	hears("ended", "[true false]")
	if _, err := s.Listen(); !errors.Is(err, ErrNotFound) {
		t.Errorf("listen after the end: %v", err)
	}
	hears("after the end", "[]")
}

func TestLegacySessionListensOnceInitialized(t *testing.T) {
	r := newRig(t, nil)
	s, rd := r.legacy()
	conn := r.srv.last()
	if got := conn.hears(); got != "[]" {
		t.Errorf("before the handshake: %s", got)
	}
	conn.sendErr = upstream.ErrBusy
	if err := s.Send(message(initializedText)); !errors.Is(err, upstream.ErrBusy) || conn.hears() != "[]" {
		t.Errorf("not sent: %v, %s", err, conn.hears())
	}
	conn.sendErr = nil
	conn.onListen = func(on bool) {
		if on && len(conn.sent) != 2 {
			t.Error("it listens before the server knows that the client is ready")
		}
	}
	for range 2 {
		if err := s.Send(message(initializedText)); err != nil {
			t.Fatal(err)
		}
	}
	if got := conn.hears(); got != "[true]" {
		t.Errorf("after it: %s", got)
	}
	rd.Close()
	s.HungUp(nil)
	if got := conn.hears(); got != "[true false]" {
		t.Errorf("hung up: %s", got)
	}
}

// While the connection is still hearing the one, the reader leaves: the one who
// talks to it says so next, and nobody waits for him.
func TestListenersLeaveWhileTheServerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		s, conn := r.open()
		hold := make(chan struct{})
		conn.onListen = func(on bool) {
			if on {
				<-hold
			}
		}
		got := make(chan *Reader, 1)
		go func() {
			rd, _ := s.Listen()
			got <- rd
		}()
		synctest.Wait()
		second, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		second.Close()
		if heard := conn.hears(); heard != "[]" {
			t.Errorf("two talk at once: %s", heard)
		}
		close(hold)
		(<-got).Close()
		if heard := conn.hears(); heard != "[true false]" {
			t.Errorf("heard %s", heard)
		}
	})
}

func TestListenersComeAndGo(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.QueueEvents = 2 })
	s, conn := r.open()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				rd, err := s.Listen()
				if err != nil {
					t.Error(err)
					return
				}
				conn.tell(customText, upstream.Loose)
				if rand.N(2) == 0 {
					drain(rd)
				}
				rd.Close()
			}
		})
	}
	all.Wait()
	conn.mu.Lock()
	defer conn.mu.Unlock()
	for i, on := range conn.heard {
		if on != (i%2 == 0) {
			t.Fatalf("word %d was %v", i, on)
		}
	}
	if len(conn.heard)%2 != 0 {
		t.Error("it listens on for nobody")
	}
}

func TestRecordKeepsTheServersState(t *testing.T) {
	r := newRig(t, nil)
	want := upstream.State{Address: "http://one:80", Session: "theirs", Revision: "2025-03-26"}
	r.srv.onOpen = func(c *fakeConn) error {
		c.state = want
		c.init.answer(acceptedResult)
		return nil
	}
	s, _ := r.open()
	rec, err := r.mem.Get(t.Context(), session.Key{Server: "srv", ID: s.ID()})
	if err != nil {
		t.Fatal(err)
	}
	if got := (upstream.State{Address: rec.Upstream, Session: rec.UpstreamSession, Revision: rec.UpstreamRevision}); !reflect.DeepEqual(got, want) || rec.Revision != "2025-11-25" {
		t.Errorf("record: %+v, revision %s", got, rec.Revision)
	}
}
