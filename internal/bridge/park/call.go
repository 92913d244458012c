package park

import (
	"bytes"
	"strconv"
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
	may     bool          // the client may be asked something for it
	binding state.Binding // if may

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
		if k.may = c.can.asks(); k.may {
			k.binding = state.Bind(s.cfg.Name, &req)
		}
	}
	req.Inline, req.Buffer = false, nil
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

func (ses *session) nextIDLocked() []byte {
	ses.lastID++
	return strconv.AppendUint(nil, ses.lastID, 10)
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

// setLevelLocked has the server told of the log messages that the call wants,
// before the call.
func (k *call) setLevelLocked(l *later) {
	ses, level := k.ses, k.client.level
	text := append([]byte(`{"jsonrpc":"2.0","id":`), ses.nextIDLocked()...)
	text = append(text, `,"method":"logging/setLevel","params":{"level":"`+level.String()+`"}}`...)
	conn := ses.conn
	l.do(func() {
		ses.ask(conn, k.client, text, func(done bool, l *later) {
			if done {
				ses.level = level
			}
			if !k.over && ses.phase != over {
				k.startLocked(l)
			}
		})
	})
}

// ask sends a request of Signalbox itself. then is called once, under the lock:
// done tells whether the server answered with a result.
func (ses *session) ask(conn upstream.Conn, c *client, text []byte, then func(done bool, l *later)) {
	req, err := c.request(text)
	if err == nil {
		_, err = conn.Start(req, &own{ses: ses, then: then})
	}
	if err != nil {
		ses.srv.cfg.Log.Debug("request of signalbox not sent", "method", req.Method.String(), "err", err)
		ses.srv.locked(func(l *later) { then(false, l) })
	}
}

// own is the sink of a request of Signalbox itself.
type own struct {
	ses  *session
	then func(done bool, l *later)
	done bool // by whoever delivers
}

func (o *own) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation != upstream.Reply {
		return events{o.ses}.Deliver(f)
	}
	m, err := wire.Parse(f.Data)
	o.done = err == nil && m.Result.Present()
	return upstream.Taken
}

func (o *own) End(err error) {
	o.ses.srv.locked(func(l *later) { o.then(o.done && err == nil, l) })
}

// Deliver takes what the server sends for the call.
func (k *call) Deliver(f upstream.Frame) upstream.Verdict {
	m, err := wire.Parse(f.Data)
	if f.Relation == upstream.Reply {
		out := end{msg: &m}
		if err == nil && m.Kind != wire.Response {
			err = errResult
		}
		if err != nil {
			out = end{err: upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server's answer is no JSON-RPC response: %v", err)}
		}
		k.srv.locked(func(l *later) { k.finishLocked(out, l) })
		return upstream.Taken
	}
	switch {
	case err != nil:
		return upstream.NoTaker
	case m.Kind == wire.Request:
		k.srv.locked(func(l *later) { k.questionLocked(&m, l) })
		return upstream.Taken
	case m.Kind == wire.Notification:
		return k.notification(&m, f)
	}
	return upstream.NoTaker
}

// End says that the call is over at the server.
func (k *call) End(err error) {
	if err == nil {
		return // after the reply, which told everything
	}
	k.srv.locked(func(l *later) { k.finishLocked(end{err: err}, l) })
}

func (k *call) notification(m *wire.Message, f upstream.Frame) upstream.Verdict {
	switch method := mcp.MethodOf(m.MethodName()); method {
	case mcp.NotifProgress:
		k.progress(m)
	case mcp.NotifMessage:
		k.logMessage(m)
	case mcp.NotifCancelled:
		k.srv.locked(func(l *later) { k.withdrawLocked(m.Bytes(m.P.RequestID)) })
	case mcp.NotifElicitationComplete, mcp.NotifTasksStatus, mcp.NotifTasks: // mean nothing in the other era
	case mcp.Other:
		if f.Relation != upstream.Own {
			return upstream.NoTaker
		}
		if ex := k.reader(); ex != nil {
			return ex.sink.Deliver(upstream.Frame{Data: m.Raw, Relation: upstream.Own})
		}
	default:
		if f.Relation != upstream.Own { // the session's own sink may come first
			return upstream.NoTaker
		}
		k.srv.locked(func(l *later) { k.ses.unaskedLocked(m, l) })
	}
	return upstream.Taken
}

// reader is the exchange whose client reads now; nil while there is none.
func (k *call) reader() *exchange {
	k.srv.mu.Lock()
	defer k.srv.mu.Unlock()
	return k.ex
}

// progress goes to the client of this round, under the token of this round.
func (k *call) progress(m *wire.Message) {
	ex := k.reader()
	if ex == nil || ex.token == nil || !bytes.Equal(m.Bytes(m.P.Token), k.id) {
		return
	}
	data := wire.Splice(nil, m.Raw, wire.Edit{Span: m.P.Token, New: ex.token})
	ex.sink.Deliver(upstream.Frame{Data: data, Method: mcp.NotifProgress, Relation: upstream.Own})
}

// logMessage goes to a client that asked for messages as grave as it is.
func (k *call) logMessage(m *wire.Message) {
	name, _ := wire.Unquote(m.Bytes(m.P.Level))
	ex := k.reader()
	if ex == nil || ex.client.level == 0 || !k.ses.exclusive || levelOf(name) < ex.client.level {
		return
	}
	ex.sink.Deliver(upstream.Frame{Data: m.Raw, Method: mcp.NotifMessage, Relation: upstream.Own})
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
		l.do(func() { e.sink.End(reason) })
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
		e.sink.End(errorOf(err))
		return
	}
	e.sink.Deliver(upstream.Frame{Data: data, Method: k.method, Relation: upstream.Reply})
	e.sink.End(nil)
}
