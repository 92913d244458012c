package h1

import (
	"errors"
	"os"
)

// Waiter is told when its connection waits for the server.
type Waiter interface {
	// Reading is called before each read from the socket.
	Reading()
	// Late is called when the deadline of a read has passed. true: read on,
	// under the deadline that is set by then.
	Late() bool
}

// Watch makes w the Waiter of the connection until it is put back.
func (c *Conn) Watch(w Waiter) { c.waiter = w }

// source is what the buffer of a Conn is filled from.
type source struct{ c *Conn }

func (s source) Read(p []byte) (int, error) {
	for {
		w := s.c.waiter
		if w != nil {
			w.Reading()
		}
		n, err := s.c.raw.Read(p)
		if n == 0 && err != nil && w != nil && errors.Is(err, os.ErrDeadlineExceeded) && w.Late() {
			continue
		}
		return n, err
	}
}
