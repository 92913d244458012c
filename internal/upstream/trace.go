package upstream

import (
	"bytes"

	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// MetaParent and MetaState are the members of params._meta that carry the context
// of a trace (SEP-414).
const (
	MetaParent = "traceparent"
	MetaState  = "tracestate"
)

// TraceParent is the context that a request came in: of its HTTP header, which
// is the nearer one where there are both, else of its message.
func TraceParent(req *Request) (parent, state string) {
	if parent = req.Header.Get(trace.HeaderParent); parent != "" {
		return parent, req.Header.Get(trace.HeaderState)
	}
	meta := req.Msg.Bytes(req.Msg.P.Meta)
	return metaText(meta, MetaParent), metaText(meta, MetaState)
}

func metaText(meta []byte, name string) string {
	at, ok := wire.Lookup(meta, name)
	if !ok || at.End-at.Start > 1<<10 {
		return ""
	}
	text, _ := wire.Unquote(at.Of(meta))
	return string(text)
}

// PutTrace writes the context of the request's span into its message (SEP-414).
// All bytes but those of that member stay. A message that
// has no place for it is left as it is. Without a span it does nothing.
func PutTrace(req *Request) {
	if req.Span == nil {
		return
	}
	m := &req.Msg
	raw := insertParent(m, `"`+req.Span.Parent()+`"`)
	if raw == nil {
		return
	}
	_ = req.Rewrite(raw) // it cannot fail: raw is a valid message with one more text in it
}

func insertParent(m *wire.Message, value string) []byte {
	member := `"` + MetaParent + `":` + value
	meta, params := m.Bytes(m.P.Meta), m.Bytes(m.Params)
	switch {
	case len(meta) > 0 && meta[0] == '{':
		if at, ok := wire.Lookup(meta, MetaParent); ok {
			at.Start += m.P.Meta.Start
			at.End += m.P.Meta.Start
			return wire.Splice(nil, m.Raw, wire.Edit{Span: at, New: []byte(value)})
		}
		return wire.Splice(nil, m.Raw, wire.Insert(m.Raw, m.P.Meta.Start, member))
	case m.P.Meta.Present(): // it is no object: the server's to refuse
		return nil
	case len(params) > 0 && params[0] == '{':
		return wire.Splice(nil, m.Raw, wire.Insert(m.Raw, m.Params.Start, `"_meta":{`+member+`}`))
	case m.Params.Present():
		return nil
	}
	end := uint32(bytes.LastIndexByte(m.Raw, '}'))
	return wire.Splice(nil, m.Raw, wire.Edit{Span: wire.Span{Start: end, End: end}, New: []byte(`,"params":{"_meta":{` + member + `}}`)})
}
