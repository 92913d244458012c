package observe

import (
	"math"
	"time"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// TapeLength is how many messages of a session are kept.
const TapeLength = 64

// Bounds on what is kept of a text that a peer chose, in bytes.
const (
	maxID     = 32
	maxMethod = 64
)

// Direction is the way that a message went.
type Direction uint8

const (
	FromClient Direction = iota
	ToClient
)

func (d Direction) String() string {
	if d == ToClient {
		return "to_client"
	}
	return "from_client"
}

// Message is one message of a session, without its contents. It is small, for
// one is written down with every message.
type Message struct {
	at        int64         // ns since 1970
	Duration  time.Duration // of a response: since its request came; else 0
	text      *text         // nil: there is none
	size      uint32        // bytes
	Direction Direction
	Kind      wire.Kind
	method    mcp.Method // of a response: that of its request
	idLen     uint8
	id        [maxID]byte
}

// text is what few messages have.
type text struct{ method, reason string }

// NewMessage is a message of size bytes at a time. mcp.Other: the method is not
// known, or none of the protocol's.
func NewMessage(at time.Time, d Direction, kind wire.Kind, method mcp.Method, size int) Message {
	return Message{at: at.UnixNano(), Direction: d, Kind: kind, method: method, size: uint32(min(uint64(size), math.MaxUint32))}
}

// Time is when it passed.
func (m *Message) Time() time.Time { return time.Unix(0, m.at) }

// Size is its length in bytes, 4 GiB at most.
func (m *Message) Size() int { return int(m.size) }

// Method is its method, that of its request for a response, cut; "" if it is not
// known.
func (m *Message) Method() string {
	switch {
	case m.method != mcp.Other:
		return m.method.String()
	case m.text != nil:
		return m.text.method
	}
	return ""
}

// Reason tells why Signalbox answered with an error of its own; "": it did not.
func (m *Message) Reason() string {
	if m.text == nil {
		return ""
	}
	return m.text.reason
}

// SetReason tells why Signalbox answered with an error of its own.
func (m *Message) SetReason(reason string) { m.edit().reason = reason }

// SetMethod keeps the beginning of a method's name that is none of the
// protocol's.
func (m *Message) SetMethod(name []byte) {
	if len(name) > 0 {
		m.edit().method = string(cut(name, maxMethod))
	}
}

func (m *Message) edit() *text {
	if m.text == nil {
		m.text = new(text)
	}
	return m.text
}

// SetID keeps the beginning of a raw id token. It does not allocate.
func (m *Message) SetID(token []byte) {
	m.idLen = uint8(copy(m.id[:], cut(token, maxID)))
}

// cut is the beginning of a text, at most n bytes of whole characters.
func cut(text []byte, n int) []byte {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// ID is the id token as it came, quotes included, at most 32 bytes of it; "" if
// the message has none.
func (m *Message) ID() string { return string(m.id[:m.idLen]) }

// Tape is the last messages of one session. It is guarded by its owner. The zero
// value is empty, and grows with what is put on it, up to TapeLength.
type Tape struct {
	ring []Message
	next int // in ring, once that is full: the oldest
}

// firstLength is what a tape begins with: most sessions are short.
const firstLength = 8

// Add puts a message on the tape. Once the tape is full it does not allocate.
func (t *Tape) Add(m *Message) {
	switch n := len(t.ring); {
	case n == 0:
		t.ring = make([]Message, 0, firstLength)
	case n == firstLength:
		t.ring = append(make([]Message, 0, TapeLength), t.ring...)
	}
	if len(t.ring) < TapeLength {
		t.ring = append(t.ring, *m)
		return
	}
	t.ring[t.next] = *m
	t.next = (t.next + 1) % TapeLength
}

// Messages returns a copy, oldest first.
func (t *Tape) Messages() []Message {
	list := make([]Message, 0, len(t.ring))
	list = append(list, t.ring[t.next:]...)
	return append(list, t.ring[:t.next]...)
}
