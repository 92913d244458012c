package bridge

import (
	"log/slog"
	"maps"

	"github.com/signalbox-mcp/signalbox/internal/bridge/header"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Annotations builds the Mcp-Param-* headers for clients that know nothing of
// them, as the lists of tools say that have passed (2026-07-28, streamable-http,
// "Client Behavior"). A tool that is not known gets none: the server says so, and
// Refresh reads its list.
type Annotations struct {
	asker upstream.Asker
	log   *slog.Logger
	cache header.Cache
}

// NewAnnotations makes those of a server.
func NewAnnotations(asker upstream.Asker, log *slog.Logger) *Annotations {
	return &Annotations{asker: asker, log: log}
}

// Params sets the headers of a tools/call.
func (a *Annotations) Params(req *upstream.Request) {
	if req.Method != mcp.ToolsCall {
		return
	}
	name, _ := wire.Unquote(req.Msg.Bytes(req.Msg.P.Name))
	schema, ok := a.cache.Get("", string(name))
	if !ok {
		return
	}
	lines := schema.Headers(req.Msg.Bytes(req.Msg.P.Arguments))
	if len(lines) == 0 {
		return
	}
	all := req.Header.Clone()
	if all == nil {
		all = lines
	} else {
		maps.Copy(all, lines)
	}
	req.Header = all
}

// Refresh asks for the list of tools and calls done with what became of it.
func (a *Annotations) Refresh(list upstream.Request, done func(error)) {
	a.cache.Forget("")
	sink := &listSink{a: a, done: done}
	if _, err := a.asker.Ask(list, sink); err != nil {
		done(err)
	}
}

type listSink struct {
	a    *Annotations
	done func(error)
}

func (l *listSink) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation == upstream.Reply {
		l.a.cache.Learn("", f.Data)
	}
	return upstream.Taken
}

func (l *listSink) End(reason error) { l.done(reason) }

// Tools learns from an answer to tools/list, and takes the tools out of it that a
// client must not offer.
func (a *Annotations) Tools(reply []byte) []byte {
	a.cache.Learn("", reply)
	return header.WithoutInvalid(reply, func(tool, reason string) {
		a.log.Warn("a tool of the server is left out: its x-mcp-header is not valid", "tool", tool, "reason", reason)
	})
}
