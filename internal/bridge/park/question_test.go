package park

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func TestUndeclared(t *testing.T) {
	url := `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"m","elicitationId":"e"}}`
	tools := `{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"messages":[],"tools":[]}}`
	choice := `{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{"messages":[],"toolChoice":{}}}`
	for _, tt := range []struct {
		caps, question string
		ok             bool
	}{
		{`{"elicitation":{}}`, form, true},
		{`{"elicitation":{}}`, strings.Replace(form, `"params":{`, `"params":{"mode":"form",`, 1), true},
		{`{"elicitation":{}}`, strings.Replace(form, `"params":{`, `"params":{"mode":"dance",`, 1), false},
		{`{"elicitation":{"form":{}}}`, form, true},
		{`{"elicitation":{"form":null,"url":{}}}`, form, false},
		{`{"elicitation":{}}`, url, false},
		{`{"elicitation":{"url":{}}}`, url, true},
		{`{"elicitation":null,"roots":{}}`, form, false},
		{`{}`, form, false},
		{`{"sampling":{}}`, sample, true},
		{`{"sampling":{}}`, tools, false},
		{`{"sampling":{}}`, choice, false},
		{`{"sampling":{"tools":{}}}`, tools, true},
		{`{"roots":{}}`, sample, false},
		{`{"roots":{}}`, roots, true},
		{`{"sampling":{}}`, roots, false},
		{everything, `{"jsonrpc":"2.0","id":4,"method":"custom/ask","params":{}}`, false},
	} {
		run(t, nil, func(r *rig) {
			c, ses := r.parked(ann.can(tt.caps), tt.question)
			if tt.ok {
				if k := keys(c.last()); len(k) != 1 {
					t.Errorf("%s: asked for %v", tt.question, k)
				}
				return
			}
			said := ses.said()
			if len(said) != 1 || at(said[0], "error", "code") != "-32601" {
				t.Errorf("%s with %s: the server got %q", tt.question, tt.caps, said)
			}
			r.leg(ses).result("{}") // the call goes on
			synctest.Wait()
			c.last()
		})
	}
}

// The method must be one that may ask.
func TestOtherMethodsAskNothing(t *testing.T) {
	run(t, nil, func(r *rig) {
		c := r.ask(full, "1", "completion/complete", "")
		ses := r.conns(1)[0]
		ses.said()
		r.leg(ses).loose(form)
		r.gathered()
		equal(t, "server", ses.said(), []string{`{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"cancel"}}`})
		r.leg(ses).result("{}")
		synctest.Wait()
		c.last()
	})
	for _, m := range []string{"prompts/get", "resources/read"} {
		run(t, nil, func(r *rig) {
			c := r.ask(full, "1", m, `"name":"n","uri":"u"`)
			r.leg(r.conns(1)[0]).say(form) // as an HTTP server sends it
			r.gathered()
			if k := keys(c.last()); len(k) != 1 {
				t.Errorf("%s: asked for %v", m, k)
			}
		})
	}
}

func TestURLMode(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, _ := r.parked(full, `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","elicitationId":"e","url":"https://x","message":"m"}}`)
		reply := c.last()
		equal(t, "entry", at(reply, "result", "inputRequests", keys(reply)["elicitation/create"]),
			`{"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"m"}}`)
	})
}

