package process

import (
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// checkLocked compares the tables of a hub with one another.
func (h *hub) checkLocked(t testing.TB) {
	t.Helper()
	unsent := 0
	var first time.Time
	for part, c := range h.conns {
		if part != c.part || c.ended || c.hub != h {
			t.Errorf("conn %s is entered as %s, ended: %v", c.part, part, c.ended)
		}
		c.checkLocked(t)
		for _, k := range c.calls {
			if k.line != nil {
				unsent += len(k.line) + unsentCost
			}
			if at, _ := k.expiresLocked(); first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	if unsent != h.unsent {
		t.Errorf("unsent is %d, the calls say %d", h.unsent, unsent)
	}
	if !first.IsZero() && !h.closed && (h.timerAt.IsZero() || h.timerAt.After(first)) {
		t.Errorf("sweep comes at %v, a call expires at %v", h.timerAt, first)
	}
	if h.shared && !h.direct && h.link == nil && unsent+len(h.own.calls) > 0 { // a listen may wait for the next process
		t.Errorf("no process, but %d bytes wait for it and %d own calls are open", unsent, len(h.own.calls))
	}
	for uri, s := range h.subs {
		h.checkSubLocked(t, uri, s)
	}
}

func (c *conn) checkLocked(t testing.TB) {
	t.Helper()
	h := c.hub
	for n, k := range c.calls {
		if n != k.n || k.conn != c {
			t.Errorf("call %d is entered as %d", k.n, n)
		}
		if k.line != nil && c.ready && (!h.shared || h.upLocked()) {
			t.Errorf("call %s waits for nothing", k.id)
		}
		if k.sub != nil {
			if _, in := k.sub.waiters[k]; !in || h.subs[k.sub.uri] != k.sub {
				t.Errorf("call %s does not stand in the subscription that it waits for", k.id)
			}
		}
	}
	for n, k := range c.tasks {
		if n != k.n || c.calls[n] != nil || k.taskID == "" || k.token == nil {
			t.Errorf("task %q of call %d: entered as %d", k.taskID, k.n, n)
		}
	}
	owed := 0
	for _, a := range c.asked {
		if a.seen {
			owed++
		}
	}
	if owed != c.owed {
		t.Errorf("the client owes %d answers, asked says %d", c.owed, owed)
	}
	for s := range c.subs {
		if _, in := s.members[c]; !in || h.subs[s.uri] != s {
			t.Errorf("conn is subscribed to %s, which does not know it", s.uri)
		}
	}
}

func (h *hub) checkSubLocked(t testing.TB, uri string, s *subscription) {
	t.Helper()
	if uri != s.uri {
		t.Errorf("subscription to %s is entered as %s", s.uri, uri)
	}
	for c := range s.members {
		if _, in := c.subs[s]; !in || h.conns[c.part] != c {
			t.Errorf("member of %s is gone or knows nothing of it", uri)
		}
	}
	for k := range s.waiters {
		if k.sub != s || k.conn.calls[k.n] != k || k.method != mcp.ResourcesSubscribe {
			t.Errorf("call %s waits for %s and is not open", k.id, uri)
		}
	}
	wanted := len(s.members)+len(s.waiters) > 0
	switch {
	case s.ask != nil && s.on: // the question itself may be out of the table: its answer is about to be taken
		t.Errorf("%s: a question about what is on", uri)
	case s.ask == nil && s.on != wanted && h.upLocked():
		t.Errorf("%s: wanted is %v, on is %v, and nobody asks", uri, wanted, s.on)
	case s.ask == nil && !wanted:
		t.Errorf("%s: nobody wants it", uri)
	}
}

// checkEmpty demands that nothing of any session is left behind.
func (w *world) checkEmpty() {
	w.t.Helper()
	if w.Server.shared == nil {
		w.Server.mu.Lock()
		defer w.Server.mu.Unlock()
		if n := len(w.hubs); n > 0 {
			w.t.Errorf("%d hubs are left", n)
		}
		return
	}
	h := w.Server.shared
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checkLocked(w.t)
	own := 0
	if !h.closed {
		own = 1
	}
	if len(h.conns) != own || len(h.own.calls) > 0 || len(h.subs) > 0 || h.unsent > 0 {
		w.t.Errorf("left: %d conns, %d own calls, %d subscriptions, %d bytes", len(h.conns), len(h.own.calls), len(h.subs), h.unsent)
	}
}
