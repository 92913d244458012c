package park

import (
	"bytes"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// call is one request to the server, over all rounds that its client needs for
// it. It is the sink of that request. All but the static part is guarded by
// Server.mu.
type call struct {
	// static
	srv     *Server
	client  *client // of the first round
	method  mcp.Method
	uri     []byte        // raw token of params.uri; nil for none
	asking  bool          // its client may be asked something for it
	binding state.Binding // if asking

	group     *group
	exclusive bool             // needs a session for itself
	req       upstream.Request // until it is sent
	ses       *session         // that it was given to; kept when it is over
	begun     bool             // it is on its way to the server
	over      bool             // the server has nothing more to say to it, or nobody listens
	conn      upstream.Call    // nil until it is sent
	why       error            // it was cancelled before conn was known
	id        []byte           // raw id and progress token at the server
	ex        *exchange        // of the client that waits; nil: none does

	// what the server asked; see parked.go
	asks   []*question // without an answer, in order
	gather *time.Timer // runs gathered; nil: no question is fresh
	pinned bool        // is counted in Server.pinned
	parked bool        // is in Server.parked
	pid    parkID
	round  uint64
	expiry *time.Timer
	held   *end // came while it was parked
	can    *capabilities
}

// end is how a call ended at the server.
type end struct {
	msg    *wire.Message // its response
	result []byte        // or a result of Signalbox, complete
	err    error         // or none of them
}

// exchange is one round of a call: one request of its client. It implements
// upstream.Call.
type exchange struct {
	call   *call
	sink   upstream.Sink
	id     []byte // the client's raw id
	token  []byte // and progress token; nil for none
	client *client
}

func newCall(s *Server, c *client, req upstream.Request) *call {
	m := &req.Msg
	k := &call{srv: s, client: c, method: req.Method, can: &c.can}
	if uri := m.Bytes(m.P.URI); len(uri) > 0 && uri[0] == '"' {
		k.uri = bytes.Clone(uri)
	}
	switch req.Method {
	case mcp.ToolsCall, mcp.PromptsGet, mcp.ResourcesRead: // MCP 2026-07-28, basic/patterns/mrtr
		if k.asking = c.declares.asks(); k.asking {
			k.binding = state.Bind(s.cfg.Name, &req)
		}
	}
	req.Inline, req.Buffer, req.Header = false, nil, c.header
	k.req = req
	return k
}

func newExchange(k *call, c *client, req *upstream.Request, sink upstream.Sink) *exchange {
	m := &req.Msg
	ex := &exchange{call: k, client: c, sink: sink, id: bytes.Clone(m.Bytes(m.ID))}
	if tok := m.Bytes(m.P.MetaToken); wire.ValidIDToken(tok) {
		ex.token = bytes.Clone(tok)
	}
	return ex
}

// goLocked begins with a call whose session is ready.
func (k *call) goLocked(l *later) {
	ses := k.ses
	switch {
	case k.over:
	case k.method == mcp.ServerDiscover:
		k.over = true
		ex := k.ex
		k.ex = nil
		out := end{result: discovered(ses.init, &ses.offers)}
		l.do(func() { ex.settle(out) })
		ses.restLocked(l)
	case k.client.level != 0 && ses.exclusive && ses.offers.logging && ses.level != k.client.level:
		k.setLevelLocked(l)
	default:
		k.startLocked(l)
	}
}

// startLocked sends the request.
func (k *call) startLocked(l *later) {
	k.begun = true
	k.id = k.ses.nextIDLocked()
	req, conn := k.req, k.ses.conn
	k.req = upstream.Request{}
	l.do(func() { k.start(conn, req) })
}

func (k *call) start(conn upstream.Conn, req upstream.Request) {
	msg, err := wire.Parse(down(&req.Msg, k.id))
	var sent upstream.Call
	if err == nil {
		req.Msg = msg
		sent, err = conn.Start(req, k)
	}
	k.srv.locked(func(l *later) {
		switch {
		case err != nil:
			k.begun = false // the server has heard nothing of it
			k.finishLocked(end{err: err}, l)
		case k.why != nil:
			l.do(func() { sent.Cancel(k.why) })
		default:
			k.conn = sent
		}
	})
}

// finishLocked ends the call at the server's side, once. Its client gets the end
// now, or when it comes back.
func (k *call) finishLocked(out end, l *later) {
	if k.over {
		return
	}
	k.over = true
	k.group.unwaitLocked(k)
	ex := k.ex
	k.ex = nil
	switch {
	case ex != nil:
		k.unpinLocked()
		l.do(func() { ex.settle(out) })
	case k.parked:
		k.held = &out
	}
	k.releaseLocked(out.msg != nil, l)
}

// releaseLocked gives the session back. What the server asked is answered first.
// A call that the server did not answer may still run there: nobody else gets a
// session in which its questions could come up.
func (k *call) releaseLocked(answered bool, l *later) {
	if k.gather != nil {
		k.gather.Stop()
		k.gather = nil
	}
	ses := k.ses
	if ses == nil {
		k.group.dispatchLocked(l)
		return
	}
	k.srv.count.questions(abandoned, len(k.asks))
	for _, q := range k.asks {
		ses.answerLocked(k.client, refusal(q.method, q.id, errCallOver), l)
	}
	k.asks = nil
	delete(ses.calls, k)
	if ses.phase == over {
		return
	}
	if k.begun && !answered && ses.exclusive {
		ses.endLocked(upstream.ErrCancelled, l)
		return
	}
	ses.restLocked(l)
	k.group.dispatchLocked(l)
}

// Cancel ends the call if this round of it is still open.
func (e *exchange) Cancel(reason error) {
	k := e.call
	k.srv.locked(func(l *later) {
		if k.ex != e {
			return
		}
		k.ex = nil
		k.over = true
		l.do(func() { e.sink.End(errorOf(reason)) })
		k.group.unwaitLocked(k)
		k.unpinLocked()
		k.cancelLocked(reason, l)
		k.releaseLocked(false, l)
	})
}

// cancelLocked tells the server that nobody waits any more.
func (k *call) cancelLocked(reason error, l *later) {
	if conn := k.conn; conn != nil {
		l.do(func() { conn.Cancel(reason) })
	} else if k.begun {
		k.why = reason
	}
}

// settle gives a client the end of its request.
func (e *exchange) settle(out end) {
	k := e.call
	var data []byte
	err := out.err
	switch {
	case err != nil:
	case out.result != nil:
		data = wire.AppendResult(nil, e.id, out.result)
	case out.msg.Result.Present():
		data, err = up(out.msg, e.id, k.method, k.ses.offers.info)
	default:
		data = k.failed(e, out.msg)
	}
	if err != nil {
		e.sink.End(errorOf(unknownMethod(k.method, err)))
		return
	}
	e.sink.Deliver(upstream.Frame{Data: data, Method: k.method, Relation: upstream.Reply})
	e.sink.End(nil)
}
