package httpd

import (
	"errors"
	"io"
	"time"
)

// read is the one place that reads from the connection, beside watch.
func (c *conn) read(p []byte) (int, error) {
	c.mu.Lock()
	if c.watched {
		c.reading.apply()
		for c.watched {
			c.unwatch.Wait()
		}
	}
	if c.earlyLen > 0 {
		n := copy(p, c.early[:c.earlyLen])
		c.earlyLen = copy(c.early[:], c.early[n:c.earlyLen])
		c.mu.Unlock()
		return n, nil
	}
	if err := c.readErr; err != nil {
		c.mu.Unlock()
		return 0, err
	}
	c.reading.apply()
	c.reading.busy = true
	c.mu.Unlock()
	n, err := c.nc.Read(p)
	c.mu.Lock()
	c.reading.busy = false
	c.mu.Unlock()
	if n > 0 {
		return n, nil // an error comes again
	}
	return n, err
}

// readBefore bounds reads from now on; 0: not at all.
func (c *conn) readBefore(d time.Duration) {
	var t time.Time
	if d > 0 {
		t = time.Now().Add(d)
	}
	c.mu.Lock()
	c.reading.move(t)
	c.mu.Unlock()
}

// fill reads more into the input buffer.
func (c *conn) fill() error {
	if c.in == nil {
		c.in = inputs.Get().(*input)
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
		if len(c.in.buf) > inputSize {
			c.in.buf = make([]byte, inputSize)
		}
	}
	if c.w == len(c.in.buf) {
		if c.r > 0 {
			c.w = copy(c.in.buf, c.in.buf[c.r:c.w])
			c.r = 0
		} else {
			larger := make([]byte, 2*len(c.in.buf))
			copy(larger, c.in.buf)
			c.in.buf = larger
		}
	}
	n, err := c.read(c.in.buf[c.w:])
	c.w += n
	return err
}

// buffered is what was read and not used yet.
func (c *conn) buffered() []byte {
	if c.in == nil {
		return nil
	}
	return c.in.buf[c.r:c.w]
}

var errHTTP2 = errors.New("httpd: the client speaks HTTP/2")

// await waits for the first bytes of a request.
func (c *conn) await(first bool) error {
	if !first {
		// In this order: Shutdown first says that it stops, then looks at states.
		if c.state.Store(stateIdle); c.s.stopping.Load() {
			return errClosing
		}
	}
	for waits := false; !c.begun(); {
		if !first && !waits {
			waits = true
			c.readBefore(c.s.cfg.IdleTimeout)
		}
		if err := c.fill(); err != nil {
			return err
		}
	}
	if !c.state.CompareAndSwap(stateNew, stateActive) && !c.state.CompareAndSwap(stateIdle, stateActive) {
		return errClosing
	}
	return nil
}

// begun tells whether there is anything of a request. Empty lines that old
// clients send behind the body of a POST are not (RFC 9112, section 2.2).
func (c *conn) begun() bool {
	for ; c.emptyLines > 0; c.emptyLines-- {
		switch b := c.buffered(); {
		case len(b) == 0 || string(b) == "\r":
			return false
		case b[0] != '\r' || b[1] != '\n':
			c.emptyLines = 1
		default:
			c.r += 2
		}
	}
	return c.r < c.w
}

// readHead waits for a request and reads to the end of its head. The bytes are
// good until the next read.
func (c *conn) readHead(first bool) ([]byte, error) {
	if err := c.await(first); err != nil {
		return nil, err
	}
	for seen, timed := 0, false; ; {
		b := c.buffered()
		if !first || c.tls != nil || !isPreface(b) {
			n, err := headEnd(b, seen)
			if seen = len(b); err == nil && (n > c.s.cfg.MaxHeaderBytes || n == 0 && seen > c.s.cfg.MaxHeaderBytes) {
				err = errLongHead
			}
			if err != nil {
				return nil, err
			}
			if n > 0 {
				c.r += n
				return b[:n], nil
			}
		} else if len(b) >= len(preface) {
			return nil, errHTTP2
		}
		if !timed {
			timed = true
			c.readBefore(c.s.cfg.ReadHeaderTimeout)
		}
		if err := c.fill(); err != nil {
			if errors.Is(err, io.EOF) {
				err = errCut
			}
			return nil, err
		}
	}
}
