package h1

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"
)

// Conn is one connection. One goroutine uses it; Abort may be called by others.
type Conn struct {
	raw       net.Conn // TLS or the socket itself
	socket    net.Conn
	in        *bufio.Reader
	out       []byte        // scratch for small requests
	keep      time.Duration // idle for so long, the server closes it; 0: it did not say
	idleSince time.Time
	waiter    Waiter
	peek      peek // looks whether it is still open
	age       int  // of the pool, when it was dialled
	broken    bool // a request was not written to its end
	reusable  bool // the last answer was read to its end, and the server keeps the connection

	// Reused tells that the connection served an exchange before: the server
	// may close it at the moment at which the next request is sent.
	Reused bool
}

const (
	joinLimit  = 16 << 10 // up to this size, head and body are copied for one write
	headLimit  = 64 << 10 // bytes of an answer's head
	interim    = 10       // 1xx answers in a row
	maxTrailer = 64       // lines
)

func newConn(raw, socket net.Conn) *Conn {
	c := &Conn{raw: raw, socket: socket}
	c.in = bufio.NewReaderSize(source{c}, 4<<10)
	return c
}

// SetDeadline bounds all reads and writes from now on. It may be called from
// any goroutine.
func (c *Conn) SetDeadline(t time.Time) { _ = c.raw.SetDeadline(t) }

// SetReadDeadline bounds reads. It may be called from any goroutine.
func (c *Conn) SetReadDeadline(t time.Time) { _ = c.raw.SetReadDeadline(t) }

// SetWriteDeadline bounds writes. It may be called from any goroutine.
func (c *Conn) SetWriteDeadline(t time.Time) { _ = c.raw.SetWriteDeadline(t) }

// Abort makes whatever the connection waits for fail, from any goroutine. It is
// for whoever holds the connection: one that was put back may serve others.
func (c *Conn) Abort() { _ = c.socket.Close() }

// Send writes a request: head with its empty line, and the body as its
// Content-Length announced. After an error there may still be an answer to
// read: a server that refuses a large body says so and closes.
func (c *Conn) Send(head, body []byte) error {
	c.reusable = false
	var err error
	if len(head)+len(body) <= joinLimit {
		c.out = append(append(c.out[:0], head...), body...)
		_, err = c.raw.Write(c.out)
	} else {
		bufs := net.Buffers{head, body}
		_, err = bufs.WriteTo(c.raw)
	}
	c.broken = err != nil
	return err
}

// ErrMalformed is wrapped by errors about an answer that is no HTTP/1.1.
var ErrMalformed = errors.New("the server's answer is no HTTP/1.1")

// Receive reads the head of the answer to the request that was sent. io.EOF:
// the server closed the connection before it answered anything.
func (c *Conn) Receive() (*Response, error) {
	for range interim {
		r, err := c.head()
		if err != nil {
			return nil, err
		}
		if r.Status >= 200 {
			c.frame(r)
			return r, nil
		}
		if r.Status == 101 {
			return nil, fmt.Errorf("%w: it switches protocols", ErrMalformed)
		}
	}
	return nil, fmt.Errorf("%w: too many interim answers", ErrMalformed)
}

// ended notes that the answer was read to its end.
func (c *Conn) ended(mustClose bool) { c.reusable = !mustClose && !c.broken }

// fresh tells whether the server can be trusted to keep an idle connection
// open still.
func (c *Conn) fresh(maxAge time.Duration) bool {
	if c.keep > 0 {
		maxAge = min(maxAge, c.keep)
	}
	return time.Since(c.idleSince) < maxAge
}
