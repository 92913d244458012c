package stdio

import (
	"bytes"
	"errors"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// sink writes what belongs to one call.
type sink struct {
	// static
	c          *client
	id         []byte   // raw token
	opens      *session // of an initialize that begins one; else nil
	perRequest bool     // of the per-request era; set before it is used

	mu      sync.Mutex
	replied bool
	over    bool
}

func (c *client) newSink(req *upstream.Request) *sink {
	c.count(1)
	return &sink{c: c, id: bytes.Clone(req.Msg.Bytes(req.Msg.ID))}
}

func (s *sink) Deliver(f upstream.Frame) upstream.Verdict {
	s.mu.Lock()
	over := s.over
	s.replied = s.replied || f.Relation == upstream.Reply
	s.mu.Unlock()
	if over {
		return upstream.Closed
	}
	if s.opens != nil && f.Relation == upstream.Reply {
		s.opens.answered(f.Data)
	}
	return s.c.w.put(f.Data)
}

// answered reads the server's answer to initialize.
func (s *session) answered(reply []byte) {
	_, accepted := wire.Lookup(reply, "result")
	v, _ := wire.Lookup(reply, "result", "protocolVersion")
	version, _ := wire.Unquote(v.Of(reply))
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	s.accepted = accepted
	s.batches = mcp.Revision(version) == mcp.R20250326
}

// End writes the error of a call without a reply. After a failed initialize the
// client may try again.
func (s *sink) End(reason error) {
	s.mu.Lock()
	s.over = true
	replied := s.replied
	s.mu.Unlock()
	if reason == nil {
		reason = upstream.ErrClosed
	}
	if s.opens != nil {
		s.c.mu.Lock()
		accepted := s.opens.accepted
		s.c.mu.Unlock()
		if !accepted {
			s.opens.drop(reason)
		}
	}
	if !replied && !errors.Is(reason, upstream.ErrCancelled) {
		if s.perRequest {
			s.c.w.put(upstream.PerRequestErrorReply(s.id, reason))
		} else {
			s.c.refuse(s.id, reason)
		}
	}
	s.c.count(-1)
}

// events writes what the server sends unasked.
type events struct{ s *session }

func (e events) Deliver(f upstream.Frame) upstream.Verdict { return e.s.c.w.put(f.Data) }

func (e events) End(reason error) { e.s.drop(reason) }
