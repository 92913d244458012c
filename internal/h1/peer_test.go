package h1

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

const get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"

// rawServer answers each connection with serve.
func rawServer(t *testing.T, serve func(net.Conn, *bufio.Reader)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serve(c, bufio.NewReader(c))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}

func newPool(t *testing.T, addr string, o Options) *Pool {
	p := NewPool(addr, o)
	t.Cleanup(p.Close)
	return p
}

func checkCounts(t *testing.T, p *Pool, open, idle int) {
	t.Helper()
	if o, i := p.Stats(); o != open || i != idle {
		t.Errorf("%d open and %d idle, want %d and %d", o, i, open, idle)
	}
}

func exchange(t *testing.T, p *Pool) (*Conn, string) {
	t.Helper()
	c, err := p.Get(context.Background(), false)
	must(t, err)
	must(t, c.Send([]byte(get), nil))
	r, err := c.Receive()
	must(t, err)
	body, err := io.ReadAll(r.Body)
	must(t, err)
	return c, string(body)
}

// await waits for what another process, here the kernel, does on its own.
func await(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("did not come")
		}
	}
}

// pipePool is a pool whose connections lead to serve through net.Pipe, for a
// bubble of synctest.
func pipePool(o Options, serve func(net.Conn)) *Pool {
	o.Dial = func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go serve(theirs)
		return ours, nil
	}
	return NewPool("x:1", o)
}

// answering serves requests without a body until the connection ends.
func answering(headers string) func(net.Conn) {
	return func(c net.Conn) {
		in := bufio.NewReader(c)
		for {
			if _, err := http.ReadRequest(in); err != nil {
				_ = c.Close()
				return
			}
			if _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"+headers+"\r\n{}"); err != nil {
				return
			}
		}
	}
}
