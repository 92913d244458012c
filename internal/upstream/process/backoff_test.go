package process

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// 100 initializes in 10 s to a shared command that exits at once.
func TestCrashLoopIsBounded(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error {
			p.react = func(p *fakeProcess, _ string) { p.exits(child.ExitInfo{Code: 1}) }
			return nil
		})
		for range 100 {
			begin := time.Now()
			c := w.open()
			synctest.Wait()
			if c.err != nil {
				c.init.End(c.err)
			} else {
				c.conn.End(upstream.ErrClosed)
			}
			demand(t, c.init, "start_failed: server process exited (code 1)")
			if d := time.Since(begin); d > 0 {
				t.Errorf("it took %v to be told", d)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.spawned(); n > 10 {
			t.Errorf("%d processes were started", n)
		}
	})
}

// A client whose initialize the server does not survive harms only itself: with
// a process for each session, no other client is refused for it, nor told what
// that process said.
func TestFailedStartsOfOneClientRefuseNoOther(t *testing.T) {
	inBubble(t, false, func(t *testing.T, w *world) {
		for range 20 {
			w.starts(func(p *fakeProcess) error {
				p.react = func(p *fakeProcess, _ string) { p.exits(child.ExitInfo{Code: 1}) }
				return nil
			})
			bad := w.open()
			synctest.Wait()
			demand(t, bad.init, "start_failed: server process exited (code 1)")
			w.starts(func(*fakeProcess) error { return nil })
			if good := w.open(); good.err != nil {
				t.Fatalf("another client was refused: %v", good.err)
			}
		}
	})
}

// The pause doubles from half a second to a minute, is told, and ends with the
// first start that succeeds.
func TestBackoff(t *testing.T) {
	b := breaker{}
	now := time.Now()
	cause := upstream.Errorf(mcp.CodeInternal, "start_failed", "why")
	for i, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second,
		8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute} {
		if err := b.admit(now); err != nil {
			t.Fatal(i, err)
		}
		b.failed(now, cause)
		if err := b.admit(now.Add(want - 1)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("why (failed %d times", i+1)) {
			t.Errorf("after %d failures: %v", i+1, err)
		}
		now = now.Add(want)
	}
	first, second := b.admit(now), b.admit(now)
	if first != nil || second == nil {
		t.Errorf("after a pause two starts are tried: %v, %v", first, second)
	}
	b.reset()
	first, second = b.admit(now), b.admit(now)
	if first != nil || second != nil {
		t.Errorf("after a good start there is a pause: %v, %v", first, second)
	}
}

// A shared process that cannot be started is tried again while sessions live
// on, more and more seldom.
func TestReviveBacksOff(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error { p.react = echo; return nil })
		c := w.open()
		synctest.Wait()
		starts := 0
		w.starts(func(p *fakeProcess) error { starts++; return errNoSuchCommand })
		w.proc().exits(child.ExitInfo{Code: 1})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if starts < 10 || starts > 25 {
			t.Errorf("%d starts in 10 minutes", starts)
		}
		_, call := c.call("1", "m", "{}")
		demand(t, call, errNoSuchCommand.Error())
		w.starts(func(p *fakeProcess) error { p.react = echo; return nil })
		time.Sleep(time.Minute)
		synctest.Wait()
		_, call = c.call("2", "m", `{"y":1}`)
		synctest.Wait()
		demand(t, call, `{"jsonrpc":"2.0","id":2,"result":{"y":1}}`)
		c.conn.End(upstream.ErrClosed)
	})
}

// Nobody needs a shared process that died when no session is there.
func TestNoReviveWithoutSessions(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error { p.react = echo; return nil })
		w.open().conn.End(upstream.ErrClosed)
		synctest.Wait()
		w.proc().exits(child.ExitInfo{Code: 1})
		time.Sleep(time.Hour)
		if w.spawned() != 1 {
			t.Errorf("%d processes were started", w.spawned())
		}
	})
}

// Server.Close while a process is being started: it is stopped as soon as it
// is there, and nobody takes the session for open.
func TestCloseWhileStarting(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(*fakeProcess) error { time.Sleep(time.Second); return nil })
		done := make(chan *client)
		go func() { done <- w.open() }()
		synctest.Wait()
		w.Close()
		c := <-done
		if c.err != nil {
			c.init.End(c.err)
			demand(t, c.events, "open")
		} else {
			demand(t, c.events, "shutdown")
		}
		demand(t, c.init, "shutdown")
		synctest.Wait()
		if !w.proc().stopped() {
			t.Error("the process was not stopped")
		}
		if c := w.open(); !errors.Is(c.err, upstream.ErrShutdown) {
			t.Errorf("opened with %v", c.err)
		}
	})
}

// Short lives in a row make the pause longer; one long life makes it short again.
func TestPauseAfterALongLifeIsShort(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		w.ready(echo)
		for _, pause := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second} {
			n := w.spawned()
			w.proc().exits(child.ExitInfo{Code: 1})
			time.Sleep(pause - time.Millisecond)
			if w.spawned() != n {
				t.Errorf("started again before %v", pause)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if w.spawned() != n+1 {
				t.Errorf("not started again after %v", pause)
			}
		}
		time.Sleep(quickLife + time.Second)
		n := w.spawned()
		w.proc().exits(child.ExitInfo{Code: 1})
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if w.spawned() != n+1 {
			t.Error("not started again after half a second")
		}
	})
}

// News of an earlier life that comes late does nothing to the next.
func TestLateNewsOfAnEarlierLife(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		c := w.ready(echo)
		h := c.hub()
		h.mu.Lock()
		old := h.link
		h.mu.Unlock()
		w.proc().exits(child.ExitInfo{Code: 1})
		w.starts(func(p *fakeProcess) error { p.react = handshake; return nil })
		time.Sleep(time.Second)
		synctest.Wait()
		_, call := c.call("1", "m", "{}")
		h.initialized(old, &wire.Message{}, upstream.CallTimeout)
		demand(t, call, "open")
		if w.proc().stopped() {
			t.Error("the new process was stopped")
		}
	})
}
