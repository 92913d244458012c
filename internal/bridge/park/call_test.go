package park

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const hello = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

var (
	ann = sender{who: person("ann")}
	bob = sender{who: person("bob")}
)

// can is s with capabilities.
func (s sender) can(caps string) sender { s.caps = caps; return s }

// with is s with more members of _meta.
func (s sender) with(meta string) sender { s.meta += "," + meta; return s }

func TestCall(t *testing.T) {
	run(t, nil, func(r *rig) {
		s := ann.with(`"progressToken":"p","traceparent":"00-1","io.modelcontextprotocol/clientInfo":{"name":"c","version":"2"},"io.modelcontextprotocol/later":1`)
		s.header = map[string][]string{"X-User": {"ann"}}
		c := r.ask(s, `"one"`, "tools/call", `"name":"t","arguments":{"n":9007199254740993, "e":"\u0065"},"extra":[1]`)
		ses := r.conns(1)[0]
		equal(t, "initialize", string(ses.init.Msg.Raw), `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"2"}}}`)
		equal(t, "notifications", ses.said(), []string{hello})
		k := r.leg(ses)
		for _, req := range []upstream.Request{ses.init, k.req} {
			if req.Principal != person("ann") || req.Header.Get("X-User") != "ann" {
				t.Errorf("%s went without principal or headers", req.Method)
			}
		}
		equal(t, "request", string(k.req.Msg.Raw), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":9007199254740993, "e":"\u0065"},"extra":[1],"_meta":{"progressToken":1,"traceparent":"00-1"}}}`)
		k.progress(1)
		k.say(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":77,"progress":2}}`)
		k.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"emergency","data":1}}`)
		k.say(`{"jsonrpc":"2.0","method":"notifications/custom","params":{"x":1.50}}`)
		k.loose(`{"jsonrpc":"2.0","method":"notifications/custom","params":{"x":2}}`)
		k.result(`{"content":[ ],"structuredContent":{"n":1.0}}`)
		synctest.Wait()
		equal(t, "client", c.take(), []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/custom","params":{"x":1.50}}`,
			`{"jsonrpc":"2.0","id":"one","result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}},"content":[ ],"structuredContent":{"n":1.0}}}`,
			"END",
		})
	})
}

func TestClientInfoOfSignalbox(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.ask(ann, "1", "tools/list", "")
		equal(t, "clientInfo", at(string(r.conns(1)[0].init.Msg.Raw), "params", "clientInfo"), `{"name":"signalbox","version":"9"}`)
	})
}

func TestUnknownMethodIsTheServersMatter(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.ask(ann, "1", "custom/thing", `"a":1`)
		r.leg(r.conns(1)[0]).error(-32601, "no such method")
		synctest.Wait()
		equal(t, "reply", c.last(), `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}`)
	})
}

func TestRefusedHere(t *testing.T) {
	run(t, nil, func(r *rig) {
		for _, m := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe",
			"sampling/createMessage", "elicitation/create", "roots/list"} {
			equal(t, m, r.refused(ann, "1", m, ""), "-32601 method_era")
		}
		for _, m := range []string{"tasks/get", "tasks/list", "tasks/result", "tasks/cancel", "tasks/update"} {
			equal(t, m, r.refused(ann, "1", m, ""), "-32601 tasks_era")
		}
		equal(t, "task", r.refused(ann, "1", "tools/call", `"name":"t","task":{}`), "-32602 tasks_era")
		equal(t, "level", r.refused(ann.with(`"io.modelcontextprotocol/logLevel":"loud"`), "1", "tools/list", ""), "-32602 level")
		equal(t, "capabilities", r.refused(ann.can(`{"roots":true}`), "1", "tools/list", ""), "-32602 capabilities")
		equal(t, "capabilities twice", r.refused(ann.can(`{"roots":{},"Roots":{}}`), "1", "tools/list", ""), "-32602 capabilities")
		equal(t, "state", r.refused(ann, "1", "tools/call", `"name":"t","requestState":1`), "-32602 request_state")
		equal(t, "no state", r.refused(ann, "1", "tools/call", `"name":"t","inputResponses":{}`), "-32602 request_state")
		r.conns(0)
	})
}

func TestOpenFails(t *testing.T) {
	run(t, func(_ *Config, s *server) { s.openErr = upstream.ErrTooMany }, func(r *rig) {
		c := r.ask(ann, "5", "tools/list", "")
		equal(t, "client", c.reason(), "-32603 process_limit")
		if !errors.Is(c.err, upstream.ErrTooMany) {
			t.Errorf("%v", c.err)
		}
	})
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"go away"}}`,
		`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2026-07-28"}}`,
		`{"jsonrpc":"2.0","id":0,"result":1}`,
		`nonsense`,
	} {
		run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) {
			c := r.ask(ann, "5", "tools/list", "")
			ses := r.conns(1)[0]
			ses.reply.Deliver(upstream.Frame{Data: []byte(answer), Relation: upstream.Reply})
			ses.reply.End(nil)
			synctest.Wait()
			equal(t, answer, c.reason(), "-32603 start_failed")
			if ses.over() == nil {
				t.Error("the session was not ended")
			}
		})
	}
	run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) {
		c := r.ask(ann, "5", "tools/list", "")
		r.conns(1)[0].reply.End(upstream.ErrTimeout)
		synctest.Wait()
		equal(t, "client", c.reason(), "-32603 timeout")
	})
}

