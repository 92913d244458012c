package dialog

import "github.com/signalbox-mcp/signalbox/internal/wire"

// verdict says what becomes of one member of an object.
type verdict = wire.Change

var stays, goes = verdict{}, verdict{Drop: true}

// replace is the verdict that puts a text in the place of a value.
func replace(value wire.Span, text []byte) verdict {
	return verdict{Edits: []wire.Edit{{Span: value, New: text}}}
}

// splice makes the edits; raw itself where there are none.
func splice(raw []byte, edits []wire.Edit) []byte {
	if len(edits) == 0 {
		return raw
	}
	return wire.Splice(nil, raw, edits...)
}

// within returns raw[s] with edits that were made for raw.
func within(raw []byte, s wire.Span, edits []wire.Edit) []byte {
	moved := make([]wire.Edit, len(edits))
	for i, e := range edits {
		moved[i] = wire.Edit{Span: wire.Span{Start: e.Span.Start - s.Start, End: e.Span.End - s.Start}, New: e.New}
	}
	return splice(s.Of(raw), moved)
}

// isObject tells whether the value at s is an object.
func isObject(raw []byte, s wire.Span) bool { return s.Present() && raw[s.Start] == '{' }

// isString tells whether the value at s is a string.
func isString(raw []byte, s wire.Span) bool { return s.Present() && raw[s.Start] == '"' }

// idKey is the value of an id with its type, so that other spellings of one
// string are the same id and 1 is not "1". false: it is no id.
func idKey(tok []byte) (string, bool) {
	if s, ok := wire.Unquote(tok); ok {
		return "s" + string(s), true
	}
	return "n" + string(tok), wire.ValidIDToken(tok)
}

// cut shortens a text of a peer for a message.
func cut(s []byte, n int) string {
	if len(s) > n {
		return string(s[:n]) + "..."
	}
	return string(s)
}
