package h1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Response is the head of an answer; Body reads what follows. The end of Body
// is io.EOF, and an answer that was cut off is io.ErrUnexpectedEOF; only where
// nothing but the end of the connection ends the body the two are the same.
type Response struct {
	Status          int
	ContentType     string // as sent
	ContentEncoding string
	Location        string
	RetryAfter      string
	Session         string // Mcp-Session-Id
	Length          int64  // of the body; -1: not known
	Body            io.Reader

	chunked bool
	close   bool
	length  bool
}

// head reads a status line and the headers after it.
func (c *Conn) head() (*Response, error) {
	left := headLimit
	line, err := c.line(&left)
	if err != nil {
		return nil, err
	}
	r, err := statusLine(line)
	if err != nil {
		return nil, err
	}
	for {
		line, err = c.line(&left)
		if err != nil {
			return nil, unexpected(err)
		}
		if len(line) == 0 {
			return r, nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !token(name) {
			// Also a header that goes on in the next line: a gateway may refuse
			// it (RFC 9112, section 5.2).
			return nil, fmt.Errorf("%w: a header without a name", ErrMalformed)
		}
		if err := c.header(r, name, bytes.Trim(value, " \t")); err != nil {
			return nil, err
		}
	}
}

// statusLine reads "HTTP/1.1 200 OK".
func statusLine(line []byte) (*Response, error) {
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) || !digits(line[7:8]) || line[8] != ' ' {
		return nil, fmt.Errorf("%w: it begins with %q", ErrMalformed, line[:min(len(line), 40)])
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil || status < 100 || !digits(line[9:12]) || len(line) > 12 && line[12] != ' ' {
		return nil, fmt.Errorf("%w: status %q", ErrMalformed, line[9:min(len(line), 16)])
	}
	return &Response{Status: status, Length: -1, close: line[7] == '0'}, nil
}

// line reads one line without its end. The bytes are good until the next read.
// io.EOF: there was nothing.
func (c *Conn) line(left *int) ([]byte, error) {
	line, err := c.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return c.longLine(line, left)
	}
	if err != nil {
		if len(line) > 0 {
			err = unexpected(err)
		}
		return nil, err
	}
	if *left -= len(line); *left < 0 {
		return nil, errLongHead
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

var errLongHead = fmt.Errorf("%w: its head is too long", ErrMalformed)

func (c *Conn) longLine(start []byte, left *int) ([]byte, error) {
	line := bytes.Clone(start)
	for {
		if len(line) > *left {
			return nil, errLongHead
		}
		part, err := c.in.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			if *left -= len(line); *left < 0 {
				return nil, errLongHead
			}
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, unexpected(err)
		}
	}
}

func (c *Conn) header(r *Response, name, value []byte) error {
	switch {
	case is(name, "content-length"):
		n, err := strconv.ParseUint(string(value), 10, 62)
		if err != nil || r.length && int64(n) != r.Length {
			return fmt.Errorf("%w: Content-Length %q", ErrMalformed, value)
		}
		r.Length, r.length = int64(n), true
	case is(name, "transfer-encoding"):
		if !is(value, "chunked") || r.chunked {
			return fmt.Errorf("%w: Transfer-Encoding %q", ErrMalformed, value)
		}
		r.chunked = true
	case is(name, "connection"):
		for part := range bytes.SplitSeq(value, []byte(",")) {
			r.close = r.close || is(bytes.TrimSpace(part), "close")
		}
	case is(name, "keep-alive"):
		c.keep = keepAlive(value)
	case is(name, "content-type"):
		r.ContentType = string(value)
	case is(name, "content-encoding"):
		r.ContentEncoding = string(value)
	case is(name, "location"):
		r.Location = string(value)
	case is(name, "retry-after"):
		r.RetryAfter = string(value)
	case is(name, "mcp-session-id"):
		if r.Session != "" && r.Session != string(value) {
			return fmt.Errorf("%w: two values of Mcp-Session-Id", ErrMalformed)
		}
		r.Session = string(value)
	}
	return nil
}

// keepAlive is the time after which a server that sends "timeout=5" must be
// expected to close the connection, less a margin for a request on its way.
func keepAlive(value []byte) time.Duration {
	for part := range bytes.SplitSeq(value, []byte(",")) {
		name, seconds, ok := bytes.Cut(bytes.TrimSpace(part), []byte("="))
		if !ok || !is(bytes.TrimSpace(name), "timeout") {
			continue
		}
		n, err := strconv.ParseUint(string(bytes.Trim(seconds, `" `)), 10, 16)
		if err != nil {
			return 0
		}
		d := time.Duration(n) * time.Second
		return max(d-time.Second, d/2, time.Nanosecond)
	}
	return 0
}

// is compares without regard to case; lower is in lower case already.
func is(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i := range b {
		ch := b[i]
		if 'A' <= ch && ch <= 'Z' {
			ch += 'a' - 'A'
		}
		if ch != lower[i] {
			return false
		}
	}
	return true
}

// token tells whether b can be a header's name: nothing in it that another
// reader could take for a separator (RFC 9110, section 5.6.2).
func token(b []byte) bool {
	for _, ch := range b {
		if ch <= ' ' || ch >= 0x7F || bytes.IndexByte([]byte(`"(),/:;<=>?@[\]{}`), ch) >= 0 {
			return false
		}
	}
	return len(b) > 0
}

func digits(b []byte) bool {
	for _, ch := range b {
		if ch < '0' || ch > '9' {
			return false
		}
	}
	return true
}
