package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// A session that ends while its record is being made leaves none, not even
// where the manager is closed by then.
func TestSessionEndsWhileItIsRegistered(t *testing.T) {
	for name, end := range map[string]func(*rig, *Session){
		"ended":          func(_ *rig, s *Session) { s.end(errIdle) },
		"manager closed": func(r *rig, _ *Session) { r.m.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			s, rd, err := r.m.Open(r.b, "p", TakesBoth, request(1, "initialize"))
			if err != nil {
				t.Fatal(err)
			}
			rd.Close()
			r.store.onCreate = func() { end(r, s) }
			if err := s.Register(t.Context()); err != nil {
				t.Error(err)
			}
			if r.record(s) {
				t.Error("the record is left")
			}
			if _, err := r.m.Find(t.Context(), r.b, session.Streamable, s.ID(), "p"); !errors.Is(err, ErrNotFound) {
				t.Errorf("find: %v", err)
			}
		})
	}
}

// A session that ends between a call's entry and its start still owes it an
// error.
func TestSessionEndsWhileACallStarts(t *testing.T) {
	r := newRig(t, nil)
	s, _ := r.open()
	r.srv.onStart = s.Delete
	for _, takes := range []Takes{TakesJSON, TakesSSE} {
		rd, err := s.Call(takes, []upstream.Request{request(4, "x")})
		if errors.Is(err, ErrNotFound) {
			break // it is known to have ended
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := drain(rd); !strings.Contains(got, `"id":4,"error"`) || !strings.HasSuffix(got, "over") {
			t.Errorf("got %q", got)
		}
		rd.Close()
	}
	r.empty()
}

func TestDeleteDuringACall(t *testing.T) {
	r := newRig(t, nil)
	s, conn := r.open()
	rd, _ := r.call(s, 1, TakesJSON)
	own, _ := s.Listen()
	s.Delete()
	s.Delete()
	if got := drain(rd); !strings.Contains(got, `"reason":"session_ended"`) || !strings.HasSuffix(got, "over") {
		t.Errorf("call: %s", got)
	}
	if got := drain(own); got != "over" {
		t.Errorf("own stream: %s", got)
	}
	rd.Keep() // its handler opens a stream just now
	rd.Close()
	own.Close()
	if conn.endedWith() == nil {
		t.Error("the connection is still open")
	}
	if _, err := s.Call(TakesBoth, []upstream.Request{request(2, "x")}); !errors.Is(err, ErrNotFound) {
		t.Errorf("call afterwards: %v", err)
	}
	if err := s.Send(message(logText)); !errors.Is(err, ErrNotFound) {
		t.Errorf("notification afterwards: %v", err)
	}
	if _, err := s.Listen(); !errors.Is(err, ErrNotFound) {
		t.Errorf("listen afterwards: %v", err)
	}
	r.empty()
}
