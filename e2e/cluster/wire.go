package cluster

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Wire is a TCP proxy that can be cut, or be slow.
type Wire struct {
	Addr string

	to     string
	mu     sync.Mutex
	listen net.Listener // nil while it is cut
	conns  map[net.Conn]bool
	delay  time.Duration // before each piece of an answer
	wg     sync.WaitGroup
}

// StartWire leads to an address, until the test ends.
func StartWire(t testing.TB, to string) *Wire {
	t.Helper()
	w := &Wire{Addr: freeAddr(t), to: to, conns: make(map[net.Conn]bool)}
	w.Mend(t)
	t.Cleanup(func() {
		w.Cut()
		w.wg.Wait()
	})
	return w
}

// Mend lets connections through again.
func (w *Wire) Mend(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", w.Addr)
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.listen = l
	w.mu.Unlock()
	w.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.wg.Go(func() { w.carry(c) })
		}
	})
}

// Cut ends all connections and refuses new ones.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listen != nil {
		w.listen.Close()
		w.listen = nil
	}
	for c := range w.conns {
		c.Close()
	}
}

// Slow delays each piece of an answer by d from now on.
func (w *Wire) Slow(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

func (w *Wire) carry(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	defer up.Close()
	if !w.track(c, up) {
		return
	}
	defer w.forget(c, up)
	w.wg.Go(func() {
		io.Copy(up, c)
		up.Close()
		c.Close()
	})
	b := make([]byte, 64<<10)
	for {
		n, err := up.Read(b)
		if n > 0 {
			w.mu.Lock()
			d := w.delay
			w.mu.Unlock()
			time.Sleep(d)
			if _, err := c.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// track tells whether the wire is whole still.
func (w *Wire) track(conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		w.conns[c] = true
	}
	return w.listen != nil
}

func (w *Wire) forget(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range conns {
		delete(w.conns, c)
	}
}
