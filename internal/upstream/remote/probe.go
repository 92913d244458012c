package remote

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Probe sends one server/discover of 2026-07-28 and waits for the answer, for as
// long as a server may take to start. It returns the JSON-RPC response of the body
// or of its event stream, nil if there was none, and the HTTP status, both for the
// caller to make out the server's era. An error response without an id is under
// the request's; with 401, 403, 429 or 5xx it does not count. err: no HTTP answer
// came.
func (s *Server) Probe(ctx context.Context) (reply []byte, status int, err error) {
	msg, err := wire.Parse(discover(s.cfg.Version))
	if err != nil {
		return nil, 0, err
	}
	sink := &probeSink{done: make(chan struct{})}
	k := s.lone.newCall(upstream.NewRequest(msg), sink)
	k.idleAt = time.Now().Add(s.cfg.StartTimeout)
	if !k.enter() {
		return nil, 0, upstream.ErrShutdown
	}
	stop := context.AfterFunc(ctx, func() { k.stop(context.Cause(ctx)) })
	defer stop()
	go k.run()
	<-sink.done
	status = int(k.status.Load())
	switch {
	case sink.reply != nil || status != 0:
		return sink.reply, status, nil
	case errors.Is(sink.err, upstream.ErrTimeout):
		return nil, 0, errNoDiscovery
	}
	return nil, 0, sink.err
}

var errNoDiscovery = &upstream.Error{Code: mcp.CodeServer, Reason: "timeout", Err: upstream.ErrTimeout,
	Message: "the server did not answer server/discover in time (--start-timeout)"}

func discover(version string) []byte {
	raw := []byte(`{"jsonrpc":"2.0","id":"signalbox-discover","method":"server/discover","params":{"_meta":{"` +
		mcp.MetaVersion + `":"` + string(mcp.R20260728) + `","` + mcp.MetaClientCapabilities + `":{},"` + mcp.MetaClientInfo + `":{"name":"signalbox","version":`)
	return append(wire.AppendQuote(raw, version), "}}}}"...)
}

// probeSink keeps the response.
type probeSink struct {
	done  chan struct{} // closed by End
	reply []byte
	err   error
}

func (p *probeSink) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation == upstream.Reply {
		p.reply = f.Data
	}
	return upstream.Taken
}

func (p *probeSink) End(reason error) {
	p.err = reason
	close(p.done)
}
