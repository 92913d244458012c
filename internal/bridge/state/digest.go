package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// digest is the SHA-256 of what a request asks for: name, uri and arguments.
// Clients build a retry anew, so the order of members and the spelling of strings
// do not count; numbers count as they are written.
func digest(m *wire.Message) [sha256.Size]byte {
	var text []byte
	for _, span := range []wire.Span{m.P.Name, m.P.URI, m.P.Arguments} {
		part := canonical(nil, m.Raw, span)
		text = binary.AppendUvarint(text, uint64(len(part)))
		text = append(text, part...)
	}
	return sha256.Sum256(text)
}

// canonical appends the value in span, unambiguously and the same for equal
// values. An absent span is nothing. Of members under one name all count, in
// their order.
func canonical(dst, raw []byte, span wire.Span) []byte {
	if !span.Present() {
		return dst
	}
	switch raw[span.Start] {
	case '"':
		s, _ := wire.Unquote(span.Of(raw))
		return field(append(dst, '"'), s)
	case '[':
		dst = append(dst, '[')
		for e := range wire.Elements(raw, span.Start) {
			dst = canonical(dst, raw, e)
		}
		return append(dst, ']')
	case '{':
		type member struct{ name, value []byte }
		var all []member
		for name, value := range wire.Members(raw, span.Start) {
			n, _ := wire.Unquote(name.Of(raw))
			all = append(all, member{bytes.Clone(n), canonical(nil, raw, value)})
		}
		slices.SortStableFunc(all, func(a, b member) int { return bytes.Compare(a.name, b.name) })
		dst = append(dst, '{')
		for _, m := range all {
			dst = append(field(dst, m.name), m.value...)
		}
		return append(dst, '}')
	}
	return field(append(dst, 'n'), span.Of(raw))
}

func field(dst, value []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
}
