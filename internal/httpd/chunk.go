package httpd

import (
	"bytes"
	"errors"
	"io"
)

const (
	maxChunkLine = 1 << 10  // bytes of the line before a chunk
	maxTrailer   = 2 << 10  // bytes of all trailers
	maxExcess    = 16 << 10 // bytes of framing, where there is little data in it
)

var (
	errChunk   = errors.New("httpd: malformed chunked body")
	errFraming = errors.New("httpd: a chunked body has more framing than data")
)

// nextChunk reads the line before a chunk (RFC 9112, section 7.1), and after
// the last one the trailers, which end in io.EOF.
func (b *body) nextChunk() error {
	c := b.x.ctx.c
	if b.begun {
		line, err := c.line(2)
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return errChunk
		}
	}
	b.begun = true
	line, err := c.line(maxChunkLine)
	if err != nil {
		return err
	}
	size, ok := chunkSize(line)
	if !ok {
		return errChunk
	}
	// By net/http's measure: single bytes may be sent, with long extensions
	// they may not.
	b.excess = max(b.excess+int64(len(line))+2-16-2*size, 0)
	if b.excess > maxExcess {
		return errFraming
	}
	if b.left = size; size > 0 {
		return nil
	}
	return c.trailers()
}

// trailers reads and drops them. They must look like headers all the same.
func (c *conn) trailers() error {
	for left := maxTrailer; ; {
		line, err := c.line(left)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			return io.EOF
		}
		left -= len(line) + 2
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || len(name) == 0 || !all(name, isToken) || !all(value, isValue) {
			return errChunk
		}
	}
}

// line reads a line of at most limit bytes with its CRLF, which it cuts off.
// The bytes are good until the next read.
func (c *conn) line(limit int) ([]byte, error) {
	for {
		b := c.buffered()
		i := bytes.IndexByte(b, '\n')
		switch {
		case i >= limit || i < 0 && len(b) >= limit:
			return nil, errChunk
		case i == 0 || i > 0 && b[i-1] != '\r':
			return nil, errChunk
		case i > 0:
			c.r += i + 1
			return b[:i-1], nil
		}
		if err := c.fill(); err != nil {
			return nil, unexpected(err)
		}
	}
}

// chunkSize reads hexadecimal digits, up to an extension or white space.
func chunkSize(line []byte) (n int64, ok bool) {
	size, extension, extended := bytes.Cut(line, []byte(";"))
	if !extended {
		size = bytes.TrimRight(size, " \t")
	}
	if len(size) == 0 || len(size) > 15 || !all(extension, isValue) {
		return 0, false
	}
	for _, ch := range size {
		switch {
		case digit(ch):
			ch -= '0'
		case 'a' <= ch && ch <= 'f':
			ch -= 'a' - 10
		case 'A' <= ch && ch <= 'F':
			ch -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | int64(ch)
	}
	return n, true
}
