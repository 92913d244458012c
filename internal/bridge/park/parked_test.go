package park

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const everything = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}`

var full = ann.can(everything)

const (
	form   = `{"jsonrpc":"2.0","id":"q\u0031","method":"elicitation/create","params":{"message":"name?","requestedSchema":{"type":"object","properties":{}},"_meta":{"x":1},"task":{"ttl":1}}}`
	sample = `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{"maxTokens":10,"messages":[]}}`
	roots  = `{"jsonrpc":"2.0","id":8,"method":"roots/list"}`
)

const tool = `"name":"t","arguments":{"a":1}`

// parked begins a call and has the server ask it something.
func (r *rig) parked(s sender, questions ...string) (*reader, *conn) {
	r.t.Helper()
	c := r.ask(s, "1", "tools/call", tool)
	r.srv.mu.Lock()
	n := len(r.srv.conns)
	r.srv.mu.Unlock()
	ses := r.conns(n)[n-1]
	ses.said()
	for _, q := range questions {
		r.leg(ses).loose(q)
	}
	r.gathered()
	return c, ses
}

func (r *rig) gathered() {
	time.Sleep(gatherTime)
	synctest.Wait()
}

// retry is the params of a retry. answers are pairs of key and value.
func retry(reply string, answers ...string) string {
	var pairs []string
	for i := 0; i < len(answers); i += 2 {
		pairs = append(pairs, string(wire.AppendQuote(nil, answers[i]))+":"+answers[i+1])
	}
	return tool + `,"requestState":` + at(reply, "result", "requestState") + `,"inputResponses":{` + strings.Join(pairs, ",") + `}`
}

func TestQuestion(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		key := keys(reply)["elicitation/create"]
		if !strings.HasPrefix(key, "elicitation-") || len(key) < 30 {
			t.Errorf("key %q", key)
		}
		equal(t, "reply", reply, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"`+key+
			`":{"method":"elicitation/create","params":{"message":"name?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":`+at(reply, "result", "requestState")+
			`,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"1"}}}}`)
		equal(t, "parked", r.metric("signalbox_parked_calls"), 1)
		again := r.ask(full.with(`"progressToken":"second"`), `"two"`, "tools/call", retry(reply, key, `{"action":"accept", "content":{"n":1.0}}`, "other", `{}`))
		equal(t, "server", ses.said(), []string{`{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"accept", "content":{"n":1.0}}}`})
		equal(t, "parked", r.metric("signalbox_parked_calls"), 0)
		r.leg(ses).result(`{"content":[]}`)
		synctest.Wait()
		got := again.last()
		equal(t, "reply", at(got, "id")+at(got, "result", "resultType"), `"two""complete"`)
		equal(t, "asked, answered", []int{r.count(asked), r.count(answered)}, []int{1, 1})
		if n := len(ses.calls); n != 1 {
			t.Errorf("the server got %d calls", n)
		}
	})
}

// Progress goes to the round that runs, under its token; while none does, nowhere.
func TestProgressInEveryRound(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.ask(full.with(`"progressToken":1`), "1", "tools/call", tool)
		ses := r.conns(1)[0]
		k := r.leg(ses)
		k.progress(1)
		k.loose(form)
		k.progress(2)
		r.gathered()
		got := c.take()
		equal(t, "first round", got[:2], []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}`,
		})
		reply := got[2]
		k.progress(3)
		again := r.ask(full.with(`"progressToken":"b"`), "1", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
		k.progress(4)
		equal(t, "second round", again.take(), []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"b","progress":4}}`})
		k.loose(sample)
		r.gathered()
		reply = again.last()
		third := r.ask(full, "1", "tools/call", retry(reply, keys(reply)["sampling/createMessage"], `{}`))
		k.progress(5)
		k.result("{}")
		synctest.Wait()
		equal(t, "third round", len(third.take()), 2)
	})
}

func TestQuestionsAtTheSameTime(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form, sample, roots)
		reply := c.last()
		k := keys(reply)
		if len(k) != 3 {
			t.Fatalf("asked for %v", k)
		}
		equal(t, "roots", at(reply, "result", "inputRequests", k["roots/list"]), `{"method":"roots/list"}`)
		equal(t, "sampling", at(reply, "result", "inputRequests", k["sampling/createMessage"]), `{"method":"sampling/createMessage","params":{"maxTokens":10,"messages":[]}}`)
		// One answer is missing: it is asked for again, at once.
		second := r.ask(full, "2", "tools/call", retry(reply, k["sampling/createMessage"], `{"role":"assistant"}`, k["roots/list"], `{"roots":[]}`))
		equal(t, "server", ses.said(), []string{`{"jsonrpc":"2.0","id":7,"result":{"role":"assistant"}}`, `{"jsonrpc":"2.0","id":8,"result":{"roots":[]}}`})
		next := second.last()
		if n := keys(next); len(n) != 1 || n["elicitation/create"] != k["elicitation/create"] {
			t.Errorf("asked again for %v", n)
		}
		third := r.ask(full, "3", "tools/call", retry(next, k["elicitation/create"], `{"action":"decline"}`))
		equal(t, "server", ses.said(), []string{`{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"decline"}}`})
		r.leg(ses).result("{}")
		synctest.Wait()
		third.last()
		equal(t, "asked, answered", []int{r.count(asked), r.count(answered)}, []int{3, 3})
	})
}

