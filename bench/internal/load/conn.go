package load

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// smallBody is up to where a request's body is copied behind its head, to be one write.
const smallBody = 8 << 10

// idleMost is for how long an unused connection is trusted; Node.js closes it after 5 s.
const idleMost = 2 * time.Second

// conn is one keep-alive HTTP/1.1 connection, for one goroutine. Written by hand because the
// client shares the machine with what it measures.
type conn struct {
	addr     string
	deadline time.Time // of all that happens on it
	used     time.Time // when the last response began

	net  net.Conn
	br   *bufio.Reader
	out  []byte // request head, reused
	body []byte // response body, reused
}

// head is what the client needs of a response's head.
type head struct {
	status  int
	length  int // -1 when there is none
	chunked bool
	events  bool      // Content-Type is text/event-stream
	session string    // Mcp-Session-Id
	first   time.Time // when the first bytes were there
}

func dial(addr string, deadline time.Time) (*conn, error) {
	c := &conn{addr: addr, deadline: deadline}
	return c, c.connect()
}

func (c *conn) connect() error {
	n, err := net.DialTimeout("tcp", c.addr, time.Until(c.deadline))
	if err != nil {
		return reason(err)
	}
	c.net, c.br = n, bufio.NewReaderSize(n, 64<<10)
	return c.extend(c.deadline)
}

// extend moves the deadline.
func (c *conn) extend(deadline time.Time) error {
	c.deadline, c.used = deadline, time.Now()
	return c.net.SetDeadline(deadline)
}

// do sends a request and reads the whole response. prefix is the request up to and with
// "Content-Length: ". The body returned is good until the next call.
func (c *conn) do(prefix string, body []byte) (head, []byte, error) {
	if time.Since(c.used) > idleMost {
		c.close()
		if err := c.connect(); err != nil {
			return head{}, nil, err
		}
	}
	sendErr := c.send(prefix, body)
	h, err := c.readHead() // a server that refuses a request may answer before it was read
	if sendErr != nil && err != nil {
		return h, nil, fmt.Errorf("send the request: %w", reason(sendErr))
	}
	if err != nil {
		return h, nil, err
	}
	reply, err := c.readBody(h)
	return h, reply, err
}

func (c *conn) send(prefix string, body []byte) error {
	c.out = append(c.out[:0], prefix...)
	c.out = strconv.AppendInt(c.out, int64(len(body)), 10)
	c.out = append(c.out, "\r\n\r\n"...)
	if len(body) <= smallBody {
		c.out = append(c.out, body...)
		_, err := c.net.Write(c.out)
		return err
	}
	parts := net.Buffers{c.out, body}
	_, err := parts.WriteTo(c.net)
	return err
}

func (c *conn) readHead() (head, error) {
	h := head{length: -1}
	line, err := c.br.ReadSlice('\n')
	if err != nil {
		return h, fmt.Errorf("read the status line: %w", reason(err))
	}
	h.first = time.Now()
	c.used = h.first
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.")) {
		return h, fmt.Errorf("status line %q", excerpt(line))
	}
	if h.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return h, fmt.Errorf("status line %q", excerpt(line))
	}
	for {
		line, err := c.br.ReadSlice('\n')
		if err != nil {
			return h, fmt.Errorf("read the head: %w", err)
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return h, nil
		}
		if err := h.header(line); err != nil {
			return h, err
		}
	}
}

func (h *head) header(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimSpace(value)
	var err error
	switch {
	case is(name, "content-length"):
		h.length, err = strconv.Atoi(string(value))
	case is(name, "transfer-encoding"):
		h.chunked = is(value, "chunked")
	case is(name, "content-type"):
		h.events = len(value) >= 17 && is(value[:17], "text/event-stream")
	case is(name, "mcp-session-id"):
		h.session = string(value)
	case is(name, "connection") && is(value, "close"):
		err = errors.New("server closes the connection")
	}
	return err
}

// is compares without regard to case; want is lower case.
func is(got []byte, want string) bool {
	return len(got) == len(want) && strings.EqualFold(string(got), want)
}

func (c *conn) readBody(h head) ([]byte, error) {
	switch {
	case h.chunked:
		return c.readChunked()
	case h.length >= 0:
		if cap(c.body) < h.length {
			c.body = make([]byte, h.length)
		}
		c.body = c.body[:h.length]
		_, err := io.ReadFull(c.br, c.body)
		return c.body, err
	case h.status == 204 || h.status == 304:
		return nil, nil
	}
	return nil, errors.New("response without a length")
}

func (c *conn) readChunked() ([]byte, error) {
	chunks := httputil.NewChunkedReader(c.br)
	c.body = c.body[:0]
	for {
		if len(c.body) == cap(c.body) {
			c.body = append(c.body, make([]byte, max(4<<10, len(c.body)))...)[:len(c.body)]
		}
		n, err := chunks.Read(c.body[len(c.body):cap(c.body)])
		c.body = c.body[:len(c.body)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read chunks: %w", reason(err))
		}
	}
	for { // the trailer, up to the empty line
		line, err := c.br.ReadSlice('\n')
		if err != nil {
			return nil, fmt.Errorf("read the trailer: %w", err)
		}
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			return c.body, nil
		}
	}
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close()
	}
}

// reason is err without the addresses of this run.
func reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

func excerpt(b []byte) string {
	if len(b) > 160 {
		return string(b[:160]) + "..."
	}
	return string(b)
}
