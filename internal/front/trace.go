package front

import (
	"net/http"

	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func untraced(error) {}

// traceForward begins the span of a call that another replica answers, and puts
// it into the headers of the request that it returns. done ends it.
func (f *Front) traceForward(r *http.Request, home string, body []byte) (traced *http.Request, done func(error)) {
	if f.cfg.Trace == nil {
		return r, untraced
	}
	msg, err := wire.Parse(body)
	if err != nil || msg.Kind != wire.Request { // a stream, a batch, or what has no answer
		return r, untraced
	}
	req := upstream.NewRequest(msg)
	req.Header = r.Header
	parent, state := upstream.TraceParent(&req)
	call := f.cfg.Trace.Start(req.Method.String(), parent, state)
	call.Set("mcp.method.name", req.Method.String())
	forward := call.Client("forward")
	forward.Set("signalbox.replica", home)
	out := *r
	out.Header = r.Header.Clone()
	out.Header.Set(trace.HeaderParent, forward.Parent())
	out.Header.Del(trace.HeaderState)
	if state := forward.State(); state != "" {
		out.Header.Set(trace.HeaderState, state)
	}
	return &out, func(err error) {
		if err != nil {
			forward.Fail("not forwarded")
			call.Fail("not forwarded")
		}
		forward.End()
		call.End()
	}
}
