package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

var errCallLost = fmt.Errorf("tools/call: %w", upstream.ErrLost)

// A call that finds the session lost at the server can still be answered by an
// HTTP status, if nothing of its stream has gone out.
func TestLostSessionIsNotFound(t *testing.T) {
	for _, takes := range []Takes{TakesBoth, TakesJSON, TakesSSE} {
		r := newRig(t, nil)
		s, conn := r.open()
		rd, _ := r.call(s, 1, takes)
		if got := drain(rd); got != "" {
			t.Fatalf("early: %s", got)
		}
		batch, err := s.Call(takes, []upstream.Request{request(2, "x"), request(3, "y")})
		if err != nil {
			t.Fatal(err)
		}
		conn.End(errCallLost)
		for name, rd := range map[string]*Reader{"call": rd, "batch": batch} {
			if events, over, err := rd.Take(nil); !errors.Is(err, ErrNotFound) || len(events) != 0 || over {
				t.Errorf("%s: %d events, %v, %v", name, len(events), over, err)
			}
			rd.Close()
		}
		if _, err := s.Call(takes, []upstream.Request{request(4, "x")}); !errors.Is(err, ErrNotFound) {
			t.Errorf("next call: %v", err)
		}
		r.empty()
	}
}

func TestLostSessionOnAnOpenedStream(t *testing.T) {
	const lost = `"reason":"session_lost"`
	for name, begin := range map[string]func(*testing.T, *rig, *Session) (*Reader, *fakeCall){
		"opened": func(_ *testing.T, r *rig, s *Session) (*Reader, *fakeCall) {
			rd, k := r.call(s, 1, TakesBoth)
			rd.Keep()
			return rd, k
		},
		"progress delivered": func(_ *testing.T, r *rig, s *Session) (*Reader, *fakeCall) {
			rd, k := r.call(s, 1, TakesBoth)
			k.deliver(progressText, upstream.Own)
			drain(rd)
			return rd, k
		},
		"progress waits": func(_ *testing.T, r *rig, s *Session) (*Reader, *fakeCall) {
			rd, k := r.call(s, 1, TakesBoth)
			k.deliver(progressText, upstream.Own)
			return rd, k
		},
		"half of a batch": func(t *testing.T, r *rig, s *Session) (*Reader, *fakeCall) {
			rd, err := s.Call(TakesBoth, []upstream.Request{request(1, "x"), request(2, "y")})
			if err != nil {
				t.Fatal(err)
			}
			calls := r.srv.last().calls
			(<-calls).answer(`{}`)
			return rd, <-calls
		},
		"legacy": func(t *testing.T, r *rig, _ *Session) (*Reader, *fakeCall) {
			s, rd := r.legacy()
			if err := s.CallOnOwn(request(1, "x")); err != nil {
				t.Fatal(err)
			}
			return rd, <-r.srv.last().calls
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			s, _ := r.open()
			rd, k := begin(t, r, s)
			k.conn.End(errCallLost)
			if got := drain(rd); !strings.Contains(got, lost) || !strings.HasSuffix(got, "over") {
				t.Errorf("got %s", got)
			}
			rd.Close()
		})
	}
}

// The handler opened the stream just when the session was lost.
func TestLostSessionAsTheStreamOpens(t *testing.T) {
	r := newRig(t, nil)
	s, conn := r.open()
	rd, _ := r.call(s, 1, TakesBoth)
	defer rd.Close()
	drain(rd)
	conn.End(errCallLost)
	rd.Keep()
	if got := drain(rd); !strings.Contains(got, `"id":1,"error"`) || !strings.HasSuffix(got, "over") {
		t.Errorf("got %s", got)
	}
}

// There is no session yet that could be missing.
func TestLostDuringInitialize(t *testing.T) {
	r := newRig(t, nil)
	r.srv.onOpen = func(*fakeConn) error { return nil }
	_, rd, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize"))
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	r.srv.last().init.fail(errCallLost)
	if got := drain(rd); !strings.Contains(got, `"id":1,"error"`) {
		t.Errorf("got %s", got)
	}
}
