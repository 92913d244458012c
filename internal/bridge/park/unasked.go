package park

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// events is the sink for what the server sends unasked.
type events struct{ ses *session }

func (e events) Deliver(f upstream.Frame) upstream.Verdict {
	msg, err := wire.Parse(f.Data)
	if err != nil {
		return upstream.NoTaker
	}
	e.ses.srv.locked(func(l *later) { e.ses.unaskedLocked(&msg, l) })
	return upstream.Taken
}

func (e events) End(reason error) {
	if reason == nil {
		reason = upstream.ErrClosed
	}
	e.ses.srv.locked(func(l *later) {
		if e.ses.phase != over {
			e.ses.srv.cfg.Log.Info("session at the server is over", "err", reason)
		}
		e.ses.endLocked(reason, l)
	})
}

// unaskedLocked takes what names no call. Where one call at a time uses the
// session, it is of that one if it can be of any: many HTTP servers ask on the
// session's own stream.
func (ses *session) unaskedLocked(m *wire.Message, l *later) {
	method := mcp.MethodOf(m.MethodName())
	k := ses.onlyCallLocked()
	switch {
	case m.Kind == wire.Request && k != nil:
		k.questionLocked(m, l)
	case m.Kind == wire.Request:
		ses.outsideLocked(method, m, l)
	case m.Kind != wire.Notification:
	case method == mcp.NotifMessage && k != nil:
		l.do(func() { k.logMessage(m) })
	case method == mcp.NotifCancelled && k != nil:
		k.withdrawLocked(m.Bytes(m.P.RequestID))
	case method.IsListChanged(), method == mcp.NotifResourcesUpdated:
		ses.group.changedLocked(method, m, l)
	}
}

// onlyCallLocked is the call that has the session for itself, if one has and runs.
func (ses *session) onlyCallLocked() *call {
	for k := range ses.calls {
		if ses.exclusive && k.begun && !k.over {
			return k
		}
	}
	return nil
}

// outsideLocked answers what the server asks when no client can be asked.
func (ses *session) outsideLocked(method mcp.Method, m *wire.Message, l *later) {
	id := m.Bytes(m.ID)
	var text []byte
	q := newQuestion(m)
	switch {
	case method == mcp.Ping:
		ses.answerLocked(ses.client, wire.AppendResult(nil, id, []byte("{}")), l)
		return
	case q != nil && !ses.pool.can.has(q.needs):
		text = upstream.ErrorReply(id, errUndeclared(q.needs))
	case method == mcp.RootsList && ses.pool.roots != nil:
		text = wire.AppendResult(nil, id, ses.pool.roots)
	case q == nil:
		text = upstream.ErrorReply(id, errNoCall)
	default:
		text = refusal(method, id, errNoCall)
	}
	ses.srv.count.questions(unrelated, 1)
	ses.answerLocked(ses.client, text, l)
}
