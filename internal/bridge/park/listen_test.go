package park

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const allLists = `"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true`

func changed(list string) string {
	return `{"jsonrpc":"2.0","method":"notifications/` + list + `/list_changed"}`
}

func updated(uri string) string {
	return `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `","_meta":{"secret":1}}}`
}

// told is what a listen with this id gets of a change.
func told(id, method, uri string) string {
	if uri != "" {
		uri = `"uri":"` + uri + `",`
	}
	return `{"jsonrpc":"2.0","method":"notifications/` + method + `","params":{` + uri + `"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

func ack(id, agreed string) string {
	return `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{` + agreed + `},"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
}

func (r *rig) listen(s sender, id, wants string) *reader {
	r.t.Helper()
	return r.ask(s, id, "subscriptions/listen", `"notifications":{`+wants+`}`)
}

func TestListen(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.listen(ann, `"l\u0031"`, allLists+`,"resourceSubscriptions":["a:\u0062","a:b","a:c"]`)
		ses := r.conns(1)[0]
		equal(t, "acknowledged", c.take(), []string{ack(`"l\u0031"`, allLists+`,"resourceSubscriptions":["a:\u0062","a:c"]`)})
		equal(t, "server", ses.said(), []string{hello, "subscribe a:b", "subscribe a:c"})
		equal(t, "listening", ses.listen, []bool{true})
		for _, n := range []string{changed("tools"), changed("prompts"), changed("resources"), updated("a:b"), updated("a:b/below"), updated("a:bx"), updated("x")} {
			ses.ask(n)
		}
		equal(t, "client", c.take(), []string{
			told(`"l\u0031"`, "tools/list_changed", ""), told(`"l\u0031"`, "prompts/list_changed", ""), told(`"l\u0031"`, "resources/list_changed", ""),
			told(`"l\u0031"`, "resources/updated", "a:b"), told(`"l\u0031"`, "resources/updated", "a:b/below"),
		})
		c.call.Cancel(upstream.ErrCancelled)
		c.call.Cancel(upstream.ErrCancelled)
		synctest.Wait()
		equal(t, "client", c.take(), []string{"END: the request was cancelled"})
		said := ses.said()
		slices.Sort(said)
		equal(t, "server", said, []string{"unsubscribe a:b", "unsubscribe a:c"})
		equal(t, "listening", ses.listen, []bool{true, false})
		ses.ask(changed("tools"))
		equal(t, "client", c.take(), []string(nil))
	})
}

// Only what was asked for and what the server offers is agreed on and told.
func TestListenToLess(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.listen(ann, "7", `"toolsListChanged":false,"promptsListChanged":true`)
		equal(t, "acknowledged", c.take(), []string{ack("7", `"promptsListChanged":true`)})
		ses := r.conns(1)[0]
		ses.ask(changed("tools"))
		ses.ask(updated("a"))
		ses.ask(changed("prompts"))
		equal(t, "client", c.take(), []string{told("7", "prompts/list_changed", "")})
	})
	run(t, func(_ *Config, s *server) { s.init = plainServer }, func(r *rig) {
		c := r.listen(ann, "7", allLists+`,"resourceSubscriptions":["a"]`)
		equal(t, "acknowledged", c.take(), []string{ack("7", "")})
		ses := r.conns(1)[0]
		ses.ask(changed("tools"))
		ses.ask(updated("a"))
		equal(t, "client", c.take(), []string(nil))
		equal(t, "server", ses.said(), []string{hello})
	})
	run(t, func(_ *Config, s *server) { s.refuse["bad"] = true }, func(r *rig) {
		c := r.listen(ann, "7", `"resourceSubscriptions":["bad","good"]`)
		equal(t, "acknowledged", c.take(), []string{ack("7", `"resourceSubscriptions":["good"]`)})
		ses := r.conns(1)[0]
		ses.ask(updated("bad"))
		equal(t, "client", c.take(), []string(nil))
		ses.said()
		c.call.Cancel(upstream.ErrCancelled)
		synctest.Wait()
		equal(t, "server", ses.said(), []string{"unsubscribe good"})
	})
}

func TestListenRefused(t *testing.T) {
	run(t, nil, func(r *rig) {
		for _, params := range []string{"", `"notifications":[]`, `"notifications":null`, `"notifications":{"resourceSubscriptions":"a"}`, `"notifications":{"resourceSubscriptions":[1]}`,
			`"notifications":{"toolsListChanged":true,"ToolsListChanged":true}`, `"notifications":{"resourceSubscriptions":["` + strings.Repeat("u", maxURI+1) + `"]}`} {
			equal(t, params, r.refused(ann, "1", "subscriptions/listen", params), "-32602 notifications")
		}
		r.conns(0)
	})
}

