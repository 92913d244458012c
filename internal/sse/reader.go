package sse

import (
	"bytes"
	"errors"
	"io"
	"math"
	"slices"
	"sync"
	"time"
)

// ErrTooLarge says that an event's data, or one of its lines, is longer than the
// Reader's limit.
var ErrTooLarge = errors.New("sse: event is larger than the limit")

const (
	windowSize = 8 << 10

	// lineOverhead is what a line of data may be longer than its data.
	lineOverhead = len("data: ")

	// maxEmptyReads is how often in a row a source may return neither bytes nor
	// an error.
	maxEmptyReads = 100
)

// Event is one event of a stream.
type Event struct {
	// ID is the last id field of this event, and HasID tells whether it had one.
	// An id is not carried over from earlier events: the caller that wants the
	// stream's last event ID keeps the last one with HasID. An empty ID with
	// HasID resets it.
	ID    string
	HasID bool
	// Type is the event field as written; "" means "message".
	Type string
	// Data is the values of the data fields, joined by LF, in a slice of its
	// own. HasData tells whether there was such a field, even an empty one.
	// Bytes are not checked to be UTF-8.
	Data    []byte
	HasData bool
	// Retry is how long a client shall wait before it connects again; < 0 where
	// the event did not say.
	Retry time.Duration
}

// IsMessage reports whether the event is of type message, named or by default.
// A priming event is one too: look at len(Data) before parsing it.
func (e Event) IsMessage() bool {
	return e.Type == "" || e.Type == "message"
}

// Reader reads the events of one stream. It is for one goroutine; to end a Next
// that waits, close the source.
type Reader struct {
	// Static after construction.
	src      io.Reader
	maxEvent int

	// The window: buf[pos:end] is read and not consumed.
	window   *[windowSize]byte
	buf      []byte // all of window
	pos, end int
	readErr  error // of src, due when the window is empty

	started bool   // the place of a byte order mark is behind us
	skipLF  bool   // the last line ended by CR; an LF right after it belongs to it
	line    []byte // the current line, where no window held all of it
	err     error  // what every further Next returns
}

// NewReader returns a Reader of src, which the caller closes. maxEvent is the
// number of bytes that the data of one event may have; the memory held by the
// Reader is bounded by it and a few kilobytes.
func NewReader(src io.Reader, maxEvent int) *Reader {
	maxEvent = min(max(maxEvent, 0), math.MaxInt-lineOverhead)
	window := windows.Get().(*[windowSize]byte)
	return &Reader{src: src, maxEvent: maxEvent, window: window, buf: window[:]}
}

// windows are those of Readers that are done.
var windows = sync.Pool{New: func() any { return new([windowSize]byte) }}

// Release gives the Reader's memory back where its source is left before the
// end; Next fails from then on. What Next has returned stays valid.
func (r *Reader) Release() {
	if r.err == nil {
		r.err = io.ErrClosedPipe
	}
	if r.window != nil {
		windows.Put(r.window)
	}
	r.window, r.buf, r.line = nil, nil, nil
}

// Next returns the next event as soon as its blank line is there; it reads
// nothing more before it returns, so that a stream which stays open after its
// last event holds nobody up.
//
// Events that have neither data nor id nor retry are skipped (WHATWG would
// dispatch those with data only; an id alone is the priming event of MCP
// 2025-11-25).
//
// Errors are final: io.EOF at the end of the source, where an unfinished event
// is discarded; ErrTooLarge; else the error of the source as it came.
func (r *Reader) Next() (Event, error) {
	if r.err != nil {
		return Event{}, r.err
	}
	ev, err := r.next()
	if err != nil {
		r.err = err
		r.Release()
		return Event{}, err
	}
	return ev, nil
}

func (r *Reader) next() (Event, error) {
	if !r.started {
		r.started = true
		r.skipBOM()
	}
	ev := Event{Retry: -1}
	for {
		line, err := r.readLine()
		if err != nil {
			return Event{}, err
		}
		if len(line) > 0 {
			if err := r.addField(&ev, line); err != nil {
				return Event{}, err
			}
			continue
		}
		if ev.HasData || ev.HasID || ev.Retry >= 0 {
			return ev, nil
		}
		ev = Event{Retry: -1} // forgets a type without data
	}
}

