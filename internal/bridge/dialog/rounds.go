package dialog

import (
	"bytes"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const (
	// pace is the pause before a request is made anew for which the server gave
	// a requestState and asked nothing.
	pace = 250 * time.Millisecond
	// maxQuestions bounds what one input_required result asks for.
	maxQuestions = 64
)

// question is one input request of the server as a request to the client.
type question struct {
	k      *call
	name   []byte // raw, as the server called it
	method mcp.Method
	id     []byte // raw token
	key    string // its value
	frame  []byte // the request; given away when it is delivered

	// guarded by conn.mu
	sent   bool
	done   bool   // the client has answered
	answer []byte // by this raw result
}

// inquire goes on with a call for which the server needs input: the client is
// asked, and when all answers are in, the request is made anew, at the address that
// asked for it.
func (k *call) inquire(msg *wire.Message, r *result, address string) {
	if !retries(k.method) {
		k.end(badAnswer("asks for input, which it may not for " + k.method.String()))
		return
	}
	if r.state.Present() && !isString(msg.Raw, r.state) {
		k.end(badAnswer("has a requestState that is no string"))
		return
	}
	asked, fault, unable := k.questions(msg.Raw, r.requests)
	switch {
	case fault != "":
		k.end(badAnswer(fault))
		return
	case unable != nil:
		k.unable(unable)
		return
	case len(asked) == 0 && !r.state.Present():
		k.end(badAnswer("asks for input, but not which"))
		return
	}
	k.next = round{state: bytes.Clone(r.state.Of(msg.Raw)), address: address}
	c := k.c
	c.mu.Lock()
	if k.over != nil {
		c.mu.Unlock()
		return
	}
	if k.rounds++; k.rounds > c.srv.cfg.MaxRounds {
		c.mu.Unlock()
		k.end(upstream.Errorf(mcp.CodeInternal, "rounds",
			"the server %q asked for input more than %d times in one call", c.srv.cfg.Name, c.srv.cfg.MaxRounds))
		return
	}
	n := k.rounds
	if len(asked) == 0 {
		k.pause = time.AfterFunc(pace, func() { k.resume(n) })
		c.mu.Unlock()
		return
	}
	k.asked, k.owed = asked, len(asked)
	for _, q := range asked {
		c.questions[q.key] = q
	}
	k.pause = time.AfterFunc(c.srv.cfg.Question, func() { k.unanswered(n) })
	c.mu.Unlock()
	for _, q := range asked {
		if !q.pose() {
			return
		}
	}
}

// resume makes the request anew after a pause.
func (k *call) resume(n int) {
	c := k.c
	c.mu.Lock()
	due := k.over == nil && k.rounds == n
	c.mu.Unlock()
	if due {
		c.srv.count.state.Inc()
		k.proceed()
	}
}

// unanswered ends a call whose client took too long.
func (k *call) unanswered(n int) {
	c := k.c
	c.mu.Lock()
	due := k.over == nil && k.rounds == n && k.owed > 0
	c.mu.Unlock()
	if due {
		k.end(&upstream.Error{Code: mcp.CodeServer, Reason: "timeout", Err: upstream.ErrTimeout,
			Message: "the client did not answer what the server asked within " + c.srv.cfg.Question.String() + " (--question-timeout)"})
	}
}

// pose sends a question. false: the call is over.
func (q *question) pose() bool {
	k, c := q.k, q.k.c
	c.mu.Lock()
	over := k.over != nil
	c.mu.Unlock()
	if over {
		return false
	}
	if !c.homes(k.sink, upstream.Frame{Data: q.frame, Method: q.method}) {
		k.end(upstream.Errorf(mcp.CodeInternal, "no_client",
			"the server %q asks for %s, but the client has no stream open that could take the request", c.srv.cfg.Name, q.method))
		return false
	}
	c.mu.Lock()
	q.sent = true
	reason := k.over
	c.mu.Unlock()
	if reason != nil { // whoever ended the call did not know that it was sent
		q.retract(reason)
	}
	return reason == nil
}

// retract tells the client that nobody waits for its answer any more.
func (q *question) retract(reason error) {
	data := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`)
	data = append(data, q.id...)
	data = append(data, `,"reason":`...)
	data = wire.AppendQuote(data, reason.Error())
	q.k.c.homes(q.k.sink, upstream.Frame{Data: append(data, "}}"...), Method: mcp.NotifCancelled})
}

// respond takes the client's answer. One to nothing that is open may be late:
// the call has ended. It is dropped.
func (c *conn) respond(m *wire.Message) error {
	key, _ := idKey(m.Bytes(m.ID))
	c.mu.Lock()
	if err := c.closedLocked(); err != nil {
		c.mu.Unlock()
		return err
	}
	q := c.questions[key]
	if q == nil {
		c.mu.Unlock()
		return nil
	}
	delete(c.questions, key)
	q.done = true
	k := q.k
	if !isObject(m.Raw, m.Result) {
		c.mu.Unlock()
		k.unable(upstream.Errorf(mcp.CodeInternal, "declined", "the server %q asked for %s, and the client %s",
			c.srv.cfg.Name, q.method, refusal(m)))
		return nil
	}
	q.answer = m.Bytes(m.Result)
	if k.owed--; k.owed > 0 {
		c.mu.Unlock()
		return nil
	}
	k.restLocked()
	k.next.responses = responses(k.asked)
	k.asked = nil
	c.mu.Unlock()
	c.srv.count.input.Inc()
	k.proceed()
	return nil
}

// refusal is what an answer says that is no result: the per-request era has no
// words for it.
func refusal(m *wire.Message) string {
	if !m.Error.Present() {
		return "answered with a result that is no object"
	}
	f := readFailure(m)
	return "answered with an error: " + f.message + " (" + cut([]byte(f.code), 32) + ")"
}

// responses are the answers under the names that the server gave, in its order.
func responses(asked []*question) []byte {
	members := make([][]byte, len(asked))
	for i, q := range asked {
		members[i] = slices.Concat(q.name, []byte(":"), q.answer)
	}
	return slices.Concat([]byte("{"), bytes.Join(members, comma), []byte("}"))
}