// What changes before the acknowledgement comes after it, once.
func TestChangesBeforeTheAcknowledgement(t *testing.T) {
	run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) {
		c := r.listen(ann, "7", allLists+`,"resourceSubscriptions":["a"]`)
		ses := r.conns(1)[0]
		for _, n := range []string{changed("tools"), changed("tools"), updated("a"), updated("other"), updated("a")} {
			ses.ask(n)
		}
		ses.answerInit(fullServer)
		synctest.Wait()
		equal(t, "client", c.take(), []string{ack("7", allLists+`,"resourceSubscriptions":["a"]`), told("7", "tools/list_changed", ""), told("7", "resources/updated", "a")})
	})
}

// Subscriptions are counted: the first asks the server, the last ends it.
func TestSubscriptionsAreCounted(t *testing.T) {
	run(t, nil, func(r *rig) {
		a, b := r.listen(ann, "1", `"resourceSubscriptions":["u"]`), r.listen(ann, "2", `"resourceSubscriptions":["u"]`)
		ses := r.conns(1)[0]
		equal(t, "server", ses.said(), []string{hello, "subscribe u"})
		ses.ask(updated("u"))
		equal(t, "one", a.take()[1:], []string{told("1", "resources/updated", "u")})
		equal(t, "two", b.take()[1:], []string{told("2", "resources/updated", "u")})
		a.call.Cancel(upstream.ErrCancelled)
		synctest.Wait()
		equal(t, "server", ses.said(), []string(nil))
		b.call.Cancel(upstream.ErrCancelled)
		// One that comes while the last one's end is under way is served all the same.
		c := r.listen(ann, "3", `"resourceSubscriptions":["u"]`)
		equal(t, "server", ses.said(), []string{"unsubscribe u", "subscribe u"})
		equal(t, "three", c.take(), []string{ack("3", `"resourceSubscriptions":["u"]`)})
	})
}

// A listen hears every session of its principal and of nobody else, and takes
// none away from calls.
func TestListenHearsItsPrincipal(t *testing.T) {
	run(t, nil, func(r *rig) {
		a, b := r.listen(full, "1", allLists), r.listen(bob, "1", allLists)
		r.ask(full, "2", "tools/call", tool)
		r.ask(full, "3", "tools/call", tool)
		r.ask(ann, "4", "tools/list", "")
		ses := r.conns(4) // of ann: two for calls, one of other capabilities; of bob: the listen's
		a.take()
		b.take()
		ses[0].ask(changed("tools"))
		r.leg(ses[2]).say(changed("prompts"))
		ses[3].ask(changed("resources"))
		equal(t, "ann", a.take(), []string{told("1", "tools/list_changed", ""), told("1", "prompts/list_changed", ""), told("1", "resources/list_changed", "")})
		equal(t, "bob", b.take(), []string(nil))
	})
}

func TestListenKeepsItsSession(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.Idle = time.Minute }, func(r *rig) {
		c := r.listen(ann, "1", allLists)
		ses := r.conns(1)[0]
		time.Sleep(time.Hour)
		synctest.Wait()
		if ses.over() != nil {
			t.Fatal("ended under a listen")
		}
		c.call.Cancel(upstream.ErrCancelled)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		if ses.over() == nil {
			t.Error("not ended")
		}
	})
}

// Where there is no room for a session of its own, a listen uses another one of
// its principal.
func TestListenWithoutRoom(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) {
		r.ask(full, "1", "tools/call", tool)
		c := r.listen(ann, "2", allLists)
		equal(t, "acknowledged", c.take(), []string{ack("2", allLists)})
		r.conns(1)
		// And it gives way to a call that needs the place.
		r.leg(r.conns(1)[0]).result("{}")
		r.ask(ann, "3", "tools/list", "")
		time.Sleep(listenPause)
		ses := r.conns(2)[1]
		c.take()
		ses.ask(changed("tools"))
		equal(t, "client", c.take(), []string{told("2", "tools/list_changed", "")})
	})
}

func TestListenEndsWithAResult(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.listen(ann, `"x"`, allLists)
		c.take()
		r.park.Close()
		synctest.Wait()
		equal(t, "client", c.take(), []string{`{"jsonrpc":"2.0","id":"x","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"x"}}}`, "END"})
	})
}

// A session that dies is replaced, and the client is told of all that it may have
// missed.
func TestListenOutlivesItsSession(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.listen(ann, "1", `"toolsListChanged":true,"resourceSubscriptions":["u"]`)
		c.take()
		time.Sleep(time.Hour)
		r.conns(1)[0].End(errors.New("gone"))
		time.Sleep(listenPause)
		ses := r.conns(2)[1]
		equal(t, "server", ses.said(), []string{hello, "subscribe u"})
		equal(t, "client", c.take(), []string{told("1", "tools/list_changed", ""), told("1", "resources/updated", "u")})
		ses.ask(updated("u"))
		equal(t, "client", c.take(), []string{told("1", "resources/updated", "u")})
	})
}

// The pauses grow while sessions are lost soon, and begin anew when one was not.
func TestListenPauses(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.listen(ann, "1", allLists)
		gone := errors.New("gone")
		n := 1
		for _, pause := range []time.Duration{0, listenPause, 2 * listenPause, 4 * listenPause} {
			r.conns(n)[n-1].End(gone)
			if pause > 0 {
				time.Sleep(pause - time.Millisecond)
				r.conns(n)
				time.Sleep(time.Millisecond)
			}
			n++
			r.conns(n)
		}
		time.Sleep(listenStable)
		r.conns(n)[n-1].End(gone)
		r.conns(n + 1)
	})
}

