package wire

import (
	"bytes"
	"strconv"
)

// Edit replaces the bytes in Span by New. An empty but present span inserts.
type Edit struct {
	Span Span
	New  []byte
}

// Splice appends raw to dst with the edits made; for a nil dst it makes a slice of
// just the length. The caller sorts them ascending and without overlap; those whose
// span is absent are ignored. Spans must lie within raw. dst and raw must not
// overlap.
func Splice(dst, raw []byte, edits ...Edit) []byte {
	if dst == nil {
		size := len(raw)
		for _, e := range edits {
			if e.Span.Present() {
				size += len(e.New) - int(e.Span.End-e.Span.Start)
			}
		}
		dst = make([]byte, 0, size)
	}
	var done uint32
	for _, e := range edits {
		if !e.Span.Present() {
			continue
		}
		dst = append(dst, raw[done:e.Span.Start]...)
		dst = append(dst, e.New...)
		done = e.Span.End
	}
	return append(dst, raw[done:]...)
}

// OneLine makes raw CR and LF spaces, in place, so that the message fits a
// framing by lines (MCP, transports, "stdio"). In valid JSON they stand only
// between tokens.
func OneLine(b []byte) {
	for _, c := range []byte{'\n', '\r'} {
		rest := b
		for i := bytes.IndexByte(rest, c); i >= 0; i = bytes.IndexByte(rest, c) {
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}

// AppendError appends an error response (JSON-RPC 2.0 section 5.1). id is a raw
// token, null if nil; data is raw JSON, left out if nil.
func AppendError(dst, id []byte, code int, msg string, data []byte) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = AppendQuote(dst, msg)
	if data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, data...)
	}
	return append(dst, "}}"...)
}

// AppendResult appends a result response (JSON-RPC 2.0 section 5). id and result
// are raw JSON; a nil id is null.
func AppendResult(dst, id, result []byte) []byte {
	dst = appendHead(dst, id)
	dst = append(dst, `"result":`...)
	dst = append(dst, result...)
	return append(dst, '}')
}

// appendHead appends a response up to the comma after its id.
func appendHead(dst, id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, id...)
	return append(dst, ',')
}
