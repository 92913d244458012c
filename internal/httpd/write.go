package httpd

import (
	"errors"
	"net"
	"strconv"
	"time"
)

var errOver = errors.New("httpd: the handler has returned")

// push sends the head if that has not been done, what is held, and p. final:
// there is no more. The head has what only now is known.
func (w *response) push(p []byte, final bool) {
	o := w.hold()
	n := len(o.body) + len(p)
	if !w.headSent {
		w.complete(o, p, final)
		w.headSent = true
	}
	tail := ""
	switch {
	case w.bodiless():
		o.body, p, n = o.body[:0], nil, 0
	case w.chunked:
		if n > 0 {
			o.head = strconv.AppendUint(o.head, uint64(n), 16)
			o.head = append(o.head, "\r\n"...)
			tail = "\r\n"
		}
		if final {
			tail += "0\r\n\r\n"
		}
	}
	if len(o.head)+n+len(tail) <= joinLimit {
		o.head = append(append(append(o.head, o.body...), p...), tail...)
		w.send(o.head)
	} else {
		o.head = append(o.head, o.body...)
		o.vec = [3][]byte{o.head, p, []byte(tail)}
		o.bufs = o.vec[:]
		w.sendAll(&o.bufs)
	}
	w.letGo()
}

func (w *response) send(b []byte) {
	if w.err == nil && len(b) > 0 {
		w.failed(w.x.ctx.c.write(b))
	}
}

func (w *response) sendAll(bufs *net.Buffers) {
	c := w.x.ctx.c
	c.writes(true)
	_, err := bufs.WriteTo(c.nc)
	c.writes(false)
	w.failed(err)
}

// failed: the client is gone, or does not read.
func (w *response) failed(err error) {
	if err != nil {
		w.err = err
		w.x.ctx.cancel()
	}
}

func (c *conn) write(b []byte) error {
	c.writes(true)
	_, err := c.nc.Write(b)
	c.writes(false)
	return err
}

// writes notes that a write begins, or has ended.
func (c *conn) writes(begins bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing.busy = begins; begins {
		c.writing.apply()
	}
}

func (c *conn) writeBefore(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writing.move(time.Now().Add(d))
}
