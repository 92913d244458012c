package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// watched is a rig whose messages are looked back at.
func watched(t testing.TB, change func(*Limits)) *rig {
	r := newRig(t, change)
	r.m.cfg.Observe = observe.New()
	return r
}

// tape is the last messages of a session, one a line.
func (r *rig) tape(s *Session) string {
	r.t.Helper()
	_, messages, err := r.m.Inspect(s.Hash())
	if err != nil {
		r.t.Fatal(err)
	}
	var lines []string
	for _, m := range messages {
		line := fmt.Sprintf("%s %s %s %s %d", m.Direction, m.Kind, m.Method(), m.ID(), m.Size())
		if m.Duration > 0 {
			line += " " + m.Duration.String()
		}
		if reason := m.Reason(); reason != "" {
			line += " " + reason
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// added sums what was measured.
func (r *rig) added() (calls, measured int, most time.Duration) {
	for _, b := range r.m.cfg.Observe.Series(time.Now()) {
		calls += b.Calls
		measured += b.Measured
		most = max(most, b.Max)
	}
	return calls, measured, most
}

func TestMessagesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := watched(t, nil)
		s, conn := r.open()
		if err := s.Send(message(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
			t.Fatal(err)
		}
		rd, call := r.call(s, 2, TakesBoth)
		time.Sleep(30 * time.Millisecond)
		call.deliver(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, upstream.Own)
		call.deliver(`{"jsonrpc":"2.0","id":"q1","method":"sampling/createMessage","params":{"secret":"hunter2"}}`, upstream.Loose)
		call.deliver(`{"jsonrpc":"2.0","id":"q2","method":"x/ask"}`, upstream.Loose)
		call.answer(`{"text":"hunter2"}`)
		drain(rd)
		rd.Close()
		if err := s.Send(message(`{"jsonrpc":"2.0","id":"q1","result":{}}`)); err != nil {
			t.Fatal(err)
		}
		rd, call = r.call(s, 3, TakesBoth)
		call.fail(upstream.ErrTimeout)
		rd.Close()
		own, err := s.Listen()
		if err != nil {
			t.Fatal(err)
		}
		conn.tell(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, upstream.Loose)
		own.Close()
		conn.tell(`{"jsonrpc":"2.0","method":"notifications/message"}`, upstream.Loose) // nobody reads
		want := strings.Join([]string{
			`from_client request initialize 1 46`,
			`to_client response initialize 1 127`,
			`from_client notification notifications/initialized  54`,
			`from_client request tools/call 2 46`,
			`to_client notification notifications/progress  93`,
			`to_client request sampling/createMessage "q1" 91`,
			`to_client request x/ask "q2" 44`,
			`to_client response tools/call 2 52 30ms`,
			`from_client response  "q1" 39`,
			`from_client request tools/call 3 46`,
			`to_client response tools/call 3 143 timeout`,
			`to_client notification notifications/tools/list_changed  61`,
		}, "\n")
		if got := r.tape(s); got != want {
			t.Errorf("the log:\n%s\nwant:\n%s", got, want)
		}
	})
}

func TestMessageLogIsBounded(t *testing.T) {
	r := watched(t, nil)
	s, _ := r.open()
	for i := range 100 {
		rd, call := r.call(s, i+2, TakesBoth)
		call.answer(`{}`)
		rd.Close()
	}
	if got := strings.Split(r.tape(s), "\n"); len(got) != observe.TapeLength || !strings.Contains(got[observe.TapeLength-1], " 101 ") {
		t.Errorf("%d messages, the last %s", len(got), got[len(got)-1])
	}
}

// Who looks at nothing pays nothing, and who does allocates nothing for a message.
func TestLookingDoesNotAllocate(t *testing.T) {
	measure := func(r *rig) float64 {
		r.srv.onCall = func(k *fakeCall) { k.answer(`{}`) }
		s, _ := r.open()
		once := func() {
			rd, err := s.Call(TakesBoth, []upstream.Request{request(2, "tools/call")})
			if err != nil {
				t.Fatal(err)
			}
			drain(rd)
			rd.Spent()
			rd.Close()
		}
		for range observe.TapeLength {
			once()
		}
		return testing.AllocsPerRun(200, once)
	}
	plain, looked := measure(newRig(t, nil)), measure(watched(t, nil))
	if looked > plain {
		t.Errorf("%v allocations for a call, %v without", looked, plain)
	}
	r := newRig(t, nil)
	s, _ := r.open()
	if got := r.tape(s); got != "" {
		t.Errorf("without a recorder the log has\n%s", got)
	}
}

// What Signalbox adds is the time before the server has a call, and that from its
// answer to the client's having it.
func TestAddedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := watched(t, nil)
		s, _ := r.open()
		call := func(arrived time.Time) (*Reader, *fakeCall) {
			req := request(2, "tools/call")
			req.Arrived = arrived
			rd, err := s.Call(TakesBoth, []upstream.Request{req})
			if err != nil {
				t.Fatal(err)
			}
			s.mu.Lock()
			conn := s.conn.(*fakeConn)
			s.mu.Unlock()
			return rd, <-conn.calls
		}
		calls, measured, _ := r.added()
		if calls != 1 || measured != 0 { // initialize
			t.Fatalf("%d calls, %d measured", calls, measured)
		}
		rd, k := call(time.Now().Add(-3 * time.Millisecond))
		time.Sleep(time.Second) // the server's
		k.answer(`{}`)
		drain(rd)
		time.Sleep(4 * time.Millisecond) // until it is written
		rd.Spent()
		rd.Close()
		if calls, measured, most := r.added(); calls != 2 || measured != 1 || most != 7*time.Millisecond {
			t.Errorf("a JSON answer: %d calls, %d measured, %v added", calls, measured, most)
		}
		rd, k = call(time.Now().Add(-20 * time.Millisecond))
		k.answer(`{}`)
		drain(rd)
		time.Sleep(time.Millisecond)
		drain(rd) // by which what was fetched before counts as written
		rd.Close()
		if _, measured, most := r.added(); measured != 2 || most != 21*time.Millisecond {
			t.Errorf("an event stream: %d measured, %v added", measured, most)
		}
		rd, k = call(time.Time{})
		rd.Close()
		k.answer(`{}`)
		rd, k = call(time.Time{})
		k.answer(`{}`)
		rd.Close() // without having fetched it
		if calls, measured, _ := r.added(); calls != 5 || measured != 2 {
			t.Errorf("answers that nobody took: %d calls, %d measured", calls, measured)
		}
	})
}

