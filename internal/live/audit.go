package live

import (
	"errors"
	"fmt"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// auditedOf keeps of a request what its line in the audit log will need: the
// message is its receiver's from now on.
func auditedOf(req *upstream.Request) *audit.Entry {
	msg := &req.Msg
	tool, _ := wire.Unquote(msg.Bytes(msg.P.Name))
	return &audit.Entry{Principal: nameOf(req.Principal), Bytes: len(msg.Raw), Method: keep(msg.MethodName()), Tool: keep(tool)}
}

// keep copies no more than the audit log can want.
func keep(text []byte) string { return string(text[:min(len(text), 2*audit.MaxText)]) }

// audit writes down a call that is over.
func (c *callSink) audit(outcome string, now time.Time) {
	if c.audited == nil {
		return
	}
	s, e := c.st.s, *c.audited
	e.Time = now
	e.Server, e.Session, e.Outcome, e.Duration = s.backend.Name, s.Hash(), outcome, e.Time.Sub(c.started)
	s.m.cfg.Audit.Call(e)
}

// audit writes down what happened to a session.
func (s *Session) audit(what, reason string) {
	if s.m.cfg.Audit == nil {
		return
	}
	s.mu.Lock()
	who := s.who
	s.mu.Unlock()
	s.m.cfg.Audit.Session(audit.Event{Time: time.Now(), What: what, Principal: nameOf(who), Server: s.backend.Name,
		Session: s.Hash(), Transport: string(s.transport), Reason: reason})
}

// outcome is how a call ended: by an answer, or for a reason.
func outcome(replied, failed, refused bool, reason error) string {
	var e *upstream.Error
	switch {
	case replied && !failed:
		return audit.OK
	case replied:
		return audit.Error
	case errors.Is(reason, upstream.ErrCancelled):
		return audit.Cancelled
	case errors.Is(reason, upstream.ErrTimeout):
		return audit.Timeout
	case refused && errors.As(reason, &e):
		return audit.Refused(e.Reason)
	}
	return audit.Error
}

// nameOf is how a principal stands in logs.
func nameOf(p upstream.Principal) string {
	if s, ok := p.(fmt.Stringer); ok {
		return s.String()
	}
	return ""
}
