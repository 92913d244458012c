package remote

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// attach goes on with a session by its state.
func attach(t *testing.T, srv *Server, st upstream.State) *client {
	t.Helper()
	c := &client{t: t, events: newSink(t)}
	var err error
	if c.conn, err = srv.Attach(st, c.events); err != nil {
		t.Fatal(err)
	}
	return c
}

// Two processes serve one session at the address that has it, and only its end
// is told to the server.
func TestAttach(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		first, second := w.server(), w.server()
		defer second.Close()
		c := open(t, first)
		home, st := c.home(), c.conn.(upstream.Movable).State()
		other := attach(t, second, st)
		for range 3 {
			if got := other.home(); got != home {
				t.Errorf("the other process goes to %s, not %s", got, home)
			}
		}
		if got := other.conn.(upstream.Movable).State(); got.Address != st.Address || got.Session != st.Session || got.Revision != st.Revision {
			t.Errorf("state %+v, was %+v", got, st)
		}
		c.conn.(upstream.Movable).Detach(upstream.ErrShutdown)
		first.Close()
		if n := counts(first)[st.Address]; n != 0 {
			t.Errorf("%d sessions are counted after it was detached", n)
		}
		if got := other.home(); got != home {
			t.Errorf("after the first process has left: %s", got)
		}
		deletes := func() (n int) {
			for _, s := range sites {
				n += s.count("DELETE")
			}
			return n
		}
		if n := deletes(); n != 0 {
			t.Errorf("the server heard of an end: %d", n)
		}
		other.conn.End(upstream.ErrClosed)
		synctest.Wait()
		if n := deletes(); n != 1 {
			t.Errorf("%d DELETEs", n)
		}
	})
}

// T9: a record is not believed where to send requests.
func TestAttachToAnAddressThatIsNotTheServers(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		evil := w.site("6.6.6.6:80")
		srv := w.server()
		defer srv.Close()
		for _, address := range []string{"http://6.6.6.6:80", "https://10.0.0.1:80", "http://10.0.0.1:81", ""} {
			st := upstream.State{Address: address, Session: "sess", Revision: "2025-06-18"}
			if _, err := srv.Attach(st, newSink(t)); !errors.Is(err, upstream.ErrLost) {
				t.Errorf("%q: %v", address, err)
			}
		}
		if n := evil.count(""); n != 0 {
			t.Errorf("a stranger got %d requests", n)
		}
	})
}

// Where a lost session is opened anew, so is one whose address is gone: at an
// address of the server's own, and with what the client had set.
func TestAttachReopens(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		for _, s := range sites {
			s.stateful()
		}
		srv := w.server(reinitialize)
		defer srv.Close()
		other := attach(t, srv, upstream.State{
			Address: "http://10.0.0.9:80", Session: "gone", Revision: "2025-06-18",
			Initialize: []byte(initialize), LogLevel: "debug", Subscriptions: []string{"file:///a"},
		})
		home := other.home()
		st := other.conn.(upstream.Movable).State()
		if st.Session != "sess-"+home || st.Address != "http://"+home {
			t.Errorf("state %+v at %s", st, home)
		}
		for _, s := range sites {
			if s.addr == home && (s.count("initialize") != 1 || s.count("logging/setLevel") != 1 || s.count("resources/subscribe") != 1) {
				t.Errorf("it was told %+v", s.all(""))
			}
		}
	})
}

// What another process has opened anew is gone on with; nothing happens where
// nothing has changed.
func TestAdopt(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		moved := c.conn.(upstream.Movable)
		before := moved.State()
		moved.Adopt(before)
		elsewhere := before
		for _, s := range sites {
			if "http://"+s.addr != before.Address {
				elsewhere.Address, elsewhere.Session = "http://"+s.addr, s.session
			}
		}
		moved.Adopt(elsewhere)
		if home := "http://" + c.home(); home != elsewhere.Address {
			t.Errorf("it goes to %s, not %s", home, elsewhere.Address)
		}
		if n := counts(srv); n[before.Address] != 0 || n[elsewhere.Address] != 1 {
			t.Errorf("sessions are counted at %v", n)
		}
		moved.Adopt(upstream.State{Address: "http://6.6.6.6:80", Session: "x"})
		if home := "http://" + c.home(); home != elsewhere.Address {
			t.Errorf("after a strange address: %s", home)
		}
	})
}

// faster is a keeper whose other process is always first.
type faster struct {
	*sink
	wins    upstream.State
	changes int
}

func (f *faster) Changed(func(*upstream.State)) { f.changes++ }

func (f *faster) Renewed(lost, now upstream.State) (upstream.State, error) { return f.wins, nil }

// Of two processes that open a session anew the slower one gives its own up.
func TestRenewedElsewhere(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		s.stateful()
		srv := w.server(reinitialize)
		defer srv.Close()
		events := &faster{sink: newSink(t)}
		c, reply := &client{t: t, events: events.sink}, newSink(t)
		var err error
		c.conn, err = srv.Open(request(t, initialize), reply, events)
		must(t, err)
		must(t, reply.end())
		if events.changes != 1 {
			t.Errorf("the keeper heard of %d changes after initialize", events.changes)
		}
		events.wins = c.conn.(upstream.Movable).State()
		events.wins.Session = "theirs"
		s.forget("theirs") // the server knows this one, which the other process has opened
		s.handle("initialize", initialized("ours", `{"protocolVersion":"2025-06-18","capabilities":{}}`))
		c.call(list)
		synctest.Wait()
		if st := c.conn.(upstream.Movable).State(); st.Session != "theirs" {
			t.Errorf("it goes on as %q", st.Session)
		}
		if n := s.count("DELETE"); n != 1 {
			t.Errorf("%d sessions were given up", n)
		}
	})
}
