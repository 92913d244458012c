package process

import (
	"cmp"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// homes are the streams of one session, in the order in which they are tried
// for what the server sent without naming a call.
type homes struct {
	calls      []upstream.Sink // newest first
	events     upstream.Sink
	callsFirst bool
	patient    bool // may wait for a stream that is not there yet
}

// homesLocked: requests and log messages go to the most recent open call whose
// client reads, else to the session's stream; all else the other way round.
func (c *conn) homesLocked(callsFirst bool) homes {
	open := make([]*call, 0, len(c.calls))
	for _, k := range c.calls {
		if k.method != mcp.Initialize {
			open = append(open, k)
		}
	}
	slices.SortFunc(open, func(a, b *call) int { return cmp.Compare(b.n, a.n) })
	hs := homes{events: c.events, callsFirst: callsFirst, patient: true}
	for _, k := range open {
		hs.calls = append(hs.calls, k.sink)
	}
	return hs
}

// deliver tells by which relation the frame was taken; 0: by nobody.
func (hs *homes) deliver(f upstream.Frame) upstream.Relation {
	f.Relation = upstream.Loose
	if !hs.callsFirst && hs.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	for _, s := range hs.calls {
		if s.Deliver(f) == upstream.Taken {
			return f.Relation
		}
	}
	if hs.callsFirst && hs.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	f.Relation = upstream.Waiting
	if hs.patient && hs.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	return 0
}

// onlyLocked is the one session of a process that has one.
func (h *hub) onlyLocked() *conn {
	for _, c := range h.conns {
		return c
	}
	return nil
}
