package load

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

// Calls makes the tagged requests of one session and checks the answers. Ids start at 1 in
// every session, so that a proxy which mixes sessions up is found out by the payload.
type Calls struct {
	request []byte
	payload []byte // inside request: tag, then filling
	fixed   int    // length of request without id and closing brace
	tag     string // names run and session
	n       int
}

const tagNumber = 9 // digits of a call's number in its tag

// NewCalls makes calls of tool with a message of size bytes; extra is put behind the message
// inside the arguments. tag must be unlike that of any other session.
func NewCalls(tool, tag string, size int, extra string) *Calls {
	c := &Calls{tag: tag}
	c.request = append(c.request, `{"method":"tools/call","params":{"name":"`+tool+`","arguments":{"message":"`...)
	start := len(c.request)
	for len(c.request)-start < size {
		c.request = append(c.request, tag...)
		c.request = append(c.request, ".filling."...)
	}
	c.request = c.request[:start+size]
	end := len(c.request)
	c.request = append(c.request, `"`+extra+`}},"jsonrpc":"2.0","id":`...)
	c.fixed = len(c.request)
	c.request = slices.Grow(c.request, 24) // for the id: payload stays inside
	c.payload = c.request[start:end:end]
	return c
}

// Next makes the next request; it is good until the call after.
func (c *Calls) Next() []byte {
	c.n++
	digits := strconv.Itoa(c.n)
	rest := c.payload[copy(c.payload, c.tag):]
	for i := range min(tagNumber, len(rest)) {
		rest[i] = '0'
		if k := i - (tagNumber - len(digits)); k >= 0 {
			rest[i] = digits[k]
		}
	}
	c.request = strconv.AppendInt(c.request[:c.fixed], int64(c.n), 10)
	c.request = append(c.request, '}')
	return c.request
}

// Payload is the message of the request that Next made.
func (c *Calls) Payload() []byte { return c.payload }

// Check reports whether answer is the result of the request that Next made and carries message.
func (c *Calls) Check(answer, message []byte) error {
	const key = `"message":"`
	at := bytes.Index(answer, []byte(key))
	if at < 0 || bytes.Contains(answer[:at], []byte(`"error":`)) {
		return fmt.Errorf("call %d: answer to another request, or an error: %s", c.n, excerpt(answer))
	}
	got := answer[at+len(key):]
	if len(got) <= len(message) || !bytes.Equal(got[:len(message)], message) || got[len(message)] != '"' {
		return fmt.Errorf("call %d: payload of another call or changed: got %q, want %q", c.n, excerpt(got), excerpt(message[:min(len(message), 48)]))
	}
	before, after := answer[:at], got[len(message):]
	if !bytes.Contains(before, []byte(`"result":`)) {
		return fmt.Errorf("call %d: no result: %s", c.n, excerpt(answer))
	}
	if !c.hasID(before) && !c.hasID(after) {
		return fmt.Errorf("call %d: answer has another id: %s ... %s", c.n, excerpt(before), excerpt(after))
	}
	return nil
}

func (c *Calls) hasID(part []byte) bool {
	_, id, found := bytes.Cut(part, []byte(`"id":`))
	if !found {
		return false
	}
	end := bytes.IndexAny(id, ",}")
	return end > 0 && string(id[:end]) == strconv.Itoa(c.n)
}
