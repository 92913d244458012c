package park

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// What initialize says of a client, and so which clients share sessions.
func TestCapabilities(t *testing.T) {
	for _, tt := range []struct{ in, out string }{
		{`{}`, `{}`},
		{`{"extensions":{"io.modelcontextprotocol/tasks":{}},"experimental":{"x":{}},"tasks":{},"more":1}`, `{}`},
		{`{"roots":{"listChanged":true}}`, `{"roots":{}}`},
		{`{"elicitation":{}}`, `{"elicitation":{"form":{}}}`},
		{`{"elicitation":{"form":{"b":1.0,"a":[1, [], {"d":0,"c":"\u0063"}]}}}`, `{"elicitation":{"form":{"a":[1,[],{"c":"\u0063","d":0}],"b":1.0}}}`},
		{`{"elicitation":{"url":{}}}`, `{"elicitation":{"url":{}}}`},
		{`{"sampling":{"tools":{ },"context":{},"x":1},"elicitation":{"url":{},"form":{}},"roots":null}`, `{"elicitation":{"form":{},"url":{}},"sampling":{"context":{},"tools":{}}}`},
	} {
		c, err := readCapabilities([]byte(tt.in), wire.Span{End: uint32(len(tt.in))})
		if err != nil {
			t.Errorf("%s: %v", tt.in, err)
		}
		equal(t, tt.in, c.text, tt.out)
	}
	for _, in := range []string{`[]`, `null`, `{"sampling":1}`, `{"elicitation":{"form":1}}`, `{"sampling":{},"sampling":{}}`} {
		if _, err := readCapabilities([]byte(in), wire.Span{End: uint32(len(in))}); err == nil {
			t.Errorf("%s was taken", in)
		}
	}
}

func TestWhoSharesASession(t *testing.T) {
	scope := func(c *Config, _ *server) {
		c.Scope = func(r upstream.Request) string { return r.Header.Get("X-Tenant") }
	}
	tenant := func(s sender, name string) sender {
		s.header = map[string][]string{"X-Tenant": {name}}
		return s
	}
	nobody := sender{}
	for _, tt := range []struct {
		name string
		a, b sender
		want int
	}{
		{"equal", ann, ann, 1},
		{"no principal", nobody, nobody, 1},
		{"another principal", ann, bob, 2},
		{"none and one without a name", nobody, sender{who: person("")}, 2},
		{"other capabilities", ann, ann.can(`{"roots":{}}`), 2},
		{"capabilities in other words", ann, ann.can(`{"extensions":{}}`), 1},
		{"another scope", tenant(ann, "a"), tenant(ann, "b"), 2},
		{"the same scope", tenant(ann, "a"), tenant(ann, "a"), 1},
		{"a name that looks like a scope", tenant(sender{who: person("a")}, "nb"), tenant(sender{who: person("an")}, "b"), 2},
		{"one call at a time", ann.can(`{"roots":{}}`), ann.can(`{"roots":{}}`), 2},
	} {
		run(t, scope, func(r *rig) {
			a, b := r.ask(tt.a, "1", "tools/list", ""), r.ask(tt.b, "1", "tools/list", "")
			all := r.conns(tt.want)
			if tt.want == 1 {
				all[0].mu.Lock()
				one, two := all[0].calls[0], all[0].calls[1]
				all[0].mu.Unlock()
				two.result(`{"n":2}`)
				one.result(`{"n":1}`)
			} else {
				r.leg(all[0]).result(`{"n":1}`)
				r.leg(all[1]).result(`{"n":2}`)
			}
			synctest.Wait()
			equal(t, tt.name, at(a.last(), "result", "n")+at(b.last(), "result", "n"), "12")
		})
	}
}

func TestShared(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.Shared = true }, func(r *rig) {
		s := full.with(`"io.modelcontextprotocol/logLevel":"debug"`)
		r.ask(s, "1", "tools/call", tool)
		r.ask(s, "2", "tools/call", tool)
		ses := r.conns(1)[0]
		equal(t, "capabilities", at(string(ses.init.Msg.Raw), "params", "capabilities"), "{}")
		equal(t, "said", ses.said(), []string{hello})
		r.leg(ses).loose(form)
		synctest.Wait()
		if said := ses.said(); len(said) != 1 || at(said[0], "error", "code") != "-32601" {
			t.Errorf("the server got %q", said)
		}
	})
}

func TestAlone(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.Alone = func(upstream.Request) bool { return true } }, func(r *rig) {
		r.ask(sender{}, "1", "server/discover", "").last()
		if r.conns(1)[0].over() == nil {
			t.Error("the session is kept")
		}
		a, b := r.ask(sender{}, "1", "tools/list", ""), r.ask(sender{}, "1", "tools/list", "")
		all := r.conns(3)
		r.leg(all[1]).result("{}")
		synctest.Wait()
		a.last()
		if all[1].over() == nil || all[2].over() != nil {
			t.Error("a session must end with its request, and only with that")
		}
		b.call.Cancel(upstream.ErrCancelled)
		synctest.Wait()
		if all[2].over() == nil {
			t.Error("the session is kept")
		}
		// A parked call keeps its session.
		c, ses := r.parked(sender{caps: everything}, form)
		reply := c.last()
		if ses.over() != nil {
			t.Fatal("the session of a parked call was ended")
		}
		second := r.ask(sender{caps: everything}, "2", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
		r.leg(ses).result("{}")
		synctest.Wait()
		second.last()
		if ses.over() == nil {
			t.Error("the session is kept")
		}
		// A listen keeps it, too.
		n := r.ask(sender{}, "1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`)
		if len(n.take()) != 1 || r.conns(5)[4].over() != nil {
			t.Error("no acknowledgement, or no session")
		}
		n.call.Cancel(upstream.ErrCancelled)
		synctest.Wait()
		if r.conns(5)[4].over() == nil {
			t.Error("the session is kept")
		}
	})
}