// A server may have answered before the call is known to be with it.
func TestAddedTimeOfAnAnswerAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := watched(t, nil)
		r.srv.onCall = func(k *fakeCall) { k.answer(`{}`) }
		s, _ := r.open()
		req := request(2, "tools/call")
		req.Arrived = time.Now().Add(-3 * time.Millisecond)
		rd, err := s.Call(TakesBoth, []upstream.Request{req})
		if err != nil {
			t.Fatal(err)
		}
		drain(rd)
		time.Sleep(time.Millisecond)
		rd.Spent()
		rd.Close()
		if calls, measured, most := r.added(); calls != 2 || measured != 1 || most != 4*time.Millisecond {
			t.Errorf("%d calls, %d measured, %v added", calls, measured, most)
		}
	})
}

func TestSlowReadersAreNoted(t *testing.T) {
	r := watched(t, func(l *Limits) { l.QueueEvents = 2 })
	s, _ := r.open()
	rd, call := r.call(s, 2, TakesBoth)
	for range 4 {
		call.deliver(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`, upstream.Own)
	}
	for range 3 {
		call.deliver(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, upstream.Loose)
	}
	rd.Close()
	call.answer(`{}`)
	var got []string
	for _, i := range r.m.cfg.Observe.Incidents() {
		if i.Session != s.Hash() || i.Server != "srv" {
			t.Errorf("%+v", i)
		}
		got = append(got, fmt.Sprint(i.What, " ", i.Reason, " ", i.Count))
	}
	if want := "dropped stream_cut_off 1, dropped slow_reader 2"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestViews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := watched(t, nil)
		s, rd, err := r.m.Open(r.b, "p", TakesBoth, message(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"<b>\u00e4`+strings.Repeat("x", 200)+`","version":"2"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		drain(rd)
		rd.Close()
		if err := s.Register(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		other, _ := r.open()
		rd, call := r.call(s, 2, TakesBoth)
		time.Sleep(time.Second)
		got := r.m.Views()
		if len(got) != 2 || got[0].Hash != s.Hash() || got[1].Hash != other.Hash() {
			t.Fatalf("%+v", got)
		}
		want := View{
			Hash: s.Hash(), Server: "srv", Transport: "streamable", Revision: "2025-11-25", Client: "<b>ä" + strings.Repeat("x", 95), ClientVersion: "2",
			Created: s.created, LastSeen: time.Now().Add(-time.Second), Calls: 1, Streams: 1, Accepted: true,
		}
		if got[0] != want {
			t.Errorf("%+v, want %+v", got[0], want)
		}
		if strings.Contains(fmt.Sprintf("%+v", got), s.ID()) {
			t.Error("the id itself is shown")
		}
		call.answer(`{}`)
		rd.Close()
	})
}

func TestEndByHash(t *testing.T) {
	r := watched(t, nil)
	s, conn := r.open()
	other, _ := r.open()
	if err := r.m.EndByHash("00000000"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a session that is not there: %v", err)
	}
	if err := r.m.EndByHash(s.Hash()); err != nil {
		t.Fatal(err)
	}
	if conn.endedWith() == nil {
		t.Error("the server has not heard of it")
	}
	if err := r.m.EndByHash(s.Hash()); !errors.Is(err, ErrNotFound) {
		t.Errorf("once more: %v", err)
	}
	if _, _, err := r.m.Inspect(s.Hash()); !errors.Is(err, ErrNotFound) {
		t.Errorf("a look at it: %v", err)
	}
	if got := r.m.Views(); len(got) != 1 || got[0].Hash != other.Hash() {
		t.Errorf("left: %+v", got)
	}
	twin := r.m.newSession(r.b, "p", other.transport)
	twin.id = other.id // two ids of one hash are not to be found in the time of a test
	r.m.mu.Lock()
	r.m.all[twin] = struct{}{}
	r.m.mu.Unlock()
	if err := r.m.EndByHash(other.Hash()); !errors.Is(err, ErrAmbiguous) {
		t.Errorf("of two: %v", err)
	}
	r.m.mu.Lock()
	delete(r.m.all, twin)
	r.m.mu.Unlock()
}

func TestEndByHashEndsEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := replicas(t, false, "a", "b")
		a, b := all[0], all[1]
		s := a.begin()
		if _, err := b.find(s.ID(), "p"); err != nil {
			t.Fatal(err)
		}
		if err := b.m.EndByHash(s.Hash()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if _, err := a.find(s.ID(), "p"); !errors.Is(err, ErrNotFound) {
			t.Errorf("at the other replica: %v", err)
		}
		if n := len(a.m.Views()) + len(b.m.Views()); n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}
