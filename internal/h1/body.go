package h1

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// frame decides where the body ends (RFC 9112, section 6.3).
func (c *Conn) frame(r *Response) {
	switch {
	case r.Status == 204 || r.Status == 304:
		// Who announces a body all the same may send it, too.
		mustClose := r.close || r.chunked || r.Length > 0
		r.Length, r.Body = 0, &lengthBody{c: c}
		c.ended(mustClose)
	case r.chunked:
		// Both headers: an attempt to smuggle; the length means nothing.
		r.Body = &chunkedBody{c: c, close: r.close || r.length}
		r.Length = -1
	case r.length:
		r.Body = &lengthBody{c: c, left: r.Length, close: r.close}
		if r.Length == 0 {
			c.ended(r.close)
		}
	default:
		r.Body = c.in // until close; never reusable
	}
}

type lengthBody struct {
	c     *Conn
	left  int64
	close bool
}

func (b *lengthBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.c.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if b.left == 0 {
		b.c.ended(b.close)
		return n, nil
	}
	return n, unexpected(err)
}

type chunkedBody struct {
	c     *Conn
	left  int64 // of the current chunk
	begun bool
	close bool
	err   error // sticks: after a fault nobody knows what the next bytes are
}

func (b *chunkedBody) Read(p []byte) (int, error) {
	if b.err == nil && b.left == 0 {
		b.err = b.next()
	}
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.c.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.err = unexpected(err)
	return n, b.err
}

// next reads the line before a chunk, and after the last one the trailer, which
// ends in io.EOF.
func (b *chunkedBody) next() error {
	left := 4096
	if b.begun {
		line, err := b.line(&left)
		if err != nil {
			return err
		}
		if len(line) != 0 {
			return fmt.Errorf("%w: a chunk is longer than it says", ErrMalformed)
		}
	}
	b.begun = true
	line, err := b.line(&left)
	if err != nil {
		return err
	}
	size, err := chunkSize(line)
	if err != nil {
		return err
	}
	if b.left = size; size > 0 {
		return nil
	}
	for range maxTrailer {
		if line, err = b.c.line(&left); err != nil {
			return unexpected(err)
		}
		if len(line) == 0 {
			b.c.ended(b.close)
			return io.EOF
		}
	}
	return fmt.Errorf("%w: its trailer is too long", ErrMalformed)
}

// line reads a line of the framing. It must end in CRLF: readers that disagree
// about a lone LF see different chunks.
func (b *chunkedBody) line(left *int) ([]byte, error) {
	before := *left
	line, err := b.c.line(left)
	if err != nil {
		return nil, unexpected(err)
	}
	if before-*left != len(line)+2 || bytes.IndexByte(line, '\r') >= 0 {
		return nil, fmt.Errorf("%w: a line of its chunks is not ended by CRLF", ErrMalformed)
	}
	return line, nil
}

// chunkSize reads hexadecimal digits up to an extension.
func chunkSize(line []byte) (int64, error) {
	var n int64
	digits := 0
	for _, ch := range line {
		var d int64
		switch {
		case '0' <= ch && ch <= '9':
			d = int64(ch - '0')
		case 'a' <= ch && ch <= 'f':
			d = int64(ch-'a') + 10
		case 'A' <= ch && ch <= 'F':
			d = int64(ch-'A') + 10
		default:
			if digits > 0 && (ch == ';' || ch == ' ' || ch == '\t') {
				return n, nil
			}
			return 0, fmt.Errorf("%w: chunk size %q", ErrMalformed, line[:min(len(line), 40)])
		}
		if digits++; digits > 15 {
			return 0, fmt.Errorf("%w: chunk size %q", ErrMalformed, line[:min(len(line), 40)])
		}
		n = n<<4 | d
	}
	if digits == 0 {
		return 0, fmt.Errorf("%w: an empty chunk size", ErrMalformed)
	}
	return n, nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