// Calls wait for a session in the order in which they came.
func TestWaitForASession(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 2 }, func(r *rig) {
		var all []*reader
		for i := range 4 {
			all = append(all, r.ask(full, fmt.Sprint(i), "tools/call", tool))
		}
		ses := r.conns(2)
		for _, want := range []int{0, 2, 3} {
			r.leg(ses[0]).result("{}")
			synctest.Wait()
			equal(t, "reply", at(all[want].last(), "id"), fmt.Sprint(want))
		}
		r.leg(ses[1]).result("{}")
		synctest.Wait()
		all[1].last()
		// Another principal does not wait for any of that.
		r.ask(bob.can(everything), "9", "tools/call", tool)
		r.conns(3)
	})
}

// A session that nobody uses makes room for one of other capabilities.
func TestRoomForOtherCapabilities(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) {
		r.ask(ann, "1", "tools/list", "")
		first := r.conns(1)[0]
		other := r.ask(full, "2", "tools/call", tool)
		r.leg(first).result("{}")
		second := r.conns(2)[1]
		if first.over() == nil {
			t.Error("more sessions than may be")
		}
		r.leg(second).result("{}")
		synctest.Wait()
		other.last()
	})
}

// When every session waits for its client, waiting is of no use.
func TestAllParked(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 2 }, func(r *rig) {
		c, _ := r.parked(full, form)
		c.last()
		r.ask(full, "2", "tools/call", tool)
		waits := r.ask(full, "3", "tools/call", tool)
		second := r.conns(2)[1]
		r.leg(second).loose(form)
		r.gathered()
		equal(t, "who waited", waits.reason(), "-32603 busy")
		equal(t, "who comes", r.ask(full, "4", "tools/call", tool).reason(), "-32603 busy")
	})
}

func TestTooManyWait(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) {
		for i := range maxWaiting + 1 {
			r.ask(full, fmt.Sprint(i), "tools/call", tool)
		}
		equal(t, "one more", r.refused(full, "100", "tools/call", tool), "-32603 busy")
	})
}

// A session that dies is replaced for the next call; its calls get their errors
// from the connection, those not sent yet get its reason.
func TestDeath(t *testing.T) {
	gone := upstream.Errorf(mcp.CodeInternal, "process_exited", "server process exited (code 3)")
	run(t, nil, func(r *rig) {
		c := r.ask(ann, "1", "tools/list", "")
		r.conns(1)[0].End(gone)
		synctest.Wait()
		equal(t, "client", c.reason(), "-32603 process_exited")
		r.ask(ann, "2", "tools/list", "")
		r.conns(2)
	})
	run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) {
		a, b := r.ask(ann, "1", "tools/list", ""), r.ask(ann, "2", "server/discover", "")
		r.conns(1)[0].End(gone)
		synctest.Wait()
		equal(t, "call", a.reason(), "-32603 process_exited")
		equal(t, "discover", b.reason(), "-32603 process_exited")
	})
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) { // who waits gets the next one
		r.ask(full, "1", "tools/call", tool)
		c := r.ask(full, "2", "tools/call", tool)
		r.conns(1)[0].End(gone)
		r.leg(r.conns(2)[1]).result("{}")
		synctest.Wait()
		c.last()
	})
}

// A call that the server did not answer may still ask something there: nobody
// else gets that session.
func TestSessionAfterATimeout(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.ask(full, "1", "tools/call", tool)
		ses := r.conns(1)[0]
		r.leg(ses).end(upstream.CallTimeout)
		synctest.Wait()
		c.reason()
		if ses.over() == nil {
			t.Error("the session is kept")
		}
	})
}

// Nothing is sent before initialized has been taken by the server.
func TestInitializedComesFirst(t *testing.T) {
	run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) {
		r.ask(ann, "1", "tools/list", "")
		ses := r.conns(1)[0]
		ses.sendTo = func(upstream.Request) error {
			time.Sleep(time.Second) // an HTTP server takes its time
			return nil
		}
		ses.answerInit(fullServer)
		synctest.Wait()
		ses.mu.Lock()
		if len(ses.calls) > 0 {
			t.Error("a call was sent too early")
		}
		ses.mu.Unlock()
		time.Sleep(time.Second)
		r.leg(ses)
	})
}

// Sessions of all are bounded: an idle one makes room, and without any, who has none is
// refused, while who has one goes on in it.
func TestMaxSessions(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessions = 2 }, func(r *rig) {
		carl := sender{who: person("carl")}
		r.ask(ann, "1", "tools/list", "")
		b := r.ask(bob, "1", "tools/list", "")
		all := r.conns(2)
		equal(t, "a call", r.refused(carl, "1", "tools/list", ""), "-32603 busy")
		equal(t, "a listen", r.refused(carl, "1", "subscriptions/listen", `"notifications":{}`), "-32603 busy")
		r.ask(ann.can(`{"extensions":{}}`), "2", "tools/list", "") // equal capabilities: in the same session
		r.conns(2)
		r.leg(all[1]).result(`{"n":1}`)
		b.last()
		r.ask(carl, "2", "tools/list", "")
		r.conns(3)
		equal(t, "bob, whose idle session has made room", r.refused(bob, "2", "tools/list", ""), "-32603 busy")
	})
}
