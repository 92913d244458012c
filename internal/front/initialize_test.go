package front

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestInitializeSlowStart(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.silent = true
		s := r.stream("POST", "/mcp", initBody("2025-11-25"))
		id := s.res.Header.Get("Mcp-Session-Id")
		if id == "" {
			t.Fatal("no session id")
		}
		if e := s.next(); len(e.Data) != 0 || !e.HasID {
			t.Errorf("first event: %+v", e)
		}
		time.Sleep(10 * time.Second)
		p := r.procs.last()
		p.answer(p.next(), initResult("2025-11-25"))
		if rest := s.rest(); len(rest) != 1 || !strings.Contains(rest[0], `"id":0,"result"`) {
			t.Errorf("got %q", rest)
		}
		if got := r.do("POST", "/mcp", initialized, "Mcp-Session-Id: "+id); got.status != 202 {
			t.Errorf("the session: %d %s", got.status, got.body)
		}
	})
}

// Progress of initialize opens the stream before the answer: the id goes out
// with it, since no header can follow.
func TestInitializeWithProgress(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.silent = true
		go func() {
			time.Sleep(time.Millisecond)
			p := r.procs.last()
			msg := p.next()
			p.progress(msg, 1)
			time.Sleep(10 * time.Millisecond)
			p.answer(msg, initResult(rev))
		}()
		s := r.stream("POST", "/mcp", strings.Replace(initBody(rev), `"params":{`, `"params":{"_meta":{"progressToken":1},`, 1))
		id := s.res.Header.Get("Mcp-Session-Id")
		if rest := s.rest(); len(rest) != 2 {
			t.Errorf("got %q", rest)
		}
		if got := r.do("POST", "/mcp", initialized, "Mcp-Session-Id: "+id); got.status != 202 {
			t.Errorf("the session %q: %d %s", id, got.status, got.body)
		}
	})
}

func TestInitializeSlowStartFails(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.silent = true
		s := r.stream("POST", "/mcp", initBody(rev))
		session := "Mcp-Session-Id: " + s.res.Header.Get("Mcp-Session-Id")
		time.Sleep(time.Second)
		r.procs.last().die(3)
		if rest := s.rest(); len(rest) != 1 || !strings.Contains(rest[0], `"id":0,"error"`) || !strings.Contains(rest[0], "exited (code 3)") || !strings.Contains(rest[0], "stderr says why") {
			t.Errorf("got %q", rest)
		}
		r.settle()
		if got := r.do("POST", "/mcp", ping, session); got.status != 404 {
			t.Errorf("its session: %d", got.status)
		}
		if r.mem.Len() != 0 {
			t.Error("its record is there")
		}
	})
}

func TestClientLeavesDuringInitialize(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		r.procs.silent = true
		req := r.request("POST", "/mcp", initBody(rev), "Accept: application/json")
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if res, err := r.client.Do(req.WithContext(ctx)); err == nil {
				res.Body.Close()
				t.Error("answered")
			}
		}()
		synctest.Wait()
		p := r.procs.last()
		msg := p.next()
		cancel()
		<-done
		time.Sleep(time.Second) // connections are looked at now and then
		synctest.Wait()
		if p.isStopped() {
			t.Error("a start was broken off")
		}
		p.answer(msg, initResult(rev))
		synctest.Wait()
		if !p.isStopped() || r.metric("signalbox_sessions", "") != 0 || r.mem.Len() != 0 {
			t.Error("a session without a client lives on")
		}
	})
}
