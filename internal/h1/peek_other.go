//go:build !unix

package h1

import (
	"errors"
	"os"
	"time"
)

// peek is not needed here.
type peek struct{}

// stillOpen waits a moment for an end or unasked bytes, since the socket cannot
// be looked at here without waiting; not after a short pause, in which a server
// hardly closes.
func (c *Conn) stillOpen() bool {
	if c.in.Buffered() > 0 {
		return false
	}
	if time.Since(c.idleSince) < peekAfter {
		return true
	}
	c.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := c.in.Peek(1)
	c.SetReadDeadline(time.Time{})
	return errors.Is(err, os.ErrDeadlineExceeded)
}

const peekAfter = time.Second
