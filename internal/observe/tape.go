package observe

import (
	"time"
	"unicode/utf8"
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

// Message is one message of a session, without its contents.
type Message struct {
	Time      time.Time
	Direction Direction
	Kind      string        // "request", "response" or "notification"
	Method    string        // of a response: that of its request, "" if it is not known; cut by Method
	Size      int           // bytes
	Duration  time.Duration // of a response: since its request came; else 0
	Reason    string        // why Signalbox answered with an error of its own; "": it did not

	id    [maxID]byte
	idLen uint8
}

// SetID keeps the beginning of a raw id token. It does not allocate.
func (m *Message) SetID(token []byte) {
	n := copy(m.id[:], token)
	for n < len(token) && n > 0 && !utf8.RuneStart(token[n]) {
		n--
	}
	m.idLen = uint8(n)
}

// ID is the id token as it came, quotes included, at most 32 bytes of it; "" if
// the message has none.
func (m *Message) ID() string { return string(m.id[:m.idLen]) }

// Method keeps the beginning of a method's name that is none of the protocol's.
func Method(name []byte) string {
	if len(name) <= maxMethod {
		return string(name)
	}
	n := maxMethod
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return string(name[:n])
}

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
