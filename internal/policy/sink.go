package policy

import (
	"bytes"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// sink stands in front of a client's sink.
type sink struct {
	upstream.Sink
	guard *guard
	id    []byte // the request's raw token, if there is a sieve
	sieve *sieve // nil: the answer stays as it is
}

// watch returns sink itself where nothing that comes back has to be looked at.
func (g *guard) watch(req *upstream.Request, to upstream.Sink) upstream.Sink {
	s := g.rules.sieveFor(req.Method)
	switch {
	case s != nil:
		return &sink{to, g, bytes.Clone(req.Msg.Bytes(req.Msg.ID)), s}
	case g.rules.Resources != nil: // updates may come on the stream of any call
		return &sink{Sink: to, guard: g}
	}
	return to
}

// watchEvents is watch for the session's own sink.
func (c *conn) watchEvents(to upstream.Sink) upstream.Sink {
	if g := c.guard.Load(); g.rules.Shared && g.rules.Resources == nil {
		return to
	}
	return &events{to, c}
}

// events stands in front of a session's own sink.
type events struct {
	upstream.Sink
	c *conn
}

// Deliver passes on what the client may see by the rules of its last message.
func (e *events) Deliver(f upstream.Frame) upstream.Verdict {
	if g := e.c.guard.Load(); f.Method == mcp.NotifResourcesUpdated && g.rules.Resources != nil && g.hushed(f.Data) {
		return upstream.Taken
	}
	return e.Sink.Deliver(f)
}

// Changed and Renewed are those of the inner sink, if it is an upstream.Keeper.
func (e *events) Changed(change func(*upstream.State)) {
	if k, ok := e.Sink.(upstream.Keeper); ok {
		k.Changed(change)
	}
}

func (e *events) Renewed(lost, now upstream.State) (upstream.State, error) {
	if k, ok := e.Sink.(upstream.Keeper); ok {
		return k.Renewed(lost, now)
	}
	return now, nil
}

// Deliver passes on what the client may see. An update that it may not see counts
// as taken, so that nobody else is offered it.
func (s *sink) Deliver(f upstream.Frame) upstream.Verdict {
	switch {
	case f.Relation == upstream.Reply && s.sieve != nil:
		f.Data = s.sift(f.Data)
	case f.Method == mcp.NotifResourcesUpdated && f.Relation != upstream.Reply &&
		s.guard.rules.Resources != nil && s.guard.hushed(f.Data):
		return upstream.Taken
	}
	return s.Sink.Deliver(f)
}

// sift returns the answer as the client may see it, or the error that says why
// it sees nothing.
func (s *sink) sift(reply []byte) []byte {
	out, err := s.sieve.apply(reply)
	if err != nil {
		s.guard.refusals.unreadable(err)
		return upstream.ErrorReply(s.id, errUnreadable)
	}
	return out
}

var errUnreadable = upstream.Errorf(mcp.CodeInternal, "policy_list", "the server's list cannot be read, so it cannot be filtered")
