package front

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
)

// The connection breaks before any answer exists. The server hears of no
// cancel, and whoever comes back with the last event id gets all, as often as
// it asks.
func TestDetachAndResume(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			inBubble(t, setup{shared: shared}, func(t *testing.T, r *rig) {
				session := r.open("2025-11-25")
				p := r.procs.last()
				s := r.stream("POST", "/mcp", slowCall, session)
				first := s.next()
				msg := p.next()
				s.close()
				time.Sleep(time.Hour / 10)
				if p.saw("cancelled") {
					t.Fatal("leaving was taken for a cancel")
				}
				p.progress(msg, 1)
				p.progress(msg, 2)
				p.answer(msg, `{"x":1}`)
				var got []string
				for range 2 {
					s := r.get(session, "Last-Event-ID: "+first.ID)
					if e := s.next(); e.ID != first.ID {
						t.Errorf("primed with %q, not %q", e.ID, first.ID)
					}
					rest := s.rest()
					got = append(got, s.raw.String())
					if len(rest) != 3 || rest[2] != `{"jsonrpc":"2.0","id":9,"result":{"x":1}}` || !strings.Contains(rest[0], `"tok"`) {
						t.Errorf("resumed: %q", rest)
					}
				}
				if got[0] != got[1] {
					t.Errorf("two resumes differ: %q and %q", got[0], got[1])
				}
			})
		})
	}
}

func TestResumeInTheMiddle(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		p := r.procs.last()
		s := r.stream("POST", "/mcp", slowCall, session)
		msg := p.next()
		var ids []string
		for i := range 4 {
			p.progress(msg, i)
			ids = append(ids, s.next().ID)
		}
		s.close()
		synctest.Wait()
		again := r.get(session, "Last-Event-ID: "+ids[1])
		if a, b := again.next(), again.next(); a.ID != ids[2] || b.ID != ids[3] {
			t.Errorf("replayed %q and %q, want %q", a.ID, b.ID, ids[2:])
		}
		p.answer(msg, "{}") // and goes on live
		if rest := again.rest(); len(rest) != 1 {
			t.Errorf("live: %q", rest)
		}
	})
}

func TestGetStreamIsResumedAndTakenOver(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open("2025-11-25")
		p := r.procs.last()
		changed := func(n int) {
			p.say(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x:%d"}}`, n))
		}
		first := r.get(session)
		start := first.next().ID
		changed(1)
		one := first.next().ID
		second := r.get(session)
		if rest := first.rest(); len(rest) != 0 {
			t.Errorf("the first stream: %q", rest)
		}
		second.next()
		changed(2)
		if e := second.next(); !strings.Contains(string(e.Data), "x:2") {
			t.Errorf("second stream: %s", e.Data)
		}
		second.close()
		synctest.Wait()
		changed(3) // waits
		for id, want := range map[string][]string{start: {"x:1", "x:2", "x:3"}, one: {"x:2", "x:3"}} {
			s := r.get(session, "Last-Event-ID: "+id)
			if e := s.next(); e.ID != id {
				t.Errorf("primed with %q", e.ID)
			}
			for _, uri := range want {
				if e := s.next(); !strings.Contains(string(e.Data), uri) {
					t.Errorf("want %s, got %s", uri, e.Data)
				}
			}
			s.close()
			synctest.Wait()
		}
	})
}

func TestEventIDsThatAreRefused(t *testing.T) {
	inBubble(t, setup{limits: func(l *live.Limits) { l.LogEvents = 2 }}, func(t *testing.T, r *rig) {
		session, other := r.open("2025-11-25"), r.open("2025-11-25")
		p := r.procs.list[0]
		s := r.stream("POST", "/mcp", slowCall, session)
		good := s.next().ID
		msg := p.next()
		own := r.get(session)
		ownID := own.next().ID
		stream, rest, _ := strings.Cut(good, ".")
		_, mac, _ := strings.Cut(rest, ".")
		_, ownRest, _ := strings.Cut(ownID, ".")
		for name, c := range map[string]struct{ session, id string }{
			"another session's":           {other, good},
			"forged":                      {session, stream + ".0.AAAAAAAAAAAA"},
			"another stream's":            {session, stream + "." + ownRest},
			"truncated":                   {session, good[:len(good)-2]},
			"of a position not yet there": {session, stream + ".99." + mac},
			"the server's own":            {session, "42"},
			"garbage":                     {session, "../../x"},
		} {
			got := r.do("GET", "/mcp", "", c.session, "Last-Event-ID: "+c.id)
			if got.status != 400 || lookup(got.body, "error", "code") != "-32600" || lookup(got.body, "error", "data", "reason") != `"event_id"` {
				t.Errorf("%s: %d %s", name, got.status, got.body)
			}
		}
		for i := range 10 {
			p.progress(msg, i)
			s.next()
		}
		s.close()
		synctest.Wait()
		if got := r.do("GET", "/mcp", "", session, "Last-Event-ID: "+good); got.status != 400 {
			t.Errorf("a position no longer held: %d %s", got.status, got.body)
		}
		p.answer(msg, "{}")
	})
}

func TestTooManyAbandonedCalls(t *testing.T) {
	inBubble(t, setup{limits: func(l *live.Limits) { l.MaxDetached = 3 }}, func(t *testing.T, r *rig) {
		session := r.open("2025-11-25")
		p := r.procs.last()
		var ids []string
		for range 10 {
			s := r.stream("POST", "/mcp", slowCall, session)
			ids = append(ids, s.next().ID)
			p.next()
			s.close()
			synctest.Wait()
			if open := r.metric("signalbox_calls_in_flight", ""); open > 3 {
				t.Errorf("%v abandoned calls", open)
			}
		}
		if !p.saw("notifications/cancelled") {
			t.Error("the server heard of no cancel")
		}
		s := r.get(session, "Last-Event-ID: "+ids[0])
		s.next()
		if rest := s.rest(); len(rest) != 1 || !strings.Contains(rest[0], `"reason":"abandoned"`) {
			t.Errorf("the oldest: %q", rest)
		}
	})
}
