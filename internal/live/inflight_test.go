package live

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// However a call ends, it gives back one place, and nobody gets more places
// than there are.
func TestPlacesInFlight(t *testing.T) {
	limits := map[string]struct {
		set  func(l *Limits)
		want error
	}{
		"in all":       {func(l *Limits) { l.AllCalls = 2 }, ErrAllCalls},
		"of principal": {func(l *Limits) { l.PrincipalCalls = 2 }, ErrPrincipalCalls},
	}
	ends := map[string]func(s *Session, k *fakeCall){
		"answered":  func(_ *Session, k *fakeCall) { k.answer(`{}`) },
		"refused":   func(_ *Session, k *fakeCall) { k.refuse() },
		"failed":    func(_ *Session, k *fakeCall) { k.fail(upstream.ErrTimeout) },
		"cancelled": func(_ *Session, k *fakeCall) { k.Cancel(upstream.ErrCancelled) },
		"lost":      func(_ *Session, k *fakeCall) { k.fail(upstream.ErrLost) },
		"answered, but not ended": func(_ *Session, k *fakeCall) {
			k.deliver(`{"jsonrpc":"2.0","id":1,"result":{}}`, upstream.Reply)
		},
	}
	for limit, l := range limits {
		for end, finish := range ends {
			t.Run(limit+"/"+end, func(t *testing.T) {
				r := newRig(t, l.set)
				s, _ := r.open() // initialize has given its place back
				other, _ := r.open()
				first, k := r.call(s, 1, TakesBoth)
				defer first.Close()
				second, k2 := r.call(other, 2, TakesBoth)
				defer second.Close()
				r.full(s, l.want)
				finish(s, k)
				third, k3 := r.call(s, 3, TakesBoth)
				defer third.Close()
				r.full(s, l.want) // one place came back, not two
				k.fail(upstream.ErrClosed)
				r.full(s, l.want)
				k2.answer(`{}`)
				k3.answer(`{}`)
			})
		}
	}
}

// full fails the test unless everything that needs a place is refused.
func (r *rig) full(s *Session, want error) {
	r.t.Helper()
	if _, err := s.Call(TakesBoth, []upstream.Request{request(9, "x")}); !errors.Is(err, want) {
		r.t.Errorf("a call: %v", err)
	}
	if err := s.CallOnOwn(request(9, "x")); !errors.Is(err, want) {
		r.t.Errorf("a call on the own stream: %v", err)
	}
	if _, _, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize")); !errors.Is(err, want) {
		r.t.Errorf("initialize: %v", err)
	}
	l, rd, err := r.m.OpenLegacy(r.t.Context(), r.b, "p")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := l.Initialize(request(1, "initialize")); !errors.Is(err, want) {
		r.t.Errorf("initialize of the old transport: %v", err)
	}
	l.HungUp(nil)
	rd.Close()
	if rd, err := s.Call(TakesBoth, nil, []byte(`{}`)); err != nil { // a batch without requests
		r.t.Errorf("no call: %v", err)
	} else {
		rd.Close()
	}
}

// Calls of one principal do not take the places of another.
func TestPlacesOfPrincipals(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.PrincipalCalls = 1 })
	s, _ := r.open()
	rd, k := r.call(s, 1, TakesBoth)
	defer rd.Close()
	o, ord, err := r.m.Open(r.b, "q", TakesBoth, request(1, "initialize"))
	if err != nil {
		t.Fatal(err)
	}
	ord.Close()
	reqs := []upstream.Request{request(1, "x"), request(2, "y")}
	if _, err := o.Call(TakesBoth, reqs); !errors.Is(err, ErrPrincipalCalls) {
		t.Errorf("two at once: %v", err)
	}
	ord2, k2 := r.call(o, 3, TakesBoth)
	defer ord2.Close()
	k2.answer(`{}`)
	k.answer(`{}`)
}

// A place is given back where nothing was begun.
func TestPlacesOfWhatFails(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.AllCalls, l.PrincipalCalls, l.MaxSessions = 1, 1, 2 })
	s, c := r.open()
	c.startErr = upstream.ErrBusy
	for range 3 {
		rd, err := s.Call(TakesBoth, []upstream.Request{request(1, "x")})
		if err != nil {
			t.Fatal(err)
		}
		rd.Close()
	}
	c.startErr = nil
	r.srv.onOpen = func(*fakeConn) error { return upstream.ErrTooMany }
	for range 3 { // the server cannot be started
		if _, _, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize")); !errors.Is(err, upstream.ErrTooMany) {
			t.Fatal(err)
		}
	}
	r.srv.onOpen = nil
	r.open()
	for range 3 { // no more sessions
		if _, _, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize")); !errors.Is(err, ErrSessionLimit) {
			t.Fatal(err)
		}
	}
	rd, _ := r.call(s, 1, TakesBoth)
	rd.Close()
	s.Delete() // with a call that its client left
	if n := r.m.places.used.Load(); n != 0 {
		t.Errorf("%d places taken", n)
	}
}

// The oldest of too many calls whose clients left is ended, and its place is
// free.
func TestPlacesOfAbandonedCalls(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.AllCalls, l.MaxDetached = 3, 2 })
	s, _ := r.open()
	for i := range 5 {
		rd, _ := r.call(s, i, TakesBoth)
		rd.Close()
	}
	if n := r.m.places.used.Load(); n != 2 {
		t.Errorf("%d places taken", n)
	}
}

// Many at once never hold more places than there are, and all come back.
func TestPlacesUnderLoad(t *testing.T) {
	const most, mostOf = 5, 3
	f := newInFlight(&Limits{AllCalls: most, PrincipalCalls: mostOf})
	var all atomic.Int64
	var of [3]atomic.Int64
	var got [3]atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		who := i % len(of)
		wg.Go(func() {
			name := string(rune('a' + who))
			for n := range 2000 {
				n = 1 + n%2
				if f.take(name, n) != nil {
					continue
				}
				got[who].Add(1)
				if v := all.Add(int64(n)); v > most {
					t.Errorf("%d in all", v)
				}
				if v := of[who].Add(int64(n)); v > mostOf {
					t.Errorf("%d of one principal", v)
				}
				of[who].Add(int64(-n))
				all.Add(int64(-n))
				for range n {
					f.give(name)
				}
			}
		})
	}
	wg.Wait()
	if f.used.Load() != 0 || len(f.of) != 0 {
		t.Errorf("left: %d, %v", f.used.Load(), f.of)
	}
	for who := range got {
		if got[who].Load() == 0 {
			t.Errorf("principal %d got no place", who)
		}
	}
}

// A client that has its answer may make the next call, although the first is not
// quite over here.
func TestPlaceIsFreeWithTheAnswer(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.MaxCalls = 1 })
	s, _ := r.open()
	rd, first := r.call(s, 2, TakesBoth)
	defer rd.Close()
	if _, err := s.Call(TakesBoth, []upstream.Request{request(3, "tools/call")}); err != ErrCalls {
		t.Errorf("a call beside the one that there may be: %v", err)
	}
	first.deliver(`{"jsonrpc":"2.0","id":2,"result":{}}`, upstream.Reply)
	second, next := r.call(s, 4, TakesBoth)
	defer second.Close()
	first.fail(nil) // ends it
	if _, err := s.Call(TakesBoth, []upstream.Request{request(5, "tools/call")}); err != ErrCalls {
		t.Errorf("a place was given back twice: %v", err)
	}
	next.answer(`{}`)
}
