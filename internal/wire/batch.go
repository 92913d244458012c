package wire

import (
	"bytes"
	"math"
	"unicode/utf8"
)

var bom = []byte("\xef\xbb\xbf")

// afterBOM returns where the text in b begins, after one BOM and white space.
func afterBOM(b []byte) int {
	return skipSpace(b, len(b)-len(bytes.TrimPrefix(b, bom)))
}

// IsBatch reports whether b can only be a batch (JSON-RPC 2.0 section 6): its
// first byte after BOM and white space is '['.
func IsBatch(b []byte) bool { return at(b, afterBOM(b)) == '[' }

// SplitBatch returns the elements of a batch, whatever they are; each is to go
// through Parse. They alias b. MCP has batches in revision 2025-03-26 only.
//
// The error is always an *Error without ID. -32700: b is not valid UTF-8, not
// JSON, or has more after the first value. -32600: the array is empty, b is no
// array, or nesting beyond MaxDepth.
func SplitBatch(b []byte) ([][]byte, error) {
	if uint64(len(b)) > math.MaxUint32 {
		return nil, invalid("longer than 4 GiB")
	}
	if !utf8.Valid(b) {
		return nil, &Error{Code: codeParse, Msg: "Parse error: not valid UTF-8"}
	}
	start := afterBOM(b)
	var spans []Span
	var end int
	isArray := at(b, start) == '['
	if isArray {
		spans, end = elements(b, start)
	} else {
		end = scanValue(b, start, 0)
	}
	if end < 0 {
		return nil, scanError(end)
	}
	if i := skipSpace(b, end); i < len(b) {
		return nil, scanError(^i)
	}
	if !isArray {
		return nil, invalid("not a batch")
	}
	if len(spans) == 0 {
		return nil, invalid("empty batch")
	}
	out := make([][]byte, len(spans))
	for i, s := range spans {
		out[i] = s.Of(b)
	}
	return out, nil
}