func TestListenGivesUp(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.listen(ann, "1", allLists)
		c.take()
		r.srv.mu.Lock()
		r.srv.openErr = upstream.Errorf(-32603, "start_failed", "no such command")
		r.srv.mu.Unlock()
		r.conns(1)[0].End(errors.New("gone"))
		time.Sleep(listenPatience - time.Second)
		synctest.Wait()
		equal(t, "client", c.take(), []string(nil))
		time.Sleep(listenPauseMax + 2*time.Second)
		synctest.Wait()
		equal(t, "client", c.reason(), "-32603 start_failed")
	})
	run(t, func(_ *Config, s *server) { s.openErr = upstream.ErrTooMany }, func(r *rig) { // at the beginning at once
		equal(t, "client", r.listen(ann, "1", allLists).reason(), "-32603 process_limit")
	})
}

// A session that ends before the acknowledgement, but not for a failure to open,
// is replaced as well.
func TestListenBeforeTheAcknowledgement(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.ask(ann, "1", "server/discover", "").last()
		ses := r.conns(1)[0]
		ses.start = func(upstream.Request) error { // the subscription is never answered
			go ses.End(errors.New("gone"))
			return errors.New("gone")
		}
		c := r.listen(ann, "2", `"resourceSubscriptions":["u"]`)
		r.conns(2)
		got := c.take()
		equal(t, "client", got[len(got)-1], ack("2", `"resourceSubscriptions":["u"]`))
	})
}

// A subscription that fails in a session that lives on is left out.
func TestSubscriptionFails(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.ask(ann, "1", "server/discover", "").last()
		r.conns(1)[0].start = func(upstream.Request) error { return upstream.ErrBusy }
		c := r.listen(ann, "2", allLists+`,"resourceSubscriptions":["u"]`)
		equal(t, "client", c.take(), []string(nil))
		time.Sleep(failWait)
		synctest.Wait()
		equal(t, "client", c.take(), []string{ack("2", allLists)})
	})
}

// What names no call is not for requests of Signalbox itself, however new they are.
func TestOwnRequestsTakeNothingFromCalls(t *testing.T) {
	o := &own{}
	for _, raw := range []string{form, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`} {
		if v := o.Deliver(frame(raw, upstream.Loose)); v != upstream.NoTaker {
			t.Errorf("%s: %v", raw, v)
		}
	}
}

// A session makes room while its listen has been without one for too long: one
// call gets the place, once.
func TestListenGivesUpWhereACallNeedsRoom(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) {
		c := r.listen(ann, "1", allLists)
		c.take()
		fail := func(err error) {
			r.srv.mu.Lock()
			defer r.srv.mu.Unlock()
			r.srv.openErr = err
		}
		fail(upstream.ErrTooMany)
		r.conns(1)[0].End(errors.New("gone"))
		time.Sleep(listenPatience - 10*time.Second)
		fail(nil)
		time.Sleep(listenPauseMax)
		r.conns(2)
		call := r.ask(full, "2", "tools/call", tool)
		ses := r.conns(3)[2]
		equal(t, "listen", c.reason(), "-32603 session_ended")
		r.leg(ses).result("{}")
		synctest.Wait()
		call.last()
	})
}

// A client that leaves while there is no session, or none yet, leaves nothing.
func TestListenLeavesEarly(t *testing.T) {
	run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) {
		c := r.listen(ann, "1", allLists)
		c.call.Cancel(upstream.ErrCancelled)
		synctest.Wait()
		equal(t, "client", c.take(), []string{"END: the request was cancelled"})
		r.conns(1)[0].answerInit(fullServer)
		synctest.Wait()
		equal(t, "client", c.take(), []string(nil))
	})
	run(t, nil, func(r *rig) {
		c := r.listen(ann, "1", allLists)
		r.srv.mu.Lock()
		r.srv.openErr = errors.New("not now")
		r.srv.mu.Unlock()
		r.conns(1)[0].End(errors.New("gone"))
		synctest.Wait()
		c.call.Cancel(upstream.ErrCancelled)
		time.Sleep(time.Hour)
		r.conns(1)
	})
}

func TestCovers(t *testing.T) {
	for _, tt := range []struct {
		watched, uri string
		want         bool
	}{
		{"file:///a", "file:///a", true},
		{"file:///a", "file:///a/b", true},
		{"file:///a/", "file:///a/b", true},
		{"file:///a", "file:///ab", false},
		{"file:///a/b", "file:///a", false},
		{"", "/a", false},
	} {
		if got := covers(map[string]struct{}{tt.watched: {}}, tt.uri); got != tt.want {
			t.Errorf("%q covers %q: %v", tt.watched, tt.uri, got)
		}
	}
}