// -32042: the client visits the URLs and makes the request anew.
func TestURLsFirst(t *testing.T) {
	const failure = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"m","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://a","message":"one"},{"mode":"url","url":"https://b","message":"two","_meta":{}}]}}}`
	run(t, nil, func(r *rig) {
		c := r.ask(full, "1", "tools/call", tool)
		ses := r.conns(1)[0]
		k := r.leg(ses)
		k.answer([]byte(strings.Replace(failure, "%s", string(k.id()), 1)))
		synctest.Wait()
		reply := c.last()
		requests := at(reply, "result", "inputRequests")
		if strings.Count(requests, `"method":"elicitation/create"`) != 2 || !strings.Contains(requests, `{"mode":"url","url":"https://a","message":"one"}`) ||
			!strings.Contains(requests, `{"mode":"url","url":"https://b","message":"two"}`) {
			t.Errorf("inputRequests %s", requests)
		}
		equal(t, "parked", r.metric("signalbox_parked_calls"), 0)
		params := retry(reply, keys(reply)["elicitation/create"], `{"action":"accept"}`)
		for range 2 { // it holds nothing, so it may be used again
			again := r.ask(full, "2", "tools/call", params)
			k = r.leg(ses)
			equal(t, "request", string(k.req.Msg.Bytes(k.req.Msg.Params)), `{"name":"t","arguments":{"a":1},"_meta":{}}`)
			k.result("{}")
			synctest.Wait()
			equal(t, "reply", at(again.last(), "id"), "2")
		}
		equal(t, "another principal", r.refused(bob.can(everything), "2", "tools/call", params), "-32602 request_state")
		r.conns(1)
	})
	run(t, nil, func(r *rig) {
		c := r.ask(ann.can(`{"elicitation":{}}`), "1", "tools/call", tool)
		k := r.leg(r.conns(1)[0])
		k.answer([]byte(strings.Replace(failure, "%s", string(k.id()), 1)))
		synctest.Wait()
		got := c.last()
		equal(t, "error", at(got, "error", "code")+at(got, "error", "data"), `-32021{"requiredCapabilities":{"elicitation":{"url":{}}}}`)
	})
	// A process that all share can say it, too.
	run(t, func(c *Config, _ *server) { c.Shared = true }, func(r *rig) {
		c := r.ask(full, "1", "tools/call", tool)
		k := r.leg(r.conns(1)[0])
		k.answer([]byte(strings.Replace(failure, "%s", string(k.id()), 1)))
		synctest.Wait()
		equal(t, "result", at(c.last(), "result", "resultType"), `"input_required"`)
	})
	// Other methods have no form for it.
	run(t, nil, func(r *rig) {
		c := r.ask(full, "1", "completion/complete", "")
		k := r.leg(r.conns(1)[0])
		k.answer([]byte(strings.Replace(failure, "%s", string(k.id()), 1)))
		synctest.Wait()
		equal(t, "code", at(c.last(), "error", "code"), "-32603")
	})
}

func TestTooManyParked(t *testing.T) {
	for name, change := range map[string]func(*Config, *server){
		"in all":           func(c *Config, _ *server) { c.MaxParked = 1 },
		"of one principal": func(c *Config, _ *server) { c.MaxParkedPerPrincipal = 1 },
	} {
		run(t, change, func(r *rig) {
			c, first := r.parked(full, form)
			reply := c.last()
			second, ses := r.parked(full, form, sample)
			said := ses.said()
			if len(said) != 2 || said[0] != `{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"cancel"}}` || at(said[1], "error", "data", "reason") != `"busy"` {
				t.Errorf("%s: the server got %q", name, said)
			}
			equal(t, "refused", r.count(refused), 2)
			r.leg(ses).result("{}") // the call goes on
			synctest.Wait()
			second.last()
			if name == "of one principal" {
				c, _ := r.parked(bob.can(everything), form)
				c.last()
			}
			// The other's is as it was, and its end makes room.
			third := r.ask(full, "2", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`))
			r.leg(first).result("{}")
			synctest.Wait()
			third.last()
			third = r.ask(full, "3", "tools/call", tool)
			r.leg(first).loose(form)
			r.gathered()
			if k := keys(third.last()); len(k) != 1 {
				t.Errorf("asked for %v", k)
			}
		})
	}
}

