package remote

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// flaky is a server on a real socket that closes connections between calls, or
// when the next request has come.
type flaky struct {
	l  net.Listener
	wg sync.WaitGroup

	mu   sync.Mutex
	n    int
	runs map[string]int // by id
	over bool
	open map[net.Conn]struct{}
}

func newFlaky(t *testing.T) *flaky {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	f := &flaky{l: l, runs: make(map[string]int), open: make(map[net.Conn]struct{})}
	f.wg.Go(f.accept)
	t.Cleanup(func() {
		_ = l.Close()
		f.mu.Lock()
		f.over = true
		for c := range f.open {
			_ = c.Close()
		}
		f.mu.Unlock()
		f.wg.Wait()
	})
	return f
}

func (f *flaky) accept() {
	for {
		c, err := f.l.Accept()
		if err != nil {
			return
		}
		f.mu.Lock()
		if f.over {
			_ = c.Close()
		}
		f.open[c] = struct{}{}
		f.mu.Unlock()
		f.wg.Go(func() { f.serve(c.(*net.TCPConn)) })
	}
}

// serve answers, and then is rude in one of several ways.
func (f *flaky) serve(c *net.TCPConn) {
	defer func() {
		f.mu.Lock()
		delete(f.open, c)
		f.mu.Unlock()
		_ = c.Close()
	}()
	in := bufio.NewReader(c)
	for served := 0; ; served++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &msg)
		f.mu.Lock()
		f.n++
		n := f.n
		f.runs[string(msg.ID)]++
		f.mu.Unlock()
		if served > 0 && n%7 == 0 {
			return // has run it, and says nothing
		}
		answer := result(string(msg.ID), `{"protocolVersion":"2025-06-18"}`)
		if _, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer); err != nil {
			return
		}
		switch n % 3 {
		case 0:
			return
		case 1:
			if n%2 == 0 {
				_ = c.SetLinger(0)
				return
			}
		}
	}
}

// TestStaleConnections: an idle connection that the server closes at the worst
// moment makes no list fail and runs no tool twice.
func TestStaleConnections(t *testing.T) {
	f := newFlaky(t)
	cfg := newWorld(t).config()
	cfg.dial, cfg.resolve = nil, nil
	var err error
	cfg.URL, err = url.Parse("http://" + f.l.Addr().String() + "/mcp")
	must(t, err)
	srv := New(cfg)
	defer srv.Close()
	c := open(t, srv)
	unknown := 0
	for i := range 1000 {
		id := fmt.Sprint(1000 + i)
		s, _ := c.start(`{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{}}`)
		switch err := realEnd(t, s); {
		case err == nil:
		case upstream.RPCError(err).Reason == "outcome_unknown":
			unknown++
		default:
			t.Fatalf("call %s: %v", id, err)
		}
		l, _ := c.start(`{"jsonrpc":"2.0","id":"l` + id + `","method":"tools/list"}`)
		if err := realEnd(t, l); err != nil {
			t.Fatalf("list %s: %v", id, err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range 1000 {
		if n := f.runs[fmt.Sprint(1000+i)]; n > 1 {
			t.Errorf("call %d ran %d times", i, n)
		}
	}
	if unknown == 0 || unknown > 300 {
		t.Errorf("%d calls of unknown outcome", unknown)
	}
}

// realEnd waits for a sink's end in real time.
func realEnd(t *testing.T, s *sink) error {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		t.Fatal("no end")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// TestExecutedThenDropped: a tool that ran is not run again because its answer
// was lost.
func TestExecutedThenDropped(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server(reinitialize)
		defer srv.Close()
		c := open(t, srv)
		c.call(list) // the connection has been used
		s.handle("tools/call", cutOff)
		sink, _ := c.start(tool)
		sink.fails("outcome_unknown", "outcome unknown")
		if n := s.count("tools/call"); n != 1 {
			t.Errorf("the tool was called %d times", n)
		}
		must(t, c.send(logMs))
		once := true
		s.handle("tools/list", func(w http.ResponseWriter, r *http.Request) {
			if once {
				once = false
				cutOff(w, r)
			}
			reply(w, r, "{}")
		})
		if got := c.call(list); got != result("1", "{}") {
			t.Errorf("got %s", got)
		}
	})
}

// TestStaleAnswers: the client's answer to a server's question is sent again.
func TestStaleAnswers(t *testing.T) {
	for what, again := range map[string]bool{
		`{"jsonrpc":"2.0","id":"q1","result":{}}`:                     true,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`:      true,
		`{"jsonrpc":"2.0","method":"notifications/do_something_odd"}`: false,
	} {
		inWorld(t, func(t *testing.T, w *world, s *site) {
			srv := w.server()
			defer srv.Close()
			c := open(t, srv)
			synctest.Wait() // its connection is idle
			n := 0
			h := func(w http.ResponseWriter, r *http.Request) {
				if n++; n == 1 {
					cutOff(w, r)
				}
				w.WriteHeader(202)
			}
			for _, kind := range []string{"response", "notifications/initialized", "notifications/do_something_odd"} {
				s.handle(kind, h)
			}
			if err := c.send(what); (err == nil) != again {
				t.Errorf("%s: %v", what, err)
			}
			if (n == 2) != again {
				t.Errorf("%s: sent %d times", what, n)
			}
		})
	}
}

// TestLateOwner: an exchange that is broken off when its connection already
// serves another must not hurt that one. Calls and their cancels race here on
// few connections.
func TestLateOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		for range 300 {
			var wg sync.WaitGroup
			doomed, call := c.start(list)
			wg.Go(func() { call.Cancel(upstream.ErrCancelled) })
			wg.Go(func() { _ = doomed.end() })
			wg.Go(func() {
				if sink, _ := c.start(tool); sink.end() != nil {
					t.Errorf("a bystander failed: %v", sink.err)
				}
			})
			wg.Wait()
		}
	})
}
