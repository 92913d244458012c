package httpd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// waiter is a handler that waits for the end of its context in some way, and
// tells why it has returned.
type waiter struct {
	begun, over chan string
	wait        func(r *http.Request) string
}

func newWaiter(wait func(r *http.Request) string) *waiter {
	return &waiter{begun: make(chan string, 10), over: make(chan string, 10), wait: wait}
}

func (x *waiter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	x.begun <- string(body)
	x.over <- x.wait(r)
}

func onDone(r *http.Request) string {
	<-r.Context().Done()
	return r.Context().Err().Error()
}

// ways are those in which handlers learn of a client's end.
var ways = map[string]func(r *http.Request) string{
	"Done": onDone,
	"Err": func(r *http.Request) string {
		for r.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		return context.Canceled.Error()
	},
	"WithTimeout": func(r *http.Request) string {
		ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
		defer cancel()
		<-ctx.Done()
		return ctx.Err().Error()
	},
	"WithCancel of WithValue": func(r *http.Request) string {
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), http.ServerContextKey, "x"))
		defer cancel()
		<-ctx.Done()
		return context.Cause(ctx).Error()
	},
	"AfterFunc": func(r *http.Request) string {
		called := make(chan struct{})
		stop := context.AfterFunc(r.Context(), func() { close(called) })
		<-called
		if stop() {
			return "stopped after it was called"
		}
		return r.Context().Err().Error()
	},
}

func TestClientLeaves(t *testing.T) {
	departures := map[string]func(c *client){
		"closes":      func(c *client) { c.Close() },
		"closes half": func(c *client) { _ = c.Conn.(*net.TCPConn).CloseWrite() },
		"resets":      func(c *client) { _ = c.Conn.(*net.TCPConn).SetLinger(0); c.Close() },
	}
	for way, wait := range ways {
		for how, leave := range departures {
			t.Run(way+"/"+how, func(t *testing.T) {
				t.Parallel()
				x := newWaiter(wait)
				r := serveTCP(t, Config{Handler: x})
				for _, req := range []string{get, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab", chunkedHead + "2\r\nab\r\n0\r\n\r\n"} {
					c := r.dial()
					c.send(req)
					<-x.begun
					leave(c)
					if why := <-x.over; why != context.Canceled.Error() {
						t.Error(why)
					}
				}
			})
		}
	}
}

// A child that was cancelled before is forgotten by its parent.
func TestStoppedAfterFunc(t *testing.T) {
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 100 {
			_, cancel := context.WithTimeout(r.Context(), time.Hour)
			cancel()
		}
		stop := context.AfterFunc(r.Context(), func() { t.Error("called") })
		x := r.Context().(*requestContext)
		fmt.Fprint(w, len(x.after), stop(), stop(), len(x.after))
	})})
	c := r.dial()
	c.send(get)
	if _, body := c.answer(); body != "1 true false 0" {
		t.Error(body)
	}
}

// The context of a request is over when its handler has returned.
func TestContextEndsWithHandler(t *testing.T) {
	after := make(chan error, 2)
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), time.Hour)
		context.AfterFunc(ctx, func() { after <- ctx.Err(); cancel() })
	})})
	c := r.dial()
	for range 2 {
		c.send(get)
		c.answer()
		if err := <-after; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

// What is tied to it later is over at once.
func TestContextAfterItsEnd(t *testing.T) {
	var kept context.Context
	c := serveTCP(t, Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { kept = r.Context() })}).dial()
	c.send(get)
	c.answer()
	ctx, cancel := context.WithTimeout(kept, time.Hour)
	defer cancel()
	<-ctx.Done()
	called := make(chan struct{})
	stop := context.AfterFunc(kept, func() { close(called) })
	if <-called; stop() {
		t.Error("stopped after it was called")
	}
	direct := make(chan struct{})
	stop = kept.(*requestContext).AfterFunc(func() { close(direct) })
	if <-direct; stop() {
		t.Error("stopped after it was called")
	}
}

// What the client sends while its request is answered is the next request, and
// no sign of its end, whether the connection was being watched or not.
func TestPipelinedClientIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newWaiter(nil)
		x.wait = func(r *http.Request) string {
			select {
			case <-r.Context().Done():
				return "gone"
			case <-time.After(time.Second):
				return "there"
			}
		}
		c := serve(t, newMemListener(), Config{Handler: x}).dial()
		next := "POST /next HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 10_000) + "\r\nContent-Length: 2\r\n\r\nab"
		c.send(get)
		<-x.begun
		time.Sleep(3 * sweepEvery)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			c.send(next)
			c.send(get + get) // at once with the body: nothing more can be watched
		}()
		for _, want := range []string{"", "ab", "", ""} {
			c.answer()
			if why := <-x.over; why != "there" {
				t.Error(why)
			}
			if want == "" {
				continue
			}
			if body := <-x.begun; body != want {
				t.Errorf("body %q", body)
			}
		}
		<-sent
		c.Close()
	})
}

// A connection is watched only for a handler that has waited for some time,
// and once its body was read.
func TestWatchedWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proceed := make(chan bool)
		r := serve(t, newMemListener(), Config{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if <-proceed {
				r.Context().Done()
				<-proceed
			}
			_, _ = io.Copy(io.Discard, r.Body)
			<-proceed
		})})
		c := r.dial()
		watched := func(want bool) {
			t.Helper()
			time.Sleep(3 * sweepEvery)
			synctest.Wait()
			r.s.mu.Lock()
			defer r.s.mu.Unlock()
			for sc := range r.s.conns {
				sc.mu.Lock()
				if sc.watched != want {
					t.Errorf("watched: %v", sc.watched)
				}
				if want && sc.in != nil && sc.cur.Load() != nil {
					t.Error("it holds a buffer while it waits")
				}
				sc.mu.Unlock()
			}
		}
		for range 2 {
			c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n")
			watched(false)
			proceed <- true // it waits, but has not read the body
			watched(false)
			proceed <- true // it reads
			c.send(strings.Repeat("x", 1000))
			watched(true)
			proceed <- true
			c.answer()
			watched(true) // still: its read is that of the next request
			c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx")
			proceed <- false // it does not wait
			watched(false)
			proceed <- false
			c.answer()
		}
		r.s.sweeper.mu.Lock()
		if n := len(r.s.sweeper.conns); n > 1 || n == 0 && r.s.sweeper.armed {
			t.Error("the sweeper goes on:", n)
		}
		r.s.sweeper.mu.Unlock()
		c.Close()
	})
}

// A write that fails ends the context, too.
func TestWriteFails(t *testing.T) {
	failed := make(chan error, 1)
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		for err == nil {
			_, err = w.Write(make([]byte, 100_000))
		}
		if _, again := w.Write([]byte("x")); again == nil {
			t.Error("a write after that")
		}
		failed <- r.Context().Err()
	})})
	c := r.dial()
	c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n") // its body never comes: nothing can be watched
	_, _ = c.in.ReadByte()
	c.Close()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
