package live

import (
	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// spans are those of one call.
type spans struct{ call, server *trace.Span }

// trace begins the spans of a call, and lets its server know.
func (c *callSink) trace(req *upstream.Request) {
	s := c.st.s
	t := s.m.cfg.Trace
	if t == nil {
		return
	}
	parent, state := upstream.TraceParent(req)
	c.spans.call = t.Start(c.method.String(), parent, state)
	c.spans.call.Set("mcp.method.name", c.method.String())
	c.spans.call.Set("signalbox.server", s.backend.Name)
	c.spans.call.Set("signalbox.session", s.Hash())
	c.spans.call.Set("signalbox.era", eras[s.eraOf()])
	c.spans.server = c.spans.call.Client("server")
	req.Span = c.spans.server
}

// traced ends them. A call that is another replica's is traced there.
func (c *callSink) traced(outcome string, size measured) {
	if c.spans.call == nil || size.away {
		return
	}
	if size.series.tool != otherTools {
		c.spans.call.Set("gen_ai.tool.name", size.series.tool)
	}
	c.spans.call.Set("signalbox.outcome", outcome)
	if outcome != audit.OK {
		c.spans.server.Fail(outcome)
		c.spans.call.Fail(outcome)
	}
	c.spans.server.End()
	c.spans.call.End()
}
