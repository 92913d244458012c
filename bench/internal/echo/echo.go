// Package echo is the server that every contestant of the benchmark has behind it: it answers
// initialize, ping, tools/list and tools/call, and does as little as it can. It parses no JSON
// beyond finding the spans of id, method, name and arguments, and splices those into the answer.
//
// The tools:
//
//	echo   the arguments come back as structuredContent, byte for byte
//	big    {"message": TAG, "bytes": N}: the message comes back as N bytes made by Fill
//	size   the first TagLen bytes of the message, its length and its CRC-32
//	sleep  like echo, after Delay
//	steps  like echo, after Steps notifications of progress when the call asks for them
package echo

import (
	"bytes"
	"hash/crc32"
	"strconv"
	"time"
)

// TagLen is how many bytes of a message the tool "size" gives back.
const TagLen = 32

// SleepFor is how long the tool "sleep" waits.
const SleepFor = 400 * time.Millisecond

// Steps is how many notifications of progress the tool "steps" sends before its answer.
const Steps = 3

// Call is one message to the server, as spans of the bytes given to Parse.
type Call struct {
	ID, Method, Name, Args []byte
	Token                  []byte // progress token as it stands in JSON; nil without one
}

// Parse finds the spans. ID is nil for a notification.
func Parse(msg []byte) Call {
	var c Call
	var params []byte
	members(msg, func(key, value []byte) bool {
		switch string(key) {
		case "id":
			c.ID = value
		case "method":
			c.Method = unquote(value)
		case "params":
			params = value
		}
		return true
	})
	if string(c.Method) != "tools/call" {
		c.Args = params
		return c
	}
	members(params, func(key, value []byte) bool {
		switch string(key) {
		case "name":
			c.Name = unquote(value)
		case "arguments":
			c.Args = value
		case "_meta":
			c.Token = token(value)
		}
		return true
	})
	return c
}

func token(meta []byte) (token []byte) {
	members(meta, func(key, value []byte) bool {
		if string(key) == "progressToken" {
			token = value
		}
		return token == nil
	})
	return token
}

// Delay is how long the answer must be held back.
func (c Call) Delay() time.Duration {
	if string(c.Name) == "sleep" {
		return SleepFor
	}
	return 0
}

// Steps is how many notifications of progress must be sent before the answer.
func (c Call) Steps() int {
	if c.Token != nil && string(c.Name) == "steps" {
		return Steps
	}
	return 0
}

// Step appends the n-th notification of progress, from 1, to dst, without a line end.
func (c Call) Step(dst []byte, n int) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	dst = append(dst, c.Token...)
	dst = append(dst, `,"progress":`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(dst, `,"total":`...)
	dst = strconv.AppendInt(dst, Steps, 10)
	return append(dst, "}}"...)
}

// Answer appends the response to dst, without a line end; nothing for a notification.
func (c Call) Answer(dst []byte) []byte {
	if c.ID == nil || c.Method == nil {
		return dst
	}
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = append(dst, c.ID...)
	switch string(c.Method) {
	case "tools/call":
		dst = append(dst, `,"result":{"content":[],"structuredContent":`...)
		dst = c.appendContent(dst)
		return append(dst, "}}"...)
	case "initialize":
		dst = append(dst, `,"result":{"protocolVersion":`...)
		dst = append(dst, c.version()...)
		return append(dst, `,"capabilities":{"tools":{}},"serverInfo":{"name":"echo","version":"1.0.0"}}}`...)
	case "tools/list":
		return append(dst, `,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}}`...)
	case "ping":
		return append(dst, `,"result":{}}`...)
	}
	return append(dst, notFound...)
}

// notFound ends the answer to a method that the server does not know.
const notFound = `,"error":{"code":-32601,"message":"Method not found"}}`

func (c Call) appendContent(dst []byte) []byte {
	switch string(c.Name) {
	case "big":
		message, n := c.arguments()
		dst = append(dst, `{"message":"`...)
		dst = Fill(dst, message, n)
		return append(dst, `"}`...)
	case "size":
		message, _ := c.arguments()
		return appendSize(dst, message)
	}
	return append(dst, c.Args...)
}

// appendSize appends what the tool "size" says of message.
func appendSize(dst, message []byte) []byte {
	dst = append(dst, `{"message":"`...)
	dst = append(dst, message[:min(TagLen, len(message))]...)
	dst = append(dst, `","bytes":`...)
	dst = strconv.AppendInt(dst, int64(len(message)), 10)
	dst = append(dst, `,"crc":`...)
	dst = strconv.AppendUint(dst, uint64(crc32.ChecksumIEEE(message)), 10)
	return append(dst, '}')
}

// SizeContent is the structuredContent that the tool "size" gives for message.
func SizeContent(message []byte) []byte { return appendSize(nil, message) }

func (c Call) arguments() (message []byte, n int) {
	members(c.Args, func(key, value []byte) bool {
		switch string(key) {
		case "message":
			message = unquote(value)
		case "bytes":
			n, _ = strconv.Atoi(string(value))
		}
		return true
	})
	return message, n
}

// version is the revision to answer initialize with, quoted: the client's own where it is one of
// the handshake revisions.
func (c Call) version() []byte {
	version := []byte(`"2025-11-25"`)
	members(c.Args, func(key, value []byte) bool {
		if string(key) != "protocolVersion" {
			return true
		}
		switch string(unquote(value)) {
		case "2024-11-05", "2025-03-26", "2025-06-18":
			version = value
		}
		return false
	})
	return version
}

// Fill appends n bytes: tag, again and again.
func Fill(dst, tag []byte, n int) []byte {
	if len(tag) == 0 {
		tag = []byte("x")
	}
	start := len(dst)
	dst = append(dst, make([]byte, n)...)
	out := dst[start:]
	for done := copy(out, tag); done < n; {
		done += copy(out[done:], out[:done])
	}
	return dst
}

func unquote(value []byte) []byte { return bytes.Trim(value, `"`) }
