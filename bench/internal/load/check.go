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
	fixed   int    // length of request up to what differs from call to call beside payload
	tag     string // names run and session
	steps   int    // notifications of progress that each call must bring
	n       int
}

const tagNumber = 9 // digits of a call's number in its tag

const beforeID = `},"jsonrpc":"2.0","id":`

// NewCalls makes calls of tool with a message of size bytes; extra is put behind the message
// inside the arguments. tag must be unlike that of any other session.
func NewCalls(tool, tag string, size int, extra string) *Calls {
	return newCalls(tool, tag, size, `"`+extra+"}"+beforeID)
}

// NewProgressCalls makes calls of tool that ask for progress, with a token that is the tag and
// the call's number. Each call must bring so many notifications of it as steps says.
func NewProgressCalls(tool, tag string, size, steps int) *Calls {
	c := newCalls(tool, tag, size, `"},"_meta":{"progressToken":"`+tag)
	c.steps = steps
	return c
}

// newCalls makes calls whose message is followed by rest.
func newCalls(tool, tag string, size int, rest string) *Calls {
	c := &Calls{tag: tag}
	c.request = append(c.request, `{"method":"tools/call","params":{"name":"`+tool+`","arguments":{"message":"`...)
	start := len(c.request)
	for len(c.request)-start < size {
		c.request = append(c.request, tag...)
		c.request = append(c.request, ".filling."...)
	}
	c.request = c.request[:start+size]
	end := len(c.request)
	c.request = append(c.request, rest...)
	c.fixed = len(c.request)
	c.request = slices.Grow(c.request, 80) // for the numbers: payload stays inside
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
	c.request = c.request[:c.fixed]
	if c.steps > 0 {
		c.request = append(c.request, digits...)
		c.request = append(c.request, `"}`+beforeID...)
	}
	c.request = append(c.request, digits...)
	c.request = append(c.request, '}')
	return c.request
}

// Payload is the message of the request that Next made.
func (c *Calls) Payload() []byte { return c.payload }

// CheckProgress reports whether the notifications before an answer are the progress of the call
// that Next made: each step once, in order.
func (c *Calls) CheckProgress(notifications [][]byte) error {
	step := 0
	for _, n := range notifications {
		if !bytes.Contains(n, []byte(`"notifications/progress"`)) {
			continue
		}
		if step++; step > c.steps || !c.hasToken(n) || !hasNumber(n, `"progress":`, step) {
			return fmt.Errorf("call %d: progress of another call, or out of turn: %s", c.n, excerpt(n))
		}
	}
	if step != c.steps {
		return fmt.Errorf("call %d: %d notifications of progress before the answer, not %d", c.n, step, c.steps)
	}
	return nil
}

func (c *Calls) hasToken(notification []byte) bool {
	_, token, found := bytes.Cut(notification, []byte(`"progressToken":"`))
	number, found2 := bytes.CutPrefix(token, []byte(c.tag))
	return found && found2 && startsWith(number, c.n, `"`)
}

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

func (c *Calls) hasID(part []byte) bool { return hasNumber(part, `"id":`, c.n) }

// hasNumber reports whether the first member that begins with key has the value n.
func hasNumber(part []byte, key string, n int) bool {
	_, value, found := bytes.Cut(part, []byte(key))
	return found && startsWith(value, n, ",}")
}

// startsWith reports whether text is n and then one of the characters of end.
func startsWith(text []byte, n int, end string) bool {
	i := bytes.IndexAny(text, end)
	return i > 0 && string(text[:i]) == strconv.Itoa(n)
}
