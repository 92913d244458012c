package httpd

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxDrain  = 256 << 10       // bytes of a body that nobody wants, read so that the connection can go on
	drainTime = 5 * time.Second // for these
	directly  = 512             // bytes: smaller reads go through the input buffer
)

// body is a request's body: as long as its Content-Length says, or chunked.
type body struct {
	x     *exchange
	ended atomic.Bool // read to its end: what follows is another request

	mu      sync.Mutex
	left    int64 // of the body, or of the chunk
	chunked bool
	begun   bool  // a chunk was read
	excess  int64 // of framing over data in chunks
	err     error // sticks: after a fault nobody knows what the next bytes are
	closed  bool
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	b.x.w.sendContinue()
	return b.readLocked(p)
}

// Close makes further reads fail. What is left is read before the answer.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

func (b *body) readLocked(p []byte) (int, error) {
	if b.err == nil && b.left == 0 {
		b.err = io.EOF
		if b.chunked {
			b.failed(b.nextChunk())
		}
	}
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	n, err := b.x.ctx.c.readSome(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); err != nil {
		b.failed(err)
		return n, b.err
	}
	if b.left > 0 {
		return n, nil
	}
	// The end is noted as soon as it is there: many read no further.
	if b.chunked {
		c := b.x.ctx.c
		if !bytes.HasPrefix(c.buffered(), []byte(lastChunk)) {
			return n, nil
		}
		c.r += len(lastChunk)
	}
	b.err = io.EOF
	b.ended.Store(true)
	return n, io.EOF
}

// lastChunk, with the end of the chunk before it.
const lastChunk = "\r\n0\r\n\r\n"

// failed notes how the body ended; io.EOF: well.
func (b *body) failed(err error) {
	if b.err = err; err == nil {
		return
	}
	if errors.Is(err, io.EOF) {
		b.ended.Store(true)
		return
	}
	b.x.ctx.cancel()
}

// readSome reads bytes of a body. An end of the connection is unexpected.
func (c *conn) readSome(p []byte) (int, error) {
	if c.r == c.w {
		var n int
		var err error
		if len(p) >= directly {
			n, err = c.read(p)
		} else {
			err = c.fill()
		}
		if n > 0 || err != nil {
			return n, unexpected(err)
		}
	}
	n := copy(p, c.buffered())
	c.r += n
	return n, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// drain reads what the handler has left. false: there is too much, or it does
// not come, and the connection cannot be used for another request.
func (b *body) drain() bool {
	if b.ended.Load() {
		return true
	}
	if !b.mu.TryLock() {
		return false // somebody is reading still
	}
	defer b.mu.Unlock()
	b.closed = true
	if b.err != nil || !b.chunked && b.left > maxDrain {
		return false
	}
	c := b.x.ctx.c
	c.mu.Lock()
	if end := time.Now().Add(drainTime); c.reading.want.IsZero() || c.reading.want.After(end) {
		c.reading.move(end)
	}
	c.mu.Unlock()
	in := inputs.Get().(*input)
	defer inputs.Put(in)
	for total := 0; total <= maxDrain; {
		n, err := b.readLocked(in.buf)
		if total += n; err != nil {
			return errors.Is(err, io.EOF)
		}
	}
	return false
}

// retire makes the body useless for whoever holds it after the request. false:
// somebody is reading still.
func (b *body) retire() bool {
	if !b.mu.TryLock() {
		return b.ended.Load()
	}
	b.closed = true
	b.mu.Unlock()
	return true
}