// A client that goes away is a cancel, in whatever the call is at.
func TestCancel(t *testing.T) {
	gone := errors.New("gone")
	cancel := func(r *rig, c *reader) {
		c.call.Cancel(gone)
		c.call.Cancel(gone)
		synctest.Wait()
		equal(t, "client", c.take(), []string{"END: gone"})
	}
	run(t, nil, func(r *rig) { // while it runs in a session that is shared
		c, other := r.ask(ann, "1", "tools/list", ""), r.ask(ann, "1", "tools/list", "")
		ses := r.conns(1)[0]
		second := r.leg(ses)
		cancel(r, c)
		ses.mu.Lock()
		first := ses.calls[0]
		ses.mu.Unlock()
		if first.wasCancelled() != gone || ses.over() != nil {
			t.Error("the server was not told, or the session was ended")
		}
		second.result("{}")
		synctest.Wait()
		other.last()
	})
	run(t, nil, func(r *rig) { // while it runs in a session of its own
		c := r.ask(ann.can(`{"roots":{}}`), "1", "tools/call", `"name":"t"`)
		ses := r.conns(1)[0]
		cancel(r, c)
		if r.leg(ses).wasCancelled() != gone || ses.over() == nil {
			t.Error("the server was not told, or somebody else may get the session")
		}
	})
	run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) { // before the session is open
		c := r.ask(ann, "1", "tools/list", "")
		cancel(r, c)
		ses := r.conns(1)[0]
		ses.answerInit(plainServer)
		synctest.Wait()
		if len(ses.calls) > 0 {
			t.Error("a cancelled call was sent")
		}
	})
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) { // while it waits for a session
		s := ann.can(`{"roots":{}}`)
		r.ask(s, "1", "tools/call", `"name":"t"`)
		c := r.ask(s, "2", "tools/call", `"name":"t"`)
		cancel(r, c)
		r.leg(r.conns(1)[0]).result("{}")
		synctest.Wait()
		if n := len(r.conns(1)[0].calls); n != 1 {
			t.Errorf("%d calls were sent", n)
		}
	})
}

// A client that goes away while its request is being sent.
func TestCancelWhileStarting(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.ask(ann, "1", "server/discover", "").last()
		ses := r.conns(1)[0]
		starts, goes := make(chan bool), make(chan bool)
		ses.start = func(upstream.Request) error {
			starts <- true
			<-goes
			return nil
		}
		c := &reader{t: t}
		k := r.park.withExchange(t, ann.request(t, "2", "tools/call", tool), c)
		<-starts
		k.Cancel(errors.New("gone"))
		equal(t, "client", c.take(), []string{"END: gone"})
		goes <- true
		if r.leg(ses).wasCancelled() == nil {
			t.Error("the server was not told")
		}
	})
}

// withExchange asks in another goroutine and returns the exchange as soon as there
// is one, before Ask has returned it.
func (s *Server) withExchange(t *testing.T, req upstream.Request, c *reader) *exchange {
	go func() {
		if _, err := s.Ask(req, c); err != nil {
			t.Error(err)
		}
	}()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.groups {
		for _, ses := range g.sessions {
			for k := range ses.calls {
				return k.ex
			}
		}
	}
	t.Fatal("no call is open")
	return nil
}

// A request that the connection refuses is over, and its session is free.
func TestStartRefused(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.ask(full, "1", "server/discover", "").last()
		ses := r.conns(1)[0]
		ses.start = func(upstream.Request) error { return upstream.Errorf(mcp.CodeInvalidParams, "policy", "unknown tool") }
		equal(t, "client", r.ask(full, "1", "tools/call", tool).reason(), "-32602 policy")
		ses.start = nil
		c := r.ask(full, "2", "tools/call", tool)
		r.leg(r.conns(1)[0]).result("{}")
		synctest.Wait()
		c.last()
	})
}

// Headers that repeat arguments are of the per-request era only.
func TestHeaders(t *testing.T) {
	run(t, nil, func(r *rig) {
		s := ann
		s.header = map[string][]string{"Mcp-Param-Region": {"eu"}, "X-User": {"ann"}}
		r.ask(s, "1", "tools/list", "")
		ses := r.conns(1)[0]
		for _, req := range []upstream.Request{ses.init, r.leg(ses).req} {
			if len(req.Header) != 1 || req.Header.Get("X-User") != "ann" {
				t.Errorf("%s went with %v", req.Method, req.Header)
			}
		}
		if len(s.header) != 2 {
			t.Error("the client's own headers were changed")
		}
	})
}

