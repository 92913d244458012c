package bridge

import (
	"bytes"
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

// Refresh asks for the list of tools, page by page, and calls done with what became
// of it.
func (a *Annotations) Refresh(list upstream.Request, done func(error)) {
	a.cache.Forget("")
	first := bytes.Clone(list.Msg.Raw)
	a.read(list, &listSink{a: a, list: list, first: first, page: 1, done: done})
}

func (a *Annotations) read(list upstream.Request, sink *listSink) {
	if _, err := a.asker.Ask(list, sink); err != nil {
		sink.done(err)
	}
}

// listSink is that of one page.
type listSink struct {
	a     *Annotations
	list  upstream.Request // as for the first page, but for Msg
	first []byte           // the message for the first page
	page  int              // from 1
	next  []byte           // raw cursor of the page after this; nil: none
	done  func(error)
}

func (l *listSink) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation == upstream.Reply {
		l.a.cache.Learn("", f.Data)
		if next, ok := wire.Lookup(f.Data, "result", "nextCursor"); ok && f.Data[next.Start] == '"' {
			l.next = bytes.Clone(next.Of(f.Data))
		}
	}
	return upstream.Taken
}

func (l *listSink) End(reason error) {
	if reason != nil || l.next == nil || l.page == maxListPages {
		l.done(reason)
		return
	}
	params, _ := wire.Lookup(l.first, "params")
	msg, err := wire.Parse(wire.Splice(nil, l.first, wire.Insert(l.first, params.Start, `"cursor":`+string(l.next))))
	if err != nil {
		l.done(err)
		return
	}
	list := l.list
	list.Msg = msg
	l.a.read(list, &listSink{a: l.a, list: l.list, first: l.first, page: l.page + 1, done: l.done})
}

// Tools learns from an answer to tools/list, and takes the tools out of it that a
// client must not offer.
func (a *Annotations) Tools(reply []byte) []byte {
	a.cache.Learn("", reply)
	return header.WithoutInvalid(reply, func(tool, reason string) {
		a.log.Warn("a tool of the server is left out: its x-mcp-header is not valid", "tool", tool, "reason", reason)
	})
}
