//go:build unix

package h1

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// stillOpen looks at the socket without waiting: an idle connection on which
// there is anything to read, an end or unasked bytes, is not used again.
func (c *Conn) stillOpen() bool {
	if c.in.Buffered() > 0 {
		return false
	}
	sc, ok := c.socket.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Read(func(fd uintptr) bool {
		var b [1]byte
		_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
		open = err == unix.EAGAIN || err == unix.EWOULDBLOCK
		return true
	})
	return err == nil && open
}
