package live

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func TestSessionLimitsHoldUnderLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Limits)
		want   error
	}{
		{"in all", func(l *Limits) { l.MaxSessions = 10 }, ErrSessionLimit},
		{"of one principal", func(l *Limits) { l.MaxPerPrincipal = 10 }, ErrPrincipalLimit},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, c.change)
			begin := make(chan struct{})
			r.srv.onOpen = func(k *fakeConn) error { <-begin; k.init.answer(acceptedResult); return nil }
			var wg sync.WaitGroup
			var refused atomic.Int64
			for range 200 {
				wg.Go(func() {
					s, rd, err := r.m.Open(r.b, "p", TakesJSON, request(1, "initialize"))
					if err != nil {
						if !errors.Is(err, c.want) {
							t.Error(err)
						}
						if refused.Add(1) == 190 {
							close(begin) // the others hold their slots until here
						}
						return
					}
					rd.Close()
					_ = s.Register(t.Context())
				})
			}
			wg.Wait()
			if n := refused.Load(); n != 190 {
				t.Errorf("%d of 200 refused, want 190", n)
			}
			if c.want == ErrPrincipalLimit {
				s, rd, err := r.m.Open(r.b, "another", TakesJSON, request(1, "initialize"))
				if err != nil {
					t.Fatal("another principal is refused:", err)
				}
				rd.Close()
				s.Delete()
			}
			r.m.mu.Lock()
			all := r.m.listLocked()
			r.m.mu.Unlock()
			for _, s := range all {
				s.Delete()
			}
			for range 10 {
				r.open()
			}
		})
	}
}

func TestFailedStartsLeaveNothing(t *testing.T) {
	r := newRig(t, nil)
	cause := upstream.Errorf(-32603, "start_failed", "no such file")
	for name, open := range map[string]func(c *fakeConn) error{
		"Open fails":                      func(*fakeConn) error { return cause },
		"Open fails after events' End":    func(c *fakeConn) error { c.events.End(cause); return cause },
		"refused":                         func(c *fakeConn) error { c.init.refuse(); return nil },
		"ends without an answer":          func(c *fakeConn) error { c.init.fail(cause); return nil },
		"connection ends":                 func(c *fakeConn) error { c.End(cause); return nil },
		"the server answers with rubbish": func(c *fakeConn) error { c.init.answer(`{}`); c.End(cause); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			r.srv.onOpen = open
			s, rd, err := r.m.Open(r.b, "p", TakesBoth, request(9, "initialize"))
			if strings.HasPrefix(name, "Open fails") {
				if !errors.Is(err, cause) {
					t.Errorf("got %v", err)
				}
			} else {
				if got := drain(rd); !strings.HasPrefix(got, `1 {"jsonrpc":"2.0","id":9,`) || !strings.HasSuffix(got, "over") {
					t.Errorf("got %s", got)
				}
				rd.Keep() // as a handler would that had opened the stream
				rd.Close()
				if s.Revision() != "" {
					t.Errorf("revision %s", s.Revision())
				}
				if c := r.srv.last(); c.endedWith() == nil {
					t.Error("the connection is still open")
				}
			}
			r.empty()
		})
	}
}

func TestClientLeavesDuringInitialize(t *testing.T) {
	r := newRig(t, nil)
	r.srv.onOpen = func(*fakeConn) error { return nil }
	s, rd, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize"))
	if err != nil {
		t.Fatal(err)
	}
	s.Abandon()
	rd.Close()
	c := r.srv.last()
	if c.endedWith() != nil {
		t.Error("the start was broken off")
	}
	r.m.mu.Lock()
	slots := r.m.slots
	r.m.mu.Unlock()
	if slots != 1 {
		t.Error("its slot is free while the server starts for it")
	}
	c.init.answer(acceptedResult)
	if c.endedWith() == nil {
		t.Error("the session lives on")
	}
	r.empty()
}

// A start that opened its stream early has handed out the id; when it fails,
// the id is gone.
func TestEarlyIDIsGoneAfterAFailedStart(t *testing.T) {
	r := newRig(t, nil)
	r.srv.onOpen = func(*fakeConn) error { return nil }
	s, rd, err := r.m.Open(r.b, "p", TakesSSE, request(1, "initialize"))
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	if err := s.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.m.Find(t.Context(), r.b, session.Streamable, s.ID(), "p"); err != nil {
		t.Errorf("early: %v", err)
	}
	r.srv.last().init.fail(upstream.ErrTimeout)
	if got := drain(rd); !strings.Contains(got, `"timeout"`) || !strings.HasSuffix(got, "over") {
		t.Errorf("stream: %s", got)
	}
	if _, err := r.m.Find(t.Context(), r.b, session.Streamable, s.ID(), "p"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after the failure: %v", err)
	}
}

func TestFindTellsNothing(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	l, rd := r.legacy()
	defer l.HungUp(nil)
	defer rd.Close()
	other := &Backend{Name: "other", Server: r.srv}
	for name, find := range map[string]func() (*Session, error){
		"unknown id":        func() (*Session, error) { return r.m.Find(t.Context(), r.b, session.Streamable, "x", "p") },
		"foreign principal": func() (*Session, error) { return r.m.Find(t.Context(), r.b, session.Streamable, s.ID(), "q") },
		"foreign server":    func() (*Session, error) { return r.m.Find(t.Context(), other, session.Streamable, s.ID(), "p") },
		"foreign transport": func() (*Session, error) { return r.m.Find(t.Context(), r.b, session.LegacySSE, s.ID(), "p") },
		"legacy id as streamable": func() (*Session, error) {
			return r.m.Find(t.Context(), r.b, session.Streamable, l.ID(), "p")
		},
	} {
		if _, err := find(); err != ErrNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	r.store.down.Store(true)
	defer r.store.down.Store(false)
	if _, err := r.m.Find(t.Context(), r.b, session.Streamable, "x", "p"); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("store out of reach: %v", err)
	}
	if _, err := r.m.Find(t.Context(), r.b, session.Streamable, s.ID(), "p"); err != nil {
		t.Errorf("a session that lives here needs no store: %v", err)
	}
}

func TestStoreOutOfReachAtInitialize(t *testing.T) {
	r := newRig(t, nil)
	r.store.down.Store(true)
	s, rd, err := r.m.Open(r.b, "p", TakesJSON, request(1, "initialize"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Register(t.Context()); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("register: %v", err)
	}
	rd.Close()
	if r.srv.last().endedWith() == nil {
		t.Error("the connection is still open")
	}
	if _, _, err := r.m.OpenLegacy(t.Context(), r.b, "p"); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("legacy: %v", err)
	}
	r.empty()
}

func TestTooManyCalls(t *testing.T) {
	r := newRig(t, func(l *Limits) { l.MaxCalls = 2 })
	s, _ := r.open()
	a, ak := r.call(s, 1, TakesBoth)
	b, bk := r.call(s, 1, TakesBoth)
	if _, err := s.Call(TakesBoth, []upstream.Request{request(1, "x")}); !errors.Is(err, ErrCalls) {
		t.Errorf("third: %v", err)
	}
	ak.answer(`"a"`)
	if got := drain(b); got != "" {
		t.Errorf("the other call of this id: %s", got)
	}
	bk.answer(`"b"`)
	if got := drain(a) + drain(b); !strings.Contains(got, `"a"`) || !strings.Contains(got, `"b"`) {
		t.Errorf("got %s", got)
	}
	a.Close()
	b.Close()
}
