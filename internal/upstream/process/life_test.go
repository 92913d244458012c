package process

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// ready opens a session on a process that behaves as react says.
func (w *world) ready(react func(*fakeProcess, string)) *client {
	w.starts(func(p *fakeProcess) error { p.react = react; return nil })
	c := w.open()
	synctest.Wait()
	if err := c.send(initializedLine); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
	w.proc().got()
	return c
}

func TestExitInMidCall(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		w.proc().tail = "secret of somebody"
		_, one := c.call("1", "m", "{}")
		_, two := c.call("1", "m", "{}")
		w.proc().exits(child.ExitInfo{Code: 137, Signal: "SIGKILL"})
		synctest.Wait()
		want := "process_exited: server process killed by signal 9 (SIGKILL); its last output: secret of somebody"
		if w.cfg.Shared { // somebody else's, perhaps
			want = "process_exited: server process killed by signal 9 (SIGKILL); the log has its last output under reference "
		}
		demand(t, one, want)
		demand(t, two, want)
		if !w.cfg.Shared {
			demand(t, c.events, want)
			return
		}
		// The session lives on, and its next call starts a process at once.
		demand(t, c.events, "open")
		w.starts(func(p *fakeProcess) error { p.react = echo; return nil })
		_, next := c.call("2", "m", `{"x":1}`)
		synctest.Wait()
		demand(t, next, `{"x":1}`)
	})
}

// Between the death of a process and the news of it, a call is accepted and
// ends with the news.
func TestCallToADyingProcess(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		w.proc().dies()
		_, call := c.call("1", "m", "{}")
		demand(t, call, "open")
		w.proc().exits(child.ExitInfo{StdoutClosed: true})
		synctest.Wait()
		demand(t, call, "process_exited: server process closed its output")
	})
}

func TestFullQueue(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(echo)
		p := w.proc()
		p.stall()
		p.bound = 1
		_, one := c.call("1", "m", "{}")
		_, two := c.call("2", "m", "{}")
		demand(t, two, "busy")
		if err := c.send(`{"jsonrpc":"2.0","method":"notifications/x"}`); err != upstream.ErrBusy {
			t.Errorf("sent with %v", err)
		}
		p.resume()
		synctest.Wait()
		demand(t, one, `"id":1,`)
	})
}

// What waits for a start, or for the handshake, is bounded in bytes; what is
// cancelled meanwhile weighs nothing.
func TestHeldCallsAreBounded(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.cfg.MaxMessage = 1 << 10
		c := w.open() // the process answers nothing
		h := c.hub()
		weigh := func(n int) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.unsent += n
		}
		weigh(maxUnsent) // as if others waited
		params := `{"x":"` + strings.Repeat("x", 500) + `"}`
		for range 100 {
			call, _ := c.call("1", "m", params)
			if call == nil {
				t.Fatal("what was cancelled weighs something")
			}
			weigh(-maxUnsent)
			call.Cancel(upstream.ErrCancelled)
			weigh(maxUnsent)
		}
		_, held := c.call("1", "m", params)
		_, err := c.conn.Start(request(`{"jsonrpc":"2.0","id":2,"method":"m","params":`+params+`}`), held)
		weigh(-maxUnsent)
		demand(t, held, "open")
		if err != upstream.ErrBusy {
			t.Errorf("one more was started with %v", err)
		}
	})
}

func TestCallTimeout(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		other := c
		if w.cfg.Shared {
			other = w.open()
		}
		_, call := c.call("1", "m", `{"_meta":{"progressToken":1}}`)
		progress := func() {
			id := idOf(w.proc().got()[0])
			token := strings.Split(id, "|")[0] + `"`
			for range 3 {
				time.Sleep(9 * time.Minute)
				w.proc().says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1}}`)
				synctest.Wait()
			}
			w.proc().got()
		}
		progress()
		time.Sleep(9 * time.Minute)
		_, neighbour := other.call("2", "m", "{}")
		w.proc().got()
		demand(t, call, "open")
		time.Sleep(time.Minute)
		synctest.Wait()
		demand(t, call, "timeout: the server gave neither an answer nor progress in time")
		demand(t, neighbour, "open")
		got := w.proc().got()
		if len(got) != 1 || !strings.Contains(got[0], `"method":"notifications/cancelled"`) || !strings.Contains(got[0], `|n:1"`) {
			t.Errorf("the process was told %q", got)
		}
		time.Sleep(9 * time.Minute)
		synctest.Wait()
		demand(t, neighbour, "timeout")
	})
}

// Progress keeps a call alive up to the hard limit.
func TestCallLimit(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, call := c.call("1", "m", `{"_meta":{"progressToken":1}}`)
		token := strings.Split(idOf(w.proc().got()[0]), "|")[0] + `"`
		for range 23 {
			time.Sleep(5 * time.Minute)
			w.proc().says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + token + `,"progress":1}}`)
		}
		time.Sleep(5*time.Minute - 1)
		demand(t, call, "open")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		demand(t, call, "timeout: the call ran longer than one call may")
	})
}

func TestCallsWithoutCallTimeout(t *testing.T) {
	inBubble(t, false, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, tasks := c.call("1", "tasks/result", `{"taskId":"t"}`)
		_, listen := c.call("2", "subscriptions/listen", `{}`)
		time.Sleep(2*time.Hour - 1)
		demand(t, tasks, "open")
		demand(t, listen, "open")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		demand(t, tasks, "--call-limit")
		demand(t, listen, "--call-limit")
	})
}

// The clock of a call stands still while the client owes the server an answer:
// afterwards it has what it had, and one that began meanwhile has all.
func TestClockStandsStillWhileTheClientOwesAnAnswer(t *testing.T) {
	inBubble(t, false, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, call := c.call("1", "m", "{}")
		time.Sleep(6 * time.Minute)
		w.proc().says(`{"jsonrpc":"2.0","id":"q1","method":"elicitation/create"}`)
		w.proc().says(`{"jsonrpc":"2.0","id":"q2","method":"elicitation/create"}`)
		time.Sleep(20 * time.Minute)
		_, later := c.call("2", "m", "{}")
		_ = c.send(`{"jsonrpc":"2.0","id":"q2","result":{}}`)
		time.Sleep(20 * time.Minute)
		demand(t, call, "open")
		_ = c.send(`{"jsonrpc":"2.0","id":"q1","result":{}}`)
		time.Sleep(4*time.Minute - 1)
		demand(t, call, "open")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		demand(t, call, "--call-timeout")
		time.Sleep(6*time.Minute - 1)
		demand(t, later, "open")
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		demand(t, later, "--call-timeout")
	})
}

// The server takes its question back: nothing is owed any more.
func TestClockGoesOnWhenTheServerTakesItsQuestionBack(t *testing.T) {
	inBubble(t, false, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		_, call := c.call("1", "m", "{}")
		w.proc().says(`{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}`)
		time.Sleep(30 * time.Minute)
		w.proc().says(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		time.Sleep(10*time.Minute - 1)
		demand(t, call, "open")
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		demand(t, call, "--call-timeout")
	})
}
