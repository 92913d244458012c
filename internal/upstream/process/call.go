package process

import (
	"bytes"
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// call is one open request. It is in its conn's table from before it is sent
// until somebody takes it out; whoever does ends it, once.
type call struct {
	// static
	conn   *conn
	n      uint64
	method mcp.Method
	id     []byte        // the client's raw id token; nil for a call of Signalbox itself
	token  []byte        // the client's raw progress token; nil for none
	sink   upstream.Sink // nil for a call of Signalbox itself
	done   func(wire.Message, error)
	task   bool   // asks for a task (2025-11-25): the token outlives the response
	again  []byte // the line of a subscriptions/listen, for the next life of the process
	// version is what the client of a shared process asks initialize for.
	version mcp.Revision
	span    *trace.Span // nil where nothing is traced

	// guarded by hub.mu
	line    []byte        // as it goes to the process, until it is queued
	header  http.Header   // of the client's request, as long
	waits   *trace.Span   // while it waits for its process
	ticket  *child.Ticket // its place in the queue; nil: not sent
	idleAt  time.Time     // call timeout; zero: exempt
	limitAt time.Time
	taskID  string        // of the task that it is about, or has begun
	sub     *subscription // that it waits for, on a shared process
	brief   bool          // and its session has unsubscribed meanwhile
	acked   bool          // a subscriptions/listen whose client has heard that it stands
	logs    bool          // of the per-request era: the process was asked for its log messages
}

// newCall reads what the table needs of a client's request. Id and token are
// copied, so that an open call does not hold the body of its request.
func newCall(c *conn, req upstream.Request, sink upstream.Sink) *call {
	m := &req.Msg
	k := &call{conn: c, n: c.nextCall.Add(1), method: req.Method, sink: sink, header: req.Header}
	k.span = req.Span
	k.id = bytes.Clone(m.Bytes(m.ID))
	if tok := m.Bytes(m.P.MetaToken); wire.ValidIDToken(tok) {
		k.token = bytes.Clone(tok)
	}
	k.task = m.P.Task.Present() && k.token != nil
	switch req.Method {
	case mcp.TasksResult, mcp.TasksGet, mcp.TasksCancel:
		id, _ := wire.Unquote(m.Bytes(m.P.TaskID))
		k.taskID = string(id)
	}
	return k
}

// encode makes the line for the process: the client's bytes but for the id and
// the progress token. The request is used up.
func (k *call) encode(req *upstream.Request) []byte {
	upstream.PutTrace(req)
	m := &req.Msg
	var idBuf, tokBuf [96]byte
	edits := make([]wire.Edit, 0, 2)
	edits = append(edits, wire.Edit{Span: m.ID, New: appendWireID(idBuf[:0], k.conn.part, k.n, k.id)})
	if k.token != nil {
		tok := append(appendRoute(append(tokBuf[:0], '"'), k.conn.part, k.n), '"')
		edits = append(edits, wire.Edit{Span: m.P.MetaToken, New: tok})
		if edits[1].Span.Start < edits[0].Span.Start {
			edits[0], edits[1] = edits[1], edits[0]
		}
	}
	line := spliceInPlace(req.Buffer, m.Raw, edits)
	if line == nil {
		buffers := k.conn.hub.srv.cfg.Buffers
		line = wire.Splice(buffers.Get(len(m.Raw) + 2*len(idBuf) + len(k.id))[:0], m.Raw, edits...)
		buffers.Put(req.Buffer)
	}
	wire.OneLine(line)
	return line
}

// spliceInPlace makes the edits within buffer, in which raw begins at the first
// brace and behind which there is room: a large message is then held once. It
// returns nil where that cannot be.
func spliceInPlace(buffer, raw []byte, edits []wire.Edit) []byte {
	at := bytes.IndexByte(buffer, '{')
	grown := 0
	for _, e := range edits {
		more := len(e.New) - int(e.Span.End-e.Span.Start)
		if more < 0 {
			return nil
		}
		grown += more
	}
	if at < 0 || at+len(raw)+grown > cap(buffer) || &buffer[at] != &raw[0] {
		return nil
	}
	line := buffer[at : at+len(raw)+grown]
	from, to := len(raw), len(line)
	for _, e := range slices.Backward(edits) { // from the end: nothing is overwritten before it has moved
		to -= from - int(e.Span.End)
		copy(line[to:], line[e.Span.End:from])
		to -= len(e.New)
		copy(line[to:], e.New)
		from = int(e.Span.Start)
	}
	return line
}

// reply delivers the server's response with the client's own id.
// buffer is what the message lies in, alone; nil where that is not known.
func (k *call) reply(msg *wire.Message, buffer []byte) {
	if k.done != nil {
		k.done(*msg, nil)
		return
	}
	data := restore(msg.Raw, msg.ID, k.id)
	if k.method == mcp.SubscriptionsListen {
		data, buffer = k.ownSubscription(data), nil
	}
	k.sink.Deliver(upstream.Frame{Data: data, Buffer: buffer, Method: k.method, Relation: upstream.Reply})
	k.sink.End(nil)
}

// answer ends a call that Signalbox itself answers, with a raw result.
func (k *call) answer(result string) {
	k.sink.Deliver(upstream.Frame{
		Data: wire.AppendResult(nil, k.id, []byte(result)), Method: k.method, Relation: upstream.Reply,
	})
	k.sink.End(nil)
}

func (k *call) fail(err error) {
	if k.done != nil {
		k.done(wire.Message{}, err)
		return
	}
	k.sink.End(err)
}

// over is a call that was taken out of the table, and why. It is ended when
// the lock is free again.
type over struct {
	k   *call
	err error
}

func failAll(ended []over) {
	for _, o := range ended {
		o.k.fail(o.err)
	}
}

// restore puts old in the place of span. The minted id is nearly always longer
// than the client's, so the bytes before it move and a large message is not
// copied. raw is used up.
func restore(raw []byte, span wire.Span, old []byte) []byte {
	width := int(span.End - span.Start)
	shift := width - len(old)
	before, after := int(span.Start), len(raw)-int(span.End)
	switch {
	case shift < 0:
		return wire.Splice(nil, raw, wire.Edit{Span: span, New: old})
	case before <= after:
		copy(raw[shift:], raw[:before])
		copy(raw[shift+before:], old)
		return raw[shift:]
	default:
		copy(raw[before:], old)
		copy(raw[before+len(old):], raw[span.End:])
		return raw[:len(raw)-shift]
	}
}
