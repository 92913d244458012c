package dialog

import (
	"bytes"
	"crypto/rand"
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// call is one open request of the client. It is in its conn's table until
// somebody takes it out, who then ends its sink. It implements upstream.Call.
type call struct {
	// static
	c      *conn
	method mcp.Method
	id     []byte // the client's raw id token
	from   origin
	sink   upstream.Sink
	tool   string       // of tools/call
	msg    wire.Message // the client's request, from which each leg is made

	// owned by whoever makes the next leg: there is one at a time
	again bool // the client's id was used; the next leg needs another
	next  round

	// guarded by conn.mu
	n         uint64
	over      error // why it is not in the table; nil: it is
	leg       *leg  // on its way to the server and back; nil: none
	rounds    int   // input_required results so far
	refreshed bool  // it was sent anew after -32020
	asked     []*question
	owed      int         // of asked, how many are not answered
	limit     *time.Timer // for the whole call
	pause     *time.Timer // for the questions, or until the next leg
	watching  *watching   // of resources/subscribe and unsubscribe
}

// round is what a leg says beyond the client's own request.
type round struct {
	responses []byte // raw inputResponses; nil: none
	state     []byte // raw requestState; nil: none
	address   string // of an HTTP server that gave the state; see upstream.Request
}

func newCall(c *conn, req *upstream.Request, sink upstream.Sink) *call {
	k := &call{c: c, method: req.Method, sink: sink, from: originOf(req), msg: req.Msg}
	k.id = bytes.Clone(req.Msg.Bytes(req.Msg.ID))
	if req.Method == mcp.ToolsCall {
		name, _ := wire.Unquote(req.Msg.Bytes(req.Msg.P.Name))
		k.tool = string(name)
	}
	return k
}

// enter puts the call into the table.
func (k *call) enter() error {
	c := k.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.closedLocked(); err != nil {
		return err
	}
	c.entered++
	k.n = c.entered
	c.calls[k] = struct{}{}
	k.limit = time.AfterFunc(c.srv.cfg.CallLimit, k.tooLong)
	return nil
}

func (k *call) tooLong() { k.end(upstream.CallLimit) }

// local answers a request that the server need not see, with {} or an error.
func (k *call) local(err error) error {
	k.c.mu.Lock()
	if err == nil {
		err = k.c.closedLocked()
	}
	k.over = upstream.ErrClosed
	k.c.mu.Unlock()
	if err == nil {
		k.answer([]byte("{}"))
	}
	return err
}

// take takes the call out of the table. true: the caller has to end the sink.
func (k *call) take(reason error) bool {
	k.c.mu.Lock()
	leg, asked, taken := k.takeLocked(reason)
	k.c.mu.Unlock()
	if taken {
		k.clean(leg, asked, reason)
	}
	return taken
}

func (k *call) takeLocked(reason error) (*leg, []*question, bool) {
	if k.over != nil {
		return nil, nil, false
	}
	c := k.c
	k.over = reason
	delete(c.calls, k)
	k.limit.Stop()
	k.restLocked()
	leg := k.leg
	var asked []*question // that the client has and owes an answer to
	for _, q := range k.asked {
		delete(c.questions, q.key)
		if q.sent && !q.done {
			asked = append(asked, q)
		}
	}
	k.leg, k.asked = nil, nil
	if k.watching != nil {
		k.watching.leaveLocked()
	}
	return leg, asked, true
}

// restLocked stops the clock of a pause between two legs.
func (k *call) restLocked() {
	if k.pause != nil {
		k.pause.Stop()
		k.pause = nil
	}
}

// clean tells both sides that a call is over: the server whose answer nobody waits
// for, and the client who has been asked something.
func (k *call) clean(l *leg, asked []*question, reason error) {
	if l != nil {
		l.cancel(reason)
	}
	for _, q := range asked {
		q.retract(reason)
	}
}

// end ends a call without an answer.
func (k *call) end(reason error) {
	if k.take(reason) {
		k.sink.End(reason)
	}
}

// Cancel ends the call without waiting for the server, which is told.
func (k *call) Cancel(reason error) { k.end(reason) }

var errAnswered = errors.New("the request was answered")

// finish ends a call with its response.
func (k *call) finish(data, buffer []byte) {
	if k.take(errAnswered) {
		k.deliver(data, buffer)
	}
}

// result ends a call with a result.
func (k *call) result(raw []byte) {
	if k.take(errAnswered) {
		k.answer(raw)
	}
}

func (k *call) answer(result []byte) { k.deliver(wire.AppendResult(nil, k.id, result), nil) }

func (k *call) deliver(data, buffer []byte) {
	k.sink.Deliver(upstream.Frame{Data: data, Buffer: buffer, Method: k.method, Relation: upstream.Reply})
	k.sink.End(nil)
}

// unable ends a call that cannot go on between this client and this server. A
// model can make something of the reason, so that of a tool is a result.
func (k *call) unable(err *upstream.Error) {
	if k.method != mcp.ToolsCall {
		k.end(err)
		return
	}
	text := wire.AppendQuote([]byte(`{"content":[{"type":"text","text":`), err.Message)
	k.result(append(text, `}],"isError":true}`...))
}

// mint makes an id that nobody can guess.
func mint() string { return "sb-" + rand.Text() }
