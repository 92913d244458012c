package live

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Clients that call, leave, resume, listen and delete, a server that answers,
// fails and ends at any moment: every table agrees at the end, and each call
// was ended once.
func TestEverythingAtOnce(t *testing.T) {
	r := newRig(t, func(l *Limits) {
		l.MaxSessions, l.MaxDetached, l.KeptStreams, l.QueueEvents, l.LogEvents, l.WaitingEvents = 1000, 2, 2, 8, 4, 4
		l.SessionLogBytes, l.AllLogBytes = 2000, 20_000
	})
	var calls sync.WaitGroup
	r.srv.onCall = func(k *fakeCall) { calls.Go(func() { serve(k) }) }
	var clients sync.WaitGroup
	for range 20 {
		clients.Go(func() {
			s, first, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize"))
			if err != nil {
				t.Error(err)
				return
			}
			first.Close()
			if err := s.Register(t.Context()); err != nil {
				t.Error(err)
			}
			var users sync.WaitGroup
			for range 4 {
				users.Go(func() { use(s) })
			}
			users.Wait()
			if rand.N(2) == 0 {
				s.Delete()
			}
		})
	}
	clients.Wait()
	calls.Wait()
	r.check()
}

// serve is the server's side of one call.
func serve(k *fakeCall) {
	for range rand.N(20) {
		k.deliver(progressText, upstream.Relation(2+rand.N(2)))
	}
	k.conn.tell(toolsChanged, upstream.Relation(3+rand.N(2)))
	switch rand.N(60) {
	case 0:
		k.conn.End(upstream.ErrTimeout)
	case 1, 2, 3:
		k.fail(upstream.ErrCancelled)
	default:
		k.answer(`{"text":"hello"}`)
	}
}

// use is one client of a session, until it is over.
func use(s *Session) {
	for range 60 {
		var rd *Reader
		var err error
		if rand.N(4) == 0 {
			rd, err = s.Listen()
		} else {
			rd, err = s.Call(Takes(rand.N(3)), []upstream.Request{request(1, "x"), request(1, "y")})
		}
		if err != nil {
			return
		}
		follow(rd, rand.N(2) == 0)
		rd.Close()
		if rand.N(3) > 0 {
			continue
		}
		if rd, err = s.Resume(rd.EventID(rand.Uint64N(4))); err == nil {
			follow(rd, false)
			rd.Close()
		}
	}
}

// follow fetches some of what comes.
func follow(rd *Reader, keep bool) {
	if keep {
		rd.Keep()
	}
	var pos uint64
	for range 1 + rand.N(5) {
		events, over, err := rd.Take(nil)
		for _, e := range events {
			if pos != 0 && e.Seq != pos+1 {
				panic("events out of order")
			}
			pos = e.Seq
		}
		if over || err != nil {
			return
		}
	}
}
