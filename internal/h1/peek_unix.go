//go:build unix

package h1

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// peek looks at a socket without waiting. What it needs is made once.
type peek struct {
	raw  syscall.RawConn
	look func(fd uintptr) bool
	open bool // what look has seen
}

// stillOpen looks at the socket without waiting: an idle connection on which
// there is anything to read, an end or unasked bytes, is not used again.
func (c *Conn) stillOpen() bool {
	if c.in.Buffered() > 0 {
		return false
	}
	p := &c.peek
	if p.raw == nil {
		sc, ok := c.socket.(syscall.Conn)
		if !ok {
			return true
		}
		raw, err := sc.SyscallConn()
		if err != nil {
			return false
		}
		p.raw = raw
		p.look = func(fd uintptr) bool {
			var b [1]byte
			_, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
			p.open = err == unix.EAGAIN || err == unix.EWOULDBLOCK
			return true
		}
	}
	p.open = false
	return p.raw.Read(p.look) == nil && p.open
}
