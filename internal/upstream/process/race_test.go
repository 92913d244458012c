package process

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Everything that can end a call happens at once; each call ends once. The
// sinks check that, and the tables.
func TestAllEndsRaceWithAnswers(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error { p.react = echo; return nil })
		for range 50 {
			c := w.open()
			if c.err != nil { // of a process that another round's end left dying
				t.Fatal(c.err)
			}
			var sinks []*checkingSink
			var mu sync.Mutex
			var wg sync.WaitGroup
			for g := range 4 {
				wg.Go(func() {
					for i := range 10 {
						call, sink := c.call(fmt.Sprint(i), "m", `{"_meta":{"progressToken":1}}`)
						mu.Lock()
						sinks = append(sinks, sink)
						mu.Unlock()
						switch {
						case call == nil:
						case g == 1:
							wg.Go(func() { call.Cancel(upstream.ErrCancelled) })
						case g == 2:
							_ = c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
						}
					}
				})
			}
			p := w.proc()
			wg.Go(func() { p.exits(child.ExitInfo{Code: 1}) })
			wg.Go(func() { c.conn.End(upstream.ErrClosed) })
			wg.Go(func() { c.conn.End(upstream.ErrShutdown) })
			wg.Wait()
			time.Sleep(time.Minute)
			synctest.Wait()
			for _, s := range append(sinks, c.init, c.events) {
				if ends, _, _ := s.state(); ends != 1 {
					t.Errorf("%s: %d ends", s.name, ends)
				}
			}
		}
	})
}

// Sessions come, subscribe, call and go while the shared process dies again
// and again.
func TestSharedProcessDiesUnderLoad(t *testing.T) {
	inBubble(t, true, func(t *testing.T, w *world) {
		w.starts(func(p *fakeProcess) error { p.react = echo; return nil })
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(1, uint64(g)))
				for range 30 {
					c := w.open()
					if c.err != nil {
						t.Error(c.err)
						return
					}
					var sinks []*checkingSink
					for i := range 20 {
						method := []string{"m", "resources/subscribe", "resources/unsubscribe", "resources/subscribe"}[rnd.IntN(4)]
						call, sink := c.call(fmt.Sprint(i), method, fmt.Sprintf(`{"uri":"r://%d"}`, rnd.IntN(3)))
						sinks = append(sinks, sink)
						if call != nil && rnd.IntN(4) == 0 {
							call.Cancel(upstream.ErrCancelled)
						}
						time.Sleep(time.Duration(rnd.IntN(20)) * time.Millisecond)
					}
					c.conn.End(upstream.ErrClosed)
					for _, s := range append(sinks, c.init, c.events) {
						if ends, _, _ := s.state(); ends != 1 {
							t.Errorf("%s: %d ends", s.name, ends)
						}
					}
				}
			})
		}
		stop := make(chan struct{})
		killed := make(chan int)
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					killed <- n
					return
				case <-time.After(time.Second):
					w.proc().exits(child.ExitInfo{Code: 1})
					n++
				}
			}
		}()
		wg.Wait()
		close(stop)
		if n := <-killed; n < 3 || w.spawned() < n/2 {
			t.Errorf("%d kills, %d processes", n, w.spawned())
		}
		synctest.Wait()
	})
}

func TestEndAndCloseAreIdempotent(t *testing.T) {
	both(t, func(t *testing.T, w *world) {
		c := w.ready(handshake)
		call, sink := c.call("1", "m", "{}")
		c.conn.End(upstream.ErrClosed)
		c.conn.End(upstream.ErrShutdown)
		call.Cancel(upstream.ErrTimeout)
		w.Close()
		w.Close()
		demand(t, sink, "session_ended")
		demand(t, c.events, "session_ended")
		if _, err := c.conn.Start(request(`{"jsonrpc":"2.0","id":1,"method":"ping"}`), sink); !errors.Is(err, upstream.ErrClosed) {
			t.Errorf("started with %v", err)
		}
		if err := c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); !errors.Is(err, upstream.ErrClosed) {
			t.Errorf("sent with %v", err)
		}
	})
}
