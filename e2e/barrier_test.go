package e2e

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// barrier is where calls of randomnames come to that wait until told.
type barrier struct {
	addr string

	mu      sync.Mutex
	arrived map[string]chan net.Conn // tag → who came, and has not been met
}

// newBarrier listens until the test ends.
func newBarrier(t testing.TB) *barrier {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &barrier{addr: l.Addr().String(), arrived: make(map[string]chan net.Conn)}
	var readers sync.WaitGroup
	readers.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			readers.Go(func() {
				tag, err := bufio.NewReader(conn).ReadString('\n')
				if err != nil {
					conn.Close()
					return
				}
				b.queue(strings.TrimSpace(tag)) <- conn
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		readers.Wait()
	})
	return b
}

func (b *barrier) queue(tag string) chan net.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.arrived[tag] == nil {
		b.arrived[tag] = make(chan net.Conn, 100)
	}
	return b.arrived[tag]
}

// held is a call that waits at the barrier.
type held struct{ conn net.Conn }

// await returns when the call with this tag has come.
func (b *barrier) await(t testing.TB, tag string) held {
	t.Helper()
	return b.awaitOr(t, tag, nil)
}

// awaitOr is await for a call that may end early, which fails the test.
func (b *barrier) awaitOr(t testing.TB, tag string, ended <-chan error) held {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	select {
	case conn := <-b.queue(tag):
		t.Cleanup(func() { conn.Close() })
		return held{conn}
	case err := <-ended:
		t.Fatalf("the call %s ended before it came to the barrier: %v", tag, err)
		panic("unreachable")
	case <-ctx.Done():
		t.Fatalf("%s never came to the barrier", tag)
		panic("unreachable")
	}
}

// release lets the call go on.
func (h held) release(t testing.TB) {
	t.Helper()
	if _, err := io.WriteString(h.conn, "go\n"); err != nil {
		t.Fatal(err)
	}
}

// awaitGone returns when the call has been cancelled, or its process has ended.
func (h held) awaitGone(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() { h.conn.Close() })()
	if _, err := h.conn.Read(make([]byte, 1)); err != io.EOF || ctx.Err() != nil {
		t.Errorf("the call still waits: %v", err)
	}
}