// A custom method may have a member of any name.
func TestTaskOfACustomMethod(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.ask(ann, "1", "custom/thing", `"task":1`)
		equal(t, "params", at(string(r.leg(r.conns(1)[0]).req.Msg.Raw), "params", "task"), "1")
	})
}

func TestClose(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.MaxSessionsPerPrincipal = 1 }, func(r *rig) {
		s := ann.can(`{"roots":{}}`)
		running := r.ask(s, "1", "tools/call", `"name":"t"`)
		waiting := r.ask(s, "2", "tools/call", `"name":"t"`)
		r.park.Close()
		synctest.Wait()
		for _, c := range []*reader{running, waiting} {
			c.reason()
			if !errors.Is(c.err, upstream.ErrShutdown) {
				t.Errorf("%v", c.err)
			}
		}
		for _, m := range []string{"tools/list", "subscriptions/listen"} {
			if _, err := r.try(ann, "3", m, `"notifications":{}`); !errors.Is(err, upstream.ErrShutdown) || upstream.RPCError(err).Code != mcp.CodeInternal {
				t.Errorf("%s: %v", m, err)
			}
		}
	})
	run(t, func(_ *Config, s *server) { s.init = "" }, func(r *rig) { // while a session opens
		c := r.ask(ann, "1", "tools/list", "")
		r.park.Close()
		synctest.Wait()
		if c.reason(); !errors.Is(c.err, upstream.ErrShutdown) {
			t.Errorf("%v", c.err)
		}
	})
}

func TestSetLevel(t *testing.T) {
	log := func(level string) string {
		return `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"` + level + `","data":1}}`
	}
	run(t, nil, func(r *rig) {
		s := ann.with(`"io.modelcontextprotocol/logLevel":"warning"`)
		c := r.ask(s, "1", "tools/call", `"name":"t"`)
		ses := r.conns(1)[0]
		equal(t, "before the call", ses.said(), []string{hello, `level "warning"`})
		k := r.leg(ses)
		for _, level := range levels {
			k.loose(log(level))
		}
		k.loose(log("strange"))
		k.result("{}")
		synctest.Wait()
		got := c.take()
		equal(t, "client", got[:len(got)-2], []string{log("warning"), log("error"), log("critical"), log("alert"), log("emergency")})
		// The level is the session's: it is said again only when it changes.
		r.ask(s, "2", "tools/call", `"name":"t"`)
		equal(t, "second call", ses.said(), []string(nil))
		r.leg(ses).result("{}")
		c = r.ask(ann.with(`"io.modelcontextprotocol/logLevel":"debug"`), "3", "tools/call", `"name":"t"`)
		equal(t, "third call", ses.said(), []string{`level "debug"`})
		r.leg(ses).loose(log("info"))
		synctest.Wait()
		equal(t, "client", c.take(), []string{log("info")})
		// Calls that want no messages do not share it.
		r.ask(ann, "4", "tools/call", `"name":"t"`)
		r.conns(2)
	})
	run(t, func(_ *Config, s *server) { s.init = plainServer }, func(r *rig) { // the server has no messages
		s := ann.with(`"io.modelcontextprotocol/logLevel":"info"`)
		r.ask(s, "1", "tools/call", `"name":"t"`)
		equal(t, "said", r.conns(1)[0].said(), []string{hello})
		r.ask(s, "2", "tools/call", `"name":"t"`)
		r.conns(1)
	})
}

// Calls that came before it was known that there are no messages share a session
// as soon as it is.
func TestLevelOfAServerWithoutMessages(t *testing.T) {
	run(t, func(c *Config, s *server) { c.MaxSessionsPerPrincipal = 1; s.init = "" }, func(r *rig) {
		s := ann.with(`"io.modelcontextprotocol/logLevel":"info"`)
		r.ask(s, "1", "tools/call", `"name":"t"`)
		r.ask(s, "2", "tools/call", `"name":"t"`)
		ses := r.conns(1)[0]
		ses.answerInit(plainServer)
		synctest.Wait()
		ses.mu.Lock()
		defer ses.mu.Unlock()
		if len(ses.calls) != 2 {
			t.Errorf("%d calls run", len(ses.calls))
		}
	})
}

func TestIdle(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.Idle = time.Minute }, func(r *rig) {
		c := r.ask(ann, "1", "tools/list", "")
		ses := r.conns(1)[0]
		time.Sleep(time.Hour)
		synctest.Wait()
		if ses.over() != nil {
			t.Fatal("ended under a call")
		}
		r.leg(ses).result("{}")
		synctest.Wait()
		c.last()
		time.Sleep(59 * time.Second)
		r.ask(ann, "2", "server/discover", "").last()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if ses.over() != nil {
			t.Fatal("ended too early")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if ses.over() == nil {
			t.Fatal("not ended")
		}
		r.park.mu.Lock()
		if len(r.park.groups) > 0 {
			t.Error("the group is kept")
		}
		r.park.mu.Unlock()
		r.ask(ann, "3", "tools/list", "")
		r.conns(2)
	})
}
