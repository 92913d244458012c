package sse

import (
	"bytes"
	"strconv"
	"time"
)

// AppendEvent appends one event to dst: an id and an event field where id and
// typ are not empty, exactly one data line, a blank line.
//
// A raw CR or LF in data becomes a space. In JSON these stand between tokens
// only, so that its meaning stays; for other data this is a loss. Line breaks
// (and in an id NUL, for which readers drop an id) are left out of id and typ:
// no caller can start a field of its own.
func AppendEvent(dst []byte, id, typ string, data []byte) []byte {
	dst = AppendStart(dst, id, typ)
	start := len(dst)
	dst = append(dst, data...)
	blankBreaks(dst[start:])
	return append(dst, End...)
}

// AppendStart and End stand around data without line breaks that the caller
// writes itself: together they are what AppendEvent appends, without a copy of
// the data.
func AppendStart(dst []byte, id, typ string) []byte {
	dst = appendField(dst, "id: ", id)
	dst = appendField(dst, "event: ", typ)
	return append(dst, "data: "...)
}

// End ends an event that AppendStart began.
const End = "\n\n"

// AppendPriming appends an event that has an id and an empty data field: it
// tells a client where to resume before there is anything to say. For clients of
// 2025-11-25 only; older ones fail to parse the empty data (MCP 2025-11-25,
// basic/transports, "Sending Messages to the Server"; SEP-1699).
func AppendPriming(dst []byte, id string) []byte {
	return AppendEvent(dst, id, "", nil)
}

// AppendComment appends ": text" and a blank line, which every reader ignores:
// it keeps a quiet stream open. Line breaks in text become spaces. A comment may
// only stand between events, since the blank line would end one.
func AppendComment(dst []byte, text string) []byte {
	dst = append(dst, ": "...)
	start := len(dst)
	dst = append(dst, text...)
	blankBreaks(dst[start:])
	return append(dst, "\n\n"...)
}

// AppendRetry appends a retry field, d in whole milliseconds, and a blank line: how
// long the client shall wait before it connects again. Negative is 0.
func AppendRetry(dst []byte, d time.Duration) []byte {
	dst = append(dst, "retry: "...)
	dst = strconv.AppendInt(dst, max(d.Milliseconds(), 0), 10)
	return append(dst, "\n\n"...)
}

// appendField appends a line of name and value without CR, LF and NUL; nothing
// where that leaves no value.
func appendField(dst []byte, name, value string) []byte {
	line := len(dst)
	dst = append(dst, name...)
	start := len(dst)
	for i := range len(value) {
		if c := value[i]; c != '\r' && c != '\n' && c != 0 {
			dst = append(dst, c)
		}
	}
	if len(dst) == start {
		return dst[:line]
	}
	return append(dst, '\n')
}

// blankBreaks makes each CR and LF in b a space.
func blankBreaks(b []byte) {
	for _, c := range []byte("\r\n") {
		for rest := b; ; {
			i := bytes.IndexByte(rest, c)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
}