func TestTooManyQuestionsOfOneCall(t *testing.T) {
	run(t, nil, func(r *rig) {
		var questions []string
		for i := range maxAsks + 1 {
			questions = append(questions, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"roots/list"}`, i))
		}
		c, ses := r.parked(full, questions...)
		if n := strings.Count(c.last(), `"method":"roots/list"`); n != maxAsks {
			t.Errorf("asked %d questions", n)
		}
		if said := ses.said(); len(said) != 1 || at(said[0], "error", "data", "reason") != `"busy"` {
			t.Errorf("the server got %q", said)
		}
	})
}

// The server may take a question back.
func TestWithdrawn(t *testing.T) {
	const back = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
	run(t, nil, func(r *rig) {
		c := r.ask(full, "1", "tools/call", tool)
		ses := r.conns(1)[0]
		ses.said()
		k := r.leg(ses)
		k.loose(sample)
		k.loose(back)
		r.gathered()
		equal(t, "client", c.take(), []string(nil))
		k.loose(form)
		k.loose(sample)
		r.gathered()
		reply := c.last()
		k.loose(back)
		second := r.ask(full, "1", "tools/call", retry(reply, keys(reply)["elicitation/create"], `{}`, keys(reply)["sampling/createMessage"], `{}`))
		if said := ses.said(); len(said) != 1 || at(said[0], "id") != `"q\u0031"` {
			t.Errorf("the server got %q", said)
		}
		k.result("{}")
		synctest.Wait()
		second.last()
		equal(t, "withdrawn", r.count(withdrawn), 2)
	})
}

// A retry that declares less is not asked what it does not declare.
func TestRetryDeclaresLess(t *testing.T) {
	run(t, nil, func(r *rig) {
		c, ses := r.parked(full, form, sample)
		reply := c.last()
		second := r.ask(ann.can(`{"elicitation":{}}`), "2", "tools/call", retry(reply))
		if k := keys(second.last()); len(k) != 1 || k["elicitation/create"] == "" {
			t.Errorf("asked for %v", k)
		}
		if said := ses.said(); len(said) != 1 || at(said[0], "error", "data", "reason") != `"capability"` {
			t.Errorf("the server got %q", said)
		}
	})
}

func TestQuestionsOutsideACall(t *testing.T) {
	run(t, nil, func(r *rig) {
		r.ask(full, "1", "server/discover", "").last()
		ses := r.conns(1)[0]
		ask := func(raw string) string {
			t.Helper()
			ses.said()
			ses.ask(raw)
			synctest.Wait()
			said := ses.said()
			if len(said) != 1 {
				t.Fatalf("the server got %q", said)
			}
			return said[0]
		}
		equal(t, "roots", at(ask(roots), "error", "code"), "-32601")
		equal(t, "elicitation", ask(form), `{"jsonrpc":"2.0","id":"q\u0031","result":{"action":"cancel"}}`)
		equal(t, "sampling", at(ask(sample), "error", "code"), "-32601")
		equal(t, "custom", at(ask(`{"jsonrpc":"2.0","id":51,"method":"custom/ask"}`), "error", "code"), "-32601")
		equal(t, "ping", ask(`{"jsonrpc":"2.0","id":52,"method":"ping"}`), `{"jsonrpc":"2.0","id":52,"result":{}}`)
		ses.ask(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`)
		// The answer that a client once gave is remembered.
		c, _ := r.parked(full, roots)
		reply := c.last()
		second := r.ask(full, "2", "tools/call", retry(reply, keys(reply)["roots/list"], `{"roots":[{"uri":"file:///a"}]}`))
		r.leg(ses).result("{}")
		synctest.Wait()
		second.last()
		equal(t, "roots", ask(roots), `{"jsonrpc":"2.0","id":8,"result":{"roots":[{"uri":"file:///a"}]}}`)
		equal(t, "unrelated", r.count(unrelated), 5)
	})
	run(t, nil, func(r *rig) { // a ping that comes for a call
		r.ask(ann, "1", "tools/call", tool)
		ses := r.conns(1)[0]
		ses.said()
		r.leg(ses).loose(`{"jsonrpc":"2.0","id":52,"method":"ping"}`)
		synctest.Wait()
		equal(t, "ping", ses.said(), []string{`{"jsonrpc":"2.0","id":52,"result":{}}`})
	})
}

// What comes on the session's own stream while one call has the session is of that
// call; and that stream is listened to.
func TestQuestionsOnTheSessionsOwnStream(t *testing.T) {
	run(t, nil, func(r *rig) {
		s := full.with(`"io.modelcontextprotocol/logLevel":"info"`)
		c := r.ask(s, "1", "tools/call", tool)
		ses := r.conns(1)[0]
		equal(t, "listening", ses.listen, []bool{true})
		const message = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":1}}`
		ses.ask(message)
		equal(t, "client", c.take(), []string{message})
		ses.ask(form)
		ses.ask(sample)
		ses.ask(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		r.gathered()
		if k := keys(c.last()); len(k) != 1 || k["elicitation/create"] == "" {
			t.Errorf("asked for %v", k)
		}
	})
}