// addField puts one line that is not blank into ev (WHATWG HTML 9.2.6).
func (r *Reader) addField(ev *Event, line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		return r.addData(ev, value)
	case "event":
		if ev.Type = "message"; string(value) != ev.Type { // what nearly all are
			ev.Type = string(value)
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			ev.ID, ev.HasID = string(value), true
		}
	case "retry":
		if d, ok := parseRetry(value); ok {
			ev.Retry = d
		}
	}
	return nil // a comment has the empty name
}

func (r *Reader) addData(ev *Event, value []byte) error {
	size := len(value)
	if ev.HasData {
		size += len(ev.Data) + 1
	}
	if size > r.maxEvent {
		return ErrTooLarge
	}
	switch {
	case ev.HasData:
		ev.Data = append(append(ev.Data, '\n'), value...)
	case len(r.line) > 0 && cap(value)-len(value) <= len(value)/4:
		// A line that was put together is ours to give away, which saves a copy;
		// but data may be kept for long, and not with much room behind it.
		ev.Data, r.line = value, nil
	default:
		ev.Data = append([]byte(nil), value...)
	}
	ev.HasData = true
	return nil
}

// parseRetry reads milliseconds: ASCII digits only, at least one. A number too
// large for a Duration is the largest one.
func parseRetry(value []byte) (time.Duration, bool) {
	const most = math.MaxInt64 / int64(time.Millisecond)
	var ms int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return 0, false
		}
		ms = min(ms*10+int64(c-'0'), most) // most*10+9 still fits
	}
	return time.Duration(ms) * time.Millisecond, len(value) > 0
}

// readLine returns the next line without its end. The slice is valid until the
// next call; it is r.line if and only if len(r.line) > 0. Of a comment that does
// not fit the window only the colon is kept, so that it may have any length.
func (r *Reader) readLine() ([]byte, error) {
	if r.line = r.line[:0]; cap(r.line) > windowSize {
		r.line = nil // an idle stream shall not sit on its largest line
	}
	for {
		if r.pos == r.end {
			if err := r.fill(); err != nil {
				return nil, err
			}
		}
		if r.skipLF {
			r.skipLF = false
			if r.buf[r.pos] == '\n' {
				r.pos++
				continue
			}
		}
		part, ended := r.cut()
		if ended && len(r.line) == 0 {
			if len(part) > r.maxEvent+lineOverhead && !isComment(part) {
				return nil, ErrTooLarge
			}
			return part, nil
		}
		if cap(r.line)-len(r.line) < len(part) {
			r.line = slices.Grow(r.line, max(len(part), len(r.line))) // doubles; append is more thrifty, at twice the time
		}
		r.line = append(r.line, part...)
		if isComment(r.line) {
			r.line = r.line[:1]
		} else if len(r.line) > r.maxEvent+lineOverhead {
			return nil, ErrTooLarge
		}
		if ended {
			return r.line, nil
		}
	}
}

// cut consumes the window up to the end of the line, or all of it, and returns
// what it consumed without that end. The window is not empty.
func (r *Reader) cut() (part []byte, ended bool) {
	part = r.buf[r.pos:r.end]
	// The LF first: then the search for a CR stops at the end of this line, not
	// at that of the window.
	if i := bytes.IndexByte(part, '\n'); i >= 0 {
		part, ended = part[:i], true
	}
	if i := bytes.IndexByte(part, '\r'); i >= 0 {
		part, ended = part[:i], true
		r.skipLF = true
	}
	r.pos += len(part)
	if ended {
		r.pos++
	}
	return part, ended
}

func isComment(line []byte) bool {
	return len(line) > 0 && line[0] == ':'
}

// skipBOM drops one byte order mark at the beginning of the stream. It waits for
// more only while what is there may still become one. An error of the source
// stays in readErr.
func (r *Reader) skipBOM() {
	bom := []byte("\xEF\xBB\xBF")
	for r.end < len(bom) && bytes.HasPrefix(bom, r.buf[:r.end]) {
		if r.fill() != nil {
			return
		}
	}
	if bytes.HasPrefix(r.buf[:r.end], bom) {
		r.pos = len(bom)
	}
}

// fill reads at least one byte into the window, once. An error that comes with
// bytes waits until they are consumed.
func (r *Reader) fill() error {
	if r.pos == r.end {
		r.pos, r.end = 0, 0
	}
	for i := 0; r.readErr == nil; i++ {
		if i == maxEmptyReads {
			r.readErr = io.ErrNoProgress
			break
		}
		var n int
		n, r.readErr = r.src.Read(r.buf[r.end:])
		if n > 0 {
			r.end += n
			return nil
		}
	}
	return r.readErr
}
