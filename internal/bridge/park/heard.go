package park

import (
	"bytes"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

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
