package h1

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestReuse(t *testing.T) {
	var conns atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.RemoteAddr)
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	p := newPool(t, srv.Listener.Addr().String(), Options{})
	c, first := exchange(t, p)
	if c.Reused {
		t.Error("the first one is new")
	}
	p.Put(c)
	for range 3 {
		c, body := exchange(t, p)
		if !c.Reused || body != first {
			t.Errorf("reused %v, from %s, then %s", c.Reused, first, body)
		}
		p.Put(c)
	}
	c, err := p.Get(t.Context(), true)
	must(t, err)
	if c.Reused || conns.Load() > 2 {
		t.Error("asked for a fresh one")
	}
	p.Drop(c)
}

func TestNoReuseBeforeTheEnd(t *testing.T) {
	addr := rawServer(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
		}
		_, _ = in.ReadByte() // until the client closes
	})
	p := newPool(t, addr, Options{})
	c, err := p.Get(t.Context(), false)
	must(t, err)
	must(t, c.Send([]byte(get), nil))
	r, err := c.Receive()
	must(t, err)
	_, err = io.ReadFull(r.Body, make([]byte, 4))
	must(t, err)
	p.Put(c)
	checkCounts(t, p, 0, 0)
}

// TestUnaskedBytes: a connection on which something came after the answer is
// not used again; it would be taken for the next answer.
func TestUnaskedBytes(t *testing.T) {
	for name, late := range map[string]bool{"with the answer": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			more := make(chan struct{})
			addr := rawServer(t, func(c net.Conn, in *bufio.Reader) {
				if _, err := http.ReadRequest(in); err != nil {
					return
				}
				answer, evil := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"
				if late {
					_, _ = io.WriteString(c, answer)
					_, _ = io.WriteString(c, evil)
				} else {
					_, _ = io.WriteString(c, answer+evil)
				}
				close(more)
				_, _ = in.ReadByte()
			})
			p := newPool(t, addr, Options{})
			c, _ := exchange(t, p)
			p.Put(c)
			<-more
			await(t, func() bool { return !c.stillOpen() })
			if got := p.pop(); got != c {
				t.Fatal("not idle")
			}
			p.Put(c)
			c2, err := p.Get(t.Context(), false)
			must(t, err)
			if c2 == c || c2.Reused {
				t.Error("used again")
			}
			p.Drop(c2)
		})
	}
}

func TestClosedByServer(t *testing.T) {
	addr := rawServer(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
		}
	})
	p := newPool(t, addr, Options{})
	for range 20 {
		c, body := exchange(t, p)
		if c.Reused || body != "{}" {
			t.Fatalf("reused %v, body %q", c.Reused, body)
		}
		p.Put(c)
		await(t, func() bool { return !c.stillOpen() })
	}
	checkCounts(t, p, 1, 1)
}

func TestAge(t *testing.T) {
	tests := []struct {
		name, header string
		wait         time.Duration
		reused       bool
	}{
		{"young", "", 19 * time.Second, true},
		{"old", "", 21 * time.Second, false},
		{"the server says 5 s, young", "Keep-Alive: timeout=5\r\n", 3 * time.Second, true},
		{"the server says 5 s, old", "Keep-Alive: timeout=5\r\n", 4500 * time.Millisecond, false},
		{"the server says a minute", "Keep-Alive: timeout=60\r\n", 21 * time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := pipePool(Options{}, answering(tt.header))
				defer p.Close()
				c, _ := exchange(t, p)
				c.SetDeadline(time.Now().Add(time.Second)) // of the exchange; it ends with that
				p.Put(c)
				time.Sleep(tt.wait)
				c, _ = exchange(t, p)
				if c.Reused != tt.reused {
					t.Errorf("reused: %v", c.Reused)
				}
				p.Put(c)
			})
		})
	}
}

func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipePool(Options{MaxAge: 10 * time.Second}, answering(""))
		defer p.Close()
		for round := range 3 {
			a, _ := exchange(t, p)
			b, _ := exchange(t, p)
			p.Put(a)
			time.Sleep(6 * time.Second)
			p.Put(b)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			checkCounts(t, p, 1, 1)
			if got := p.pop(); got != b {
				t.Fatalf("round %d: the wrong one is left", round)
			}
			p.Put(b)
			time.Sleep(20 * time.Second)
			synctest.Wait()
			checkCounts(t, p, 0, 0)
		}
	})
}

func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipePool(Options{MaxIdle: 2}, answering(""))
		defer p.Close()
		var conns []*Conn
		for range 5 {
			c, _ := exchange(t, p)
			conns = append(conns, c)
		}
		for _, c := range conns {
			p.Put(c)
		}
		checkCounts(t, p, 2, 2)
		if c, _ := exchange(t, p); c != conns[4] {
			t.Error("not the one used last")
		}
	})
}

func TestCloseWhileInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipePool(Options{}, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		idle, err := p.Get(t.Context(), false)
		must(t, err)
		idle.reusable = true
		p.Put(idle)
		c, err := p.Get(t.Context(), true)
		must(t, err)
		failed := make(chan error)
		go func() {
			if err := c.Send([]byte(get), nil); err != nil {
				failed <- err
				return
			}
			_, err := c.Receive()
			failed <- err
		}()
		synctest.Wait()
		p.Close()
		if err := <-failed; err == nil {
			t.Error("no error")
		}
		p.Put(c)
		if _, err := p.Get(t.Context(), false); !errors.Is(err, ErrClosed) {
			t.Errorf("Get after Close: %v", err)
		}
		checkCounts(t, p, 0, 0)
	})
}

// TestDoubt: neither what is idle nor what is in use serves again, and what is
// dialled afterwards does.
func TestDoubt(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	p := newPool(t, srv.Listener.Addr().String(), Options{})
	idle, _ := exchange(t, p)
	used, err := p.Get(t.Context(), true)
	must(t, err)
	must(t, used.Send([]byte(get), nil))
	_, err = used.Receive()
	must(t, err)
	p.Put(idle)
	p.Doubt()
	checkCounts(t, p, 1, 0)
	p.Put(used)
	checkCounts(t, p, 0, 0)
	c, _ := exchange(t, p)
	if c.Reused {
		t.Error("a connection from before the doubt")
	}
	p.Put(c)
	checkCounts(t, p, 1, 1)
}
