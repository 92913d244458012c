package httpd

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// near tells whether a timeout came on time, which is a little late.
func near(got, want time.Duration) bool {
	return got >= want && got <= want+want/16
}

func TestTimeouts(t *testing.T) {
	const header, idle = 10 * time.Second, time.Minute
	for name, c := range map[string]struct {
		talk func(c *client)
		want time.Duration // from the end of talk to the end of the connection
	}{
		"silent":       {func(*client) {}, header},
		"one byte":     {func(c *client) { time.Sleep(5 * time.Second); c.send("G") }, header},
		"idle":         {func(c *client) { c.send(get); c.answer() }, idle},
		"idle again":   {func(c *client) { c.send(get); c.answer(); time.Sleep(idle - time.Second); c.send(get); c.answer() }, idle},
		"slow head":    {func(c *client) { c.send(get[:9]) }, header},
		"second head":  {func(c *client) { c.send(get); c.answer(); time.Sleep(idle / 2); c.send(get[:9]) }, header},
		"pipelined":    {func(c *client) { c.send(get + get[:9]); c.answer() }, header},
		"drip":         {drip(get[:9]), header - 9*time.Second/2},
		"drip, second": {func(c *client) { c.send(get); c.answer(); drip(get[:9])(c) }, header - 9*time.Second/2},
		"line after":   {func(c *client) { c.send("POST / HTTP/1.1\r\nHost: h\r\n\r\n"); c.answer(); c.send("\r\n") }, idle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := serve(t, newMemListener(), Config{Handler: echo, ReadHeaderTimeout: header, IdleTimeout: idle}).dial()
				c.talk(client)
				at := time.Now()
				client.ended()
				if got := time.Since(at); got < c.want-time.Second || got > c.want+idle/16 {
					t.Errorf("closed after %v, want %v", got, c.want)
				}
			})
		})
	}
}

// drip sends a byte every half second.
func drip(s string) func(c *client) {
	return func(c *client) {
		for i := range s {
			c.send(s[i : i+1])
			time.Sleep(time.Second / 2)
		}
	}
}

func TestHandlerDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var took time.Duration
		var err error
		handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			control := http.NewResponseController(w)
			switch r.URL.Path {
			case "/read":
				_ = control.SetReadDeadline(began.Add(10 * time.Second))
				_, err = io.ReadAll(r.Body)
			case "/moved": // while it reads
				_ = control.SetReadDeadline(began.Add(time.Hour))
				go func() {
					time.Sleep(time.Second)
					_ = control.SetReadDeadline(began.Add(10 * time.Second))
				}()
				_, err = io.ReadAll(r.Body)
			case "/write":
				for err = nil; err == nil; {
					_ = control.SetWriteDeadline(time.Now().Add(10 * time.Second))
					_, err = w.Write(make([]byte, 100_000))
				}
			case "/write-moved":
				_ = control.SetWriteDeadline(began.Add(time.Hour))
				go func() {
					time.Sleep(time.Second)
					_ = control.SetWriteDeadline(began.Add(10 * time.Second))
				}()
				_, err = w.Write(make([]byte, 100_000))
			case "/past":
				_ = control.SetReadDeadline(began.Add(10 * time.Second))
				_ = control.SetReadDeadline(began.Add(-time.Second))
				if _, err = io.ReadAll(r.Body); time.Now() == began {
					began = began.Add(-10 * time.Second)
				}
			}
			took = time.Since(began)
		})
		r := serve(t, newMemListener(), Config{Handler: handler})
		for _, path := range []string{"/read", "/moved", "/write", "/write-moved", "/past"} {
			c := r.dial()
			c.send("POST " + path + " HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nabc")
			time.Sleep(11 * time.Second)
			synctest.Wait()
			if !near(took, 10*time.Second) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: %v after %v", path, err, took)
			}
			c.Close()
		}
	})
}

// A deadline of one request means nothing for the next.
func TestDeadlinesEndWithRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		c := serve(t, newMemListener(), Config{IdleTimeout: time.Hour, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if first {
				_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Second))
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Second))
			}
			first = false
			echo(w, r)
		})}).dial()
		const post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n"
		c.send(post + "abcd")
		c.answer()
		time.Sleep(time.Minute)
		c.send(post)
		time.Sleep(time.Minute)
		c.send("abcd")
		time.Sleep(time.Minute) // it cannot write so long
		if _, body := c.answer(); body != "abcd" {
			t.Error(body)
		}
		c.Close()
	})
}

// A client that neither sends the body it has announced nor closes is let go.
func TestUnreadBodyThatDoesNotCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := serve(t, newMemListener(), Config{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
		for _, head := range []string{
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\nabc", chunkedHead + "3\r\nabc",
			"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\nConnection: close\r\n\r\nabc",
		} {
			c := r.dial()
			c.send(head)
			began := time.Now()
			if res, _ := c.answer(); !res.Close {
				t.Error("it stays")
			}
			c.ended()
			if took := time.Since(began); took > drainTime+drainTime/16+lingerTime+lingerTime/16 {
				t.Error("let go after", took)
			}
		}
	})
}

// counted counts what costs a system call or a timer.
type counted struct {
	net.Conn
	reads, writes, deadlines int
}

func (c *counted) Read(p []byte) (int, error)       { c.reads++; return c.Conn.Read(p) }
func (c *counted) Write(p []byte) (int, error)      { c.writes++; return c.Conn.Write(p) }
func (c *counted) SetReadDeadline(time.Time) error  { c.deadlines++; return nil }
func (c *counted) SetWriteDeadline(time.Time) error { c.deadlines++; return nil }

// A small request costs one read, one write and no deadline.
func TestCostOfSmallRequests(t *testing.T) {
	l := newMemListener()
	r := serve(t, l, Config{ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(time.Minute))
		body, _ := io.ReadAll(r.Body)
		_ = control.SetReadDeadline(time.Time{})
		_ = control.SetWriteDeadline(time.Now().Add(time.Minute))
		for part := range strings.SplitSeq(string(body), " ") {
			_, _ = io.WriteString(w, part)
		}
		_ = r.Context().Err()
	})})
	mine, theirs := net.Pipe()
	sc := &counted{Conn: theirs}
	l.conns <- sc
	c := &client{t: t, Conn: mine}
	answer := make([]byte, 1000)
	const n = 100
	for range n {
		c.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\na b c")
		if k, err := c.Read(answer); err != nil || !strings.HasSuffix(string(answer[:k]), "\r\n\r\nabc") {
			t.Fatalf("%q, %v", answer[:k], err)
		}
	}
	c.Close()
	if err := r.s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if sc.reads > n+1 || sc.writes != n || sc.deadlines > 10 {
		t.Errorf("%d requests: %d reads, %d writes, %d deadlines", n, sc.reads, sc.writes, sc.deadlines)
	}
}
