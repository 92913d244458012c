package child

import (
	"bytes"

	"github.com/signalbox-mcp/signalbox/internal/buf"
)

const (
	readSmall   = 16 << 10  // first read buffer
	readUsual   = 256 << 10 // what it grows to while reads fill it
	readLargest = 4 << 20   // a part of a huge line
	edgeBytes   = 4 << 10   // head and tail kept of a line above the limit
	partialMax  = 1 << 10
	// What may be cut off a line before its length counts: a byte order mark and a CR.
	lineSlack = 4
)

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// framer cuts a byte stream into lines. The reader reads into space() and says
// how much with filled(); how the stream is cut into reads makes no difference.
// Owned by the reader goroutine.
//
// A line within the buffer is copied out. One that outgrows it is collected in
// parts and copied once into a slice of its exact size: every byte is copied at
// most twice, and the memory in use stays below twice the line and one part,
// where a doubling buffer would need three times.
type framer struct {
	max      int
	line     func([]byte)
	oversize func(head, tail []byte, size int64)
	buffers  *buf.Pool // for copies of large lines; nil: none are reused

	buf      []byte // buf[from:to] belongs to the unfinished line
	from, to int
	parts    [][]byte // earlier pieces of the unfinished line
	partsLen int
	over     *edges // not nil: the unfinished line is being discarded
	begun    bool   // a line has ended, so no byte order mark can follow
}

// space returns room to read into, never empty.
func (f *framer) space() []byte {
	switch {
	case f.buf == nil:
		f.buf = make([]byte, readSmall)
	case f.from == f.to:
		f.from, f.to = 0, 0
		if len(f.buf) > readUsual && f.partsLen == 0 {
			f.buf = make([]byte, readUsual) // the huge line is over
		}
	case f.to < len(f.buf):
	case f.from > 0:
		f.to = copy(f.buf, f.buf[f.from:f.to])
		f.from = 0
	default: // the line fills the buffer
		f.parts = append(f.parts, f.buf)
		f.partsLen += len(f.buf)
		f.buf = make([]byte, min(2*len(f.buf), readLargest))
		f.from, f.to = 0, 0
	}
	return f.buf[f.to:]
}

// filled takes the n bytes that were read into space().
func (f *framer) filled(n int) {
	at := f.to
	f.to += n
	full := f.to == len(f.buf)
	for {
		i := bytes.IndexByte(f.buf[at:f.to], '\n')
		if i < 0 {
			break
		}
		f.end(f.buf[f.from : at+i])
		at += i + 1
		f.from = at
	}
	f.keep()
	if full && len(f.buf) < readUsual && f.partsLen == 0 {
		bigger := make([]byte, 2*len(f.buf))
		f.to = copy(bigger, f.buf[f.from:f.to])
		f.buf, f.from = bigger, 0
	}
}

// keep decides what happens to the bytes of the line that has not ended yet.
func (f *framer) keep() {
	rest := f.buf[f.from:f.to]
	if f.over == nil && f.partsLen+len(rest) > f.max+lineSlack {
		f.over = f.discard()
	}
	if f.over != nil {
		f.over.add(rest)
		f.from, f.to = 0, 0
	}
}

// discard gives up the parts of the unfinished line but for its edges.
func (f *framer) discard() *edges {
	over := new(edges)
	for _, part := range f.parts {
		over.add(part)
	}
	f.parts, f.partsLen = nil, 0
	return over
}

// end takes the last bytes of a line, without its LF, and delivers it.
func (f *framer) end(last []byte) {
	first := !f.begun
	f.begun = true
	if f.over == nil {
		line := f.assemble(last)
		if first {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if len(line) <= f.max {
			inBuffer := f.partsLen == 0
			f.parts, f.partsLen = nil, 0
			f.deliver(line, inBuffer)
			return
		}
		f.over = f.discard()
	}
	f.over.add(last)
	head, tail, size := f.over.finish(first)
	f.over = nil
	f.oversize(head, tail, size)
}

// assemble returns the whole line, in the read buffer if it is all there.
func (f *framer) assemble(last []byte) []byte {
	if f.partsLen == 0 {
		return last
	}
	line := make([]byte, 0, f.partsLen+len(last))
	for _, part := range f.parts {
		line = append(line, part...)
	}
	return append(line, last...)
}

// deliver hands the line over, as a copy if it lies in the read buffer.
func (f *framer) deliver(line []byte, inBuffer bool) {
	if blank(line) {
		return
	}
	if inBuffer {
		copied := f.buffers.Get(len(line))
		copy(copied, line)
		line = copied
	}
	f.line(line)
}

// partial returns the end of the unfinished line, at most partialMax bytes.
func (f *framer) partial() []byte {
	rest := f.buf[f.from:f.to]
	if f.over != nil {
		rest = f.over.tail
	}
	if !f.begun && f.partsLen == 0 {
		rest = bytes.TrimPrefix(rest, byteOrderMark)
	}
	return rest[max(0, len(rest)-partialMax):]
}

func blank(line []byte) bool {
	for _, c := range line {
		if c != ' ' && (c < '\t' || c > '\r') {
			return false
		}
	}
	return true
}

// edges is what remains of a line that is too long. It keeps a little more than
// edgeBytes on both sides, for the mark and the CR that finish cuts off.
type edges struct {
	head, tail []byte
	size       int64
}

func (e *edges) add(b []byte) {
	e.size += int64(len(b))
	if room := edgeBytes + len(byteOrderMark) - len(e.head); room > 0 {
		e.head = append(e.head, b[:min(room, len(b))]...)
	}
	const keep = edgeBytes + 1
	b = b[max(0, len(b)-keep):]
	if drop := len(e.tail) + len(b) - keep; drop > 0 {
		e.tail = append(e.tail[:0], e.tail[drop:]...)
	}
	e.tail = append(e.tail, b...)
}

func (e *edges) finish(first bool) (head, tail []byte, size int64) {
	head, tail, size = e.head, e.tail, e.size
	if first && bytes.HasPrefix(head, byteOrderMark) {
		head = head[len(byteOrderMark):]
		size -= int64(len(byteOrderMark))
	}
	if bytes.HasSuffix(tail, []byte{'\r'}) {
		tail = tail[:len(tail)-1]
		size--
	}
	edge := int(min(size, edgeBytes))
	return head[:min(edge, len(head))], tail[max(0, len(tail)-edge):], size
}
