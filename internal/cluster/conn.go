package cluster

import (
	"bufio"
	"crypto/tls"
	"net"
	"sync"
)

const readSize = 64 << 10

// peerConn is a TLS connection that needs few system calls for large messages:
// TLS alone reads and writes each record of 16 KiB by itself.
//
//	HTTP/2 frame → peerConn.Write → tls: records → batch: held → one write
type peerConn struct {
	*tls.Conn
	raw *batch
}

// newBatch is what goes beneath the tls.Conn of a peerConn.
func newBatch(c net.Conn) *batch {
	return &batch{Conn: c, r: bufio.NewReaderSize(c, readSize)}
}

// Write implements net.Conn, for one goroutine at a time, as HTTP/2 does.
func (c peerConn) Write(b []byte) (int, error) {
	c.raw.hold()
	n, err := c.Conn.Write(b)
	if flushErr := c.raw.flush(); err == nil && flushErr != nil {
		return 0, flushErr
	}
	return n, err
}

// Close implements net.Conn. TLS would first say goodbye, and wait for that to
// be written; the end of each stream is in HTTP/2.
func (c peerConn) Close() error { return c.raw.Close() }

// batch is TCP beneath TLS. Reads are by one goroutine.
type batch struct {
	net.Conn
	r *bufio.Reader

	mu      sync.Mutex
	holding bool
	held    []byte // records to be written by flush
}

func (b *batch) Read(p []byte) (int, error) { return b.r.Read(p) }

// Write implements net.Conn. TLS calls it for alerts from other goroutines too;
// what it writes stays in order.
func (b *batch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.holding {
		b.held = append(b.held, p...)
		return len(p), nil
	}
	return b.Conn.Write(p)
}

func (b *batch) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = true
}

func (b *batch) flush() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.holding = false
	if len(b.held) == 0 {
		return nil
	}
	_, err := b.Conn.Write(b.held)
	b.held = b.held[:0] // at most a frame and what TLS adds
	return err
}
