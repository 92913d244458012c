package process

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// both runs a test for a shared process and for one of a session, with fake
// time. Whatever it leaves open ends with the server.
func both(t *testing.T, f func(t *testing.T, w *world)) {
	for _, shared := range []bool{false, true} {
		t.Run(map[bool]string{false: "session", true: "shared"}[shared], func(t *testing.T) {
			inBubble(t, shared, f)
		})
	}
}

func inBubble(t *testing.T, shared bool, f func(t *testing.T, w *world), adjust ...func(*Config)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, shared, adjust...)
		defer func() {
			w.Close()
			time.Sleep(time.Minute)
			w.checkEmpty()
		}()
		f(t, w)
	})
}

func TestExitBeforeInitializeIsAnswered(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			p.tail = "boom"
			// After the early call, which is made without a pause.
			p.react = func(p *fakeProcess, _ string) {
				p.do(func() {
					time.Sleep(time.Second)
					p.exits(child.ExitInfo{Code: 3})
				})
			}
			return nil
		})
		c := w.open()
		_, early := c.call("1", "m", "{}")
		time.Sleep(2 * time.Second)
		want := "start_failed: server process exited (code 3) before it answered initialize; its last output: boom"
		demand(t, c.init, want)
		demand(t, early, want)
	})
}

// A process that is gone before the first write, while Exit takes its time,
// fails with the cause, not with the failed write.
func TestExitBeforeInitializeIsWritten(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			p.dies()
			p.do(func() {
				time.Sleep(250 * time.Millisecond)
				p.exits(child.ExitInfo{Code: 127})
			})
			return nil
		})
		c := w.open()
		synctest.Wait()
		demand(t, c.init, "open")
		time.Sleep(time.Second)
		demand(t, c.init, "start_failed: server process exited (code 127)")
	})
}

// A process may have said its last word before the start of it has returned.
func TestExitBeforeStartReturns(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			p.tail = "boom"
			go p.run()
			p.exits(child.ExitInfo{Code: 3})
			time.Sleep(time.Second)
			return errStarted
		})
		c := w.open()
		synctest.Wait()
		demand(t, c.init, "start_failed: server process exited (code 3) before it answered initialize; its last output: boom")
	})
}

// And what it says before that is for the session that it is started for.
func TestLineBeforeStartReturns(t *testing.T) {
	inBubble(t, false, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			go p.run()
			p.says(`{"jsonrpc":"2.0","method":"notifications/message"}`)
			time.Sleep(time.Second)
			return errStarted
		})
		w.open()
		synctest.Wait()
		if got := w.dropped(); len(got) > 0 {
			t.Errorf("dropped %v", got)
		}
	})
}

func TestStartFailure(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(*fakeProcess) error { return errNoSuchCommand })
		c := w.open()
		if c.err != nil { // returned, so no sink may have heard of it
			c.init.End(c.err)
			demand(t, c.events, "open")
		}
		demand(t, c.init, "start_failed: "+errNoSuchCommand.Error())
		w.starts(func(*fakeProcess) error { return fmt.Errorf("%w: 128 are running", child.ErrTooMany) })
		time.Sleep(time.Second)
		c = w.open()
		if c.err != nil {
			c.init.End(c.err)
		}
		demand(t, c.init, "process_limit")
	})
}

func TestStartTimeoutNamesWhatTheServerDoes(t *testing.T) {
	for _, tt := range []struct{ name, output, partial, want string }{
		{"silence", "", "", "did not answer initialize within 2m0s (--start-timeout); its last output: stderr"},
		{"LSP framing", "Content-Length: 61\r", `{"jsonrpc":"2.0","id":0,"result":{}}`, "framing of LSP"},
		{"LSP framing without lines", "", "content-length: 61", "it wrote without a line end: content-length: 61"},
		{"pretty-printed", "{\n  \"jsonrpc\": \"2.0\",\n  \"id\": 1,\n  \"result\": {}\n}", "", "JSON over several lines"},
		{"prompt", "", "Ok to proceed? (y) ", "it wrote without a line end: Ok to proceed? (y)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, w *world) {
				w.starts(func(p *fakeProcess) error {
					p.tail, p.partial, p.stopTime = "stderr", tt.partial, 5*time.Second
					for line := range strings.SplitSeq(tt.output, "\n") {
						if line != "" {
							p.says(line)
						}
					}
					return nil
				})
				c := w.open()
				_, early := c.call("1", "m", "{}")
				time.Sleep(2*time.Minute - time.Second)
				demand(t, c.init, "open")
				time.Sleep(time.Second)
				synctest.Wait()
				demand(t, c.init, tt.want)
				demand(t, early, tt.want)
				if !w.proc().stopped() {
					t.Error("the process was not stopped")
				}
				if got := w.proc().got(); len(got) != 1 {
					t.Errorf("initialize must not be cancelled, the process got %q", got)
				}
			})
		})
	}
}

// Whoever comes while a shared process that never came up is being stopped is
// told why at once; then a new one is started.
func TestOpenWhileAProcessIsBeingStopped(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error { p.stopTime = 5 * time.Second; return nil })
		first := w.open()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		demand(t, first.init, "start_failed")
		first.conn.End(upstream.ErrClosed)
		if late := w.open(); late.err == nil || !strings.Contains(late.err.Error(), "did not answer initialize") {
			t.Errorf("opened with %v", late.err)
		}
		w.starts(func(p *fakeProcess) error { p.react = echo; return nil })
		time.Sleep(5 * time.Second)
		synctest.Wait()
		next := w.open()
		synctest.Wait()
		demand(t, next.init, `"id":0,"result":`+initResult)
		if n := w.spawned(); n != 2 {
			t.Errorf("%d processes were started", n)
		}
	})
}

// The server refuses initialize: its words reach the client.
func TestInitializeRefused(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			p.react = func(p *fakeProcess, line string) {
				p.handler.Line([]byte(`{"jsonrpc":"2.0","id":` + idOf(line) + `,"error":{"code":-32602,"message":"unsupported"}}`))
			}
			return nil
		})
		c := w.open()
		synctest.Wait()
		demand(t, c.init, "unsupported")
	})
}

// A slow start is not ended because a client gave up: the next one gets it.
func TestSharedStartIsSingleFlight(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		initializes := 0
		w.starts(func(p *fakeProcess) error {
			p.react = func(p *fakeProcess, line string) {
				if methodOf(line) == mcp.Initialize {
					initializes++
					time.Sleep(90 * time.Second)
				}
				echo(p, line)
			}
			return nil
		})
		var clients []*client
		var mu sync.Mutex
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				c := w.open()
				mu.Lock()
				defer mu.Unlock()
				clients = append(clients, c)
			})
		}
		wg.Wait()
		time.Sleep(30 * time.Second)
		for _, c := range clients {
			c.conn.End(upstream.ErrClosed)
			demand(t, c.init, "session_ended")
		}
		time.Sleep(30 * time.Second)
		second := w.open()
		_, call := second.call("1", "m", `{"x":1}`)
		time.Sleep(29 * time.Second)
		demand(t, second.init, "open")
		time.Sleep(time.Second)
		synctest.Wait()
		demand(t, second.init, initResult)
		demand(t, call, `{"jsonrpc":"2.0","id":1,"result":{"x":1}}`)
		if w.spawned() != 1 || initializes != 1 {
			t.Errorf("%d processes, %d handshakes", w.spawned(), initializes)
		}
	})
}
