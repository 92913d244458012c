package cluster

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"
)

const copySize = 32 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copySize]byte) }}

// copyResponse writes what the home answers to the client. An event stream, and
// whatever has no known length, is flushed as it comes.
func (n *Node) copyResponse(w http.ResponseWriter, res *http.Response) error {
	h := w.Header()
	for name, values := range res.Header {
		if !hopByHop[name] {
			h[name] = values
		}
	}
	StripPeerHeaders(h)
	c := copier{w: w, control: http.NewResponseController(w), timeout: n.writeTimeout}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	events := media == "text/event-stream"
	c.stream = events || res.ContentLength < 0

	c.deadline()
	w.WriteHeader(res.StatusCode)
	if c.stream {
		if err := c.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("%w: %w", ErrClient, err)
		}
	}
	buf := copyBuffers.Get().(*[copySize]byte)
	defer copyBuffers.Put(buf)
	if err := c.copy(res.Body, buf[:]); err != nil {
		return err
	}
	if c.cause != nil {
		return &LostError{Begun: true, Events: events && c.tail.between(), Cause: c.cause}
	}
	return nil
}

// copier writes a body to a client.
type copier struct {
	w       http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // for each write
	stream  bool          // flush after each write
	tail    tail
	cause   error // why the body ended early
}

func (c *copier) deadline() {
	_ = c.control.SetWriteDeadline(time.Now().Add(c.timeout)) // not every writer has deadlines
}

// copy returns ErrClient where the client does not take it; where the peer
// breaks off that is in c.cause.
func (c *copier) copy(body io.Reader, buf []byte) error {
	for {
		n, err := body.Read(buf)
		if n > 0 {
			c.deadline()
			if err := c.write(buf[:n]); err != nil {
				return fmt.Errorf("%w: %w", ErrClient, err)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			c.cause = err
			return nil
		}
	}
}

func (c *copier) write(b []byte) error {
	if _, err := c.w.Write(b); err != nil {
		return err
	}
	if !c.stream {
		return nil
	}
	c.tail.add(b)
	if err := c.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// tail is the last four bytes of a stream, which tell whether it stands between
// two events.
type tail struct {
	last [4]byte
	n    int // of last that are set
}

func (t *tail) add(b []byte) {
	b = b[max(0, len(b)-len(t.last)):]
	copy(t.last[:], t.last[len(b):])
	copy(t.last[len(t.last)-len(b):], b)
	t.n = min(t.n+len(b), len(t.last))
}

// between: at the start, or after an empty line (WHATWG HTML, section 9.2.5:
// lines end with LF, CR or CRLF).
func (t *tail) between() bool {
	switch end := string(t.last[len(t.last)-t.n:]); {
	case end == "":
		return true
	case len(end) >= 2 && (end[len(end)-2:] == "\n\n" || end[len(end)-2:] == "\r\r" || end[len(end)-2:] == "\n\r"):
		return true
	default:
		return end == "\r\n\r\n"
	}
}