// What is asked while the client thinks is for the next round.
func TestQuestionWhileParked(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		r.leg(ses).loose(sample)
		r.gathered()
		second := r.ask(full, "2", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
		next := second.last()
		if k := keys(next); len(k) != 1 || k["sampling/createMessage"] == "" {
			t.Errorf("asked for %v", k)
		}
		equal(t, "asked", r.count(asked), 2)
		r.ask(full, "3", "tools/call", retry(next, keys(next)["sampling/createMessage"], `{}`))
		r.leg(ses).result("{}")
	})
}

// Every token that is not of this very round gets the same answer.
func TestStatesThatAreNotGood(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		key := keys(reply)["elicitation/create"]
		good := retry(reply, key, `{}`)
		const no = "-32602 request_state"
		equal(t, "another principal", r.refused(bob.can(everything), "2", "tools/call", good), no)
		equal(t, "other arguments", r.refused(full, "2", "tools/call", strings.Replace(good, `"a":1`, `"a":2`, 1)), no)
		equal(t, "another tool", r.refused(full, "2", "tools/call", strings.Replace(good, `"t"`, `"u"`, 1)), no)
		equal(t, "another method", r.refused(full, "2", "prompts/get", good), no)
		equal(t, "nonsense", r.refused(full, "2", "tools/call", tool+`,"requestState":"x"`), no)
		sealed := func(kind state.Kind, payload string) string {
			req := full.request(t, "1", "tools/call", tool)
			return tool + `,"requestState":"` + r.cfg.Ring.Seal(state.Bind("s", &req), kind, []byte(payload), 0) + `"`
		}
		equal(t, "another kind", r.refused(full, "2", "tools/call", sealed(state.Wrapped, "")), no)
		equal(t, "no ticket", r.refused(full, "2", "tools/call", sealed(state.Parked, "x")), no)
		equal(t, "no round", r.refused(full, "2", "tools/call", sealed(state.Parked, "0123456789abcdef")), no)
		equal(t, "unknown id", r.refused(full, "2", "tools/call", sealed(state.Parked, "0123456789abcdef\x01")), no)
		equal(t, "another replica", r.refused(full, "2", "tools/call", sealed(state.Parked, "0123456789abcdef\x01other")), "elsewhere other")
		// Responses that cannot be read do not consume the round.
		for _, bad := range []string{`[]`, `1`, `{"k":1}`, `{"k":{},"k":{}}`} {
			equal(t, bad, r.refused(full, "2", "tools/call", tool+`,"requestState":`+at(reply, "result", "requestState")+`,"inputResponses":`+bad), "-32602 input_responses")
		}
		equal(t, "server", ses.said(), []string(nil))
		second := r.ask(full, "2", "tools/call", good)
		equal(t, "while it runs", r.refused(full, "2", "tools/call", good), no)
		r.leg(ses).loose(sample)
		r.gathered()
		next := second.last()
		equal(t, "an earlier round", r.refused(full, "2", "tools/call", good), no)
		r.ask(full, "2", "tools/call", retry(next, keys(next)["sampling/createMessage"], `{}`))
		r.leg(ses).result("{}")
		synctest.Wait()
		equal(t, "consumed", r.refused(full, "2", "tools/call", retry(next)), no)
	})
}

func TestRetryOfAnotherReplica(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.Replica = "one" }, func(r *rig) {
		c, _ := r.parked(full, form)
		reply := c.last()
		cfg := r.cfg
		cfg.Replica = "two"
		if _, err := New(cfg).Ask(full.request(t, "2", "tools/call", retry(reply)), &reader{t: t}); !isElsewhere(err, "one") {
			t.Errorf("%v", err)
		}
	})
}

func isElsewhere(err error, replica string) bool {
	var e *upstream.Elsewhere
	return errors.As(err, &e) && e.Replica == replica
}

// An answer that comes while the call is parked waits for its client.
func TestAnswerWhileParked(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		r.leg(ses).result(`{"a":1}`)
		synctest.Wait()
		equal(t, "server", ses.said(), []string{`{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"cancel"}}`})
		equal(t, "abandoned", r.count(abandoned), 1)
		// The session is free meanwhile.
		other := r.ask(full, "5", "tools/call", tool)
		r.leg(ses).result(`{"b":1}`)
		synctest.Wait()
		other.last()
		second := r.ask(full, "2", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
		got := second.last()
		equal(t, "reply", at(got, "id")+at(got, "result", "a"), "21")
		r.conns(1)
	})
}

