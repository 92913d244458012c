package live

import (
	"errors"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// legacy opens a session as a client of HTTP+SSE does.
func (r *rig) legacy() (*Session, *Reader) {
	r.t.Helper()
	s, rd, err := r.m.OpenLegacy(r.t.Context(), r.b, "p")
	if err != nil {
		r.t.Fatal(err)
	}
	if err := s.Initialize(request(0, "initialize")); err != nil {
		r.t.Fatal(err)
	}
	if got := drain(rd); !strings.Contains(got, "protocolVersion") {
		r.t.Fatalf("initialize: %s", got)
	}
	return s, rd
}

func TestLegacyCalls(t *testing.T) {
	r := newRig(t, nil)
	s, rd := r.legacy()
	if err := s.Initialize(request(1, "initialize")); !errors.Is(err, ErrStarted) {
		t.Errorf("second initialize: %v", err)
	}
	if err := s.CallOnOwn(request(5, "x")); err != nil {
		t.Fatal(err)
	}
	k := <-r.srv.last().calls
	k.deliver(progressText, upstream.Own)
	r.srv.last().tell(logText, upstream.Loose)
	k.answer(`{}`)
	if got, want := drain(rd), "2 "+progressText+"\n3 "+logText+"\n4 "+`{"jsonrpc":"2.0","id":5,"result":{}}`; got != want {
		t.Errorf("got %s", got)
	}
	// A call in flight ends with the stream, which is the session.
	if err := s.CallOnOwn(request(6, "x")); err != nil {
		t.Fatal(err)
	}
	rd.Close()
	s.HungUp(nil)
	if err := r.srv.last().endedWith(); err == nil {
		t.Error("the connection is still open")
	}
	if _, err := r.m.Find(t.Context(), r.b, session.LegacySSE, s.ID(), "p"); !errors.Is(err, ErrNotFound) {
		t.Errorf("after its stream: %v", err)
	}
	r.empty()
}

func TestLegacyRequestBeforeInitialize(t *testing.T) {
	r := newRig(t, nil)
	s, rd, err := r.m.OpenLegacy(t.Context(), r.b, "p")
	if err != nil {
		t.Fatal(err)
	}
	defer s.HungUp(nil)
	defer rd.Close()
	if err := s.CallOnOwn(request(1, "x")); !errors.Is(err, ErrNotStarted) {
		t.Errorf("call: %v", err)
	}
	if err := s.Send(message(logText)); !errors.Is(err, ErrNotStarted) {
		t.Errorf("notification: %v", err)
	}
}

// However an initialize fails, and whether its connection goes before or after
// Open returns, the client may try again on the same stream.
func TestLegacyInitializeCanBeRetried(t *testing.T) {
	for name, fail := range map[string]func(*fakeConn) error{
		"open fails":                 func(*fakeConn) error { return upstream.ErrTooMany },
		"refused, before Open ends":  func(c *fakeConn) error { c.init.refuse(); return nil },
		"fails before Open ends":     func(c *fakeConn) error { c.init.fail(upstream.ErrTimeout); return nil },
		"conn ends before Open ends": func(c *fakeConn) error { c.End(upstream.ErrTimeout); return nil },
		"refused later":              nil,
		"conn ends later":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			s, rd, err := r.m.OpenLegacy(t.Context(), r.b, "p")
			if err != nil {
				t.Fatal(err)
			}
			defer s.HungUp(nil)
			defer rd.Close()
			if r.srv.onOpen = fail; fail == nil {
				r.srv.onOpen = func(*fakeConn) error { return nil }
			}
			if err := s.Initialize(request(1, "initialize")); err != nil {
				t.Fatal(err)
			}
			switch name {
			case "refused later":
				r.srv.last().init.refuse()
			case "conn ends later":
				r.srv.last().End(upstream.ErrTimeout)
			}
			if got := drain(rd); !strings.Contains(got, `"id":1,"error"`) {
				t.Fatalf("first: %s", got)
			}
			if c := r.srv.last(); name != "open fails" && c.endedWith() == nil {
				t.Error("the failed connection is still open")
			}
			r.srv.onOpen = nil
			if err := s.Initialize(request(2, "initialize")); err != nil {
				t.Fatal(err)
			}
			if got := drain(rd); !strings.Contains(got, `"id":2,"result"`) {
				t.Fatalf("second: %s", got)
			}
			if v := r.srv.conns[0].tell(logText, upstream.Loose); name != "open fails" && v != upstream.Closed {
				t.Errorf("the failed connection still reaches the client: %v", v)
			}
			if err := s.CallOnOwn(request(3, "x")); err != nil {
				t.Errorf("call: %v", err)
			}
		})
	}
}