// A call that is answered before its question went out is not parked.
func TestAnswerWhileGathering(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.ask(full, "1", "tools/call", tool)
		ses := r.conns(1)[0]
		ses.said()
		k := r.leg(ses)
		k.loose(roots)
		k.loose(form)
		k.result(`{"a":1}`)
		r.gathered()
		equal(t, "client", at(c.last(), "result", "a"), "1")
		said := ses.said()
		equal(t, "server", said, []string{
			`{"jsonrpc":"2.0","id":8,"error":{"code":-32603,"message":"the call that this was asked for is over","data":{"source":"signalbox","reason":"call_over"}}}`,
			`{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"cancel"}}`,
		})
	})
}

func TestExpiry(t *testing.T) {
	run(t, func(c *Config, _ *server) { c.Question = time.Minute }, func(r *rig) {
		c, ses := r.parked(full, form, sample)
		reply := c.last()
		time.Sleep(59 * time.Second)
		// A round that leaves something out begins the time anew.
		second := r.ask(full, "2", "tools/call", retry(reply))
		next := second.last()
		time.Sleep(59 * time.Second)
		synctest.Wait()
		if ses.over() != nil {
			t.Fatal("expired too early")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		said := ses.said()
		if len(said) != 2 || said[0] != `{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"cancel"}}` || at(said[1], "error", "data", "reason") != `"expired"` {
			t.Errorf("the server got %q", said)
		}
		if r.leg(ses).wasCancelled() == nil || ses.over() == nil {
			t.Error("the call was not cancelled, or the session not ended")
		}
		equal(t, "expired", r.count(expired), 2)
		equal(t, "retry", r.refused(full, "3", "tools/call", retry(next)), "-32602 request_state")
	})
}

// A session that dies leaves its parked call a clear error, until it expires.
func TestDeathWhileParked(t *testing.T) {
	gone := upstream.Errorf(mcp.CodeInternal, "process_exited", "server process exited (code 3)")
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		ses.End(gone)
		synctest.Wait()
		equal(t, "parked", r.metric("signalbox_parked_calls"), 1)
		second := r.ask(full, "2", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
		equal(t, "client", second.reason(), "-32603 process_exited")
		equal(t, "again", r.refused(full, "2", "tools/call", retry(reply)), "-32602 request_state")
	})
	run(t, func(c *Config, _ *server) { c.Question = time.Minute }, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		ses.End(gone)
		time.Sleep(time.Minute)
		synctest.Wait()
		equal(t, "parked", r.metric("signalbox_parked_calls"), 0)
		equal(t, "retry", r.refused(full, "2", "tools/call", retry(reply)), "-32602 request_state")
	})
}

// A client that goes away in a later round cancels as one of the first.
func TestCancelInALaterRound(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		c.call.Cancel(upstream.ErrCancelled) // its exchange is over: nothing happens
		second := r.ask(full, "2", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
		r.leg(ses).loose(sample) // and a question is fresh
		ses.said()
		second.call.Cancel(upstream.ErrCancelled)
		r.gathered()
		equal(t, "client", second.take(), []string{"END: the request was cancelled"})
		if said := ses.said(); len(said) != 1 || at(said[0], "error", "data", "reason") != `"call_over"` {
			t.Errorf("the server got %q", said)
		}
		if r.leg(ses).wasCancelled() == nil || ses.over() == nil {
			t.Error("the call was not cancelled, or the session not ended")
		}
	})
}

func TestCloseWhileParked(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		r.park.Close()
		synctest.Wait()
		if ses.over() != upstream.ErrShutdown {
			t.Errorf("the session ended with %v", ses.over())
		}
		equal(t, "retry", r.refused(full, "2", "tools/call", retry(reply)), "-32603 shutdown")
	})
}

// An answer that cannot be sent is not waited for.
func TestAnswerNotSent(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form)
		reply := c.last()
		ses.mu.Lock()
		ses.sendTo = func(upstream.Request) error { return upstream.ErrBusy }
		ses.mu.Unlock()
		second := r.ask(full, "2", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
		equal(t, "client", second.reason(), "-32603 busy")
		if ses.over() == nil {
			t.Error("the session was not ended")
		}
	})
}

func TestTicket(t *testing.T) {
	want := ticket{parkID(bytes.Repeat([]byte{9}, 16)), 1 << 40, "replica"}
	got, ok := readTicket(want.bytes())
	if !ok || got != want {
		t.Errorf("got %v %v", got, ok)
	}
}
