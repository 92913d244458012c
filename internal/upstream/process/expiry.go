package process

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

func (k *call) setDeadlines(cfg *Config) {
	now := time.Now()
	if k.again != nil {
		return // a listen is open for as long as its client is there
	}
	if k.greets() {
		k.idleAt = now.Add(cfg.StartTimeout)
		k.limitAt = now.Add(cfg.CallLimit)
		return
	}
	switch k.method {
	case mcp.Initialize:
		k.idleAt = now.Add(cfg.StartTimeout)
	case mcp.TasksResult, mcp.SubscriptionsListen: // silent by nature, until something happens
	default:
		k.idleAt = now.Add(cfg.CallTimeout)
	}
	k.limitAt = now.Add(cfg.CallLimit)
}

// expiresLocked tells when the call runs out if nothing happens; zero: never. While the
// client owes the server an answer, only the hard limit counts.
func (k *call) expiresLocked() (time.Time, error) {
	if k.method != mcp.Initialize && k.conn.owed > 0 || k.idleAt.IsZero() || k.limitAt.Before(k.idleAt) {
		return k.limitAt, upstream.CallLimit
	}
	return k.idleAt, upstream.CallTimeout
}

// resumeLocked starts the clocks of the open calls again after the client owed
// the server an answer. A call that began, or had progress, meanwhile has its
// whole time left.
func (c *conn) resumeLocked() {
	now, full := time.Now(), c.hub.srv.cfg.CallTimeout
	for _, k := range c.calls {
		if !k.idleAt.IsZero() && k.method != mcp.Initialize {
			k.idleAt = now.Add(min(k.idleAt.Sub(c.owedSince), full))
			c.hub.armLocked(k)
		}
	}
}

// armLocked makes sweep run at the latest when k expires.
func (h *hub) armLocked(k *call) {
	if at, _ := k.expiresLocked(); !at.IsZero() {
		h.armAtLocked(at)
	}
}

func (h *hub) armAtLocked(at time.Time) {
	if h.closed || !h.timerAt.IsZero() && !at.Before(h.timerAt) {
		return
	}
	h.timerAt = at
	if d := time.Until(at); h.timer == nil {
		h.timer = time.AfterFunc(d, h.sweep)
	} else {
		h.timer.Reset(d)
	}
}

// sweep ends the calls whose time is over and arms the timer for the next.
// One timer serves all calls of a process: it is armed for the earliest, and
// calls that were answered in time cost it nothing.
func (h *hub) sweep() {
	var ended []over
	h.mu.Lock()
	h.timerAt = time.Time{}
	now := time.Now()
	var next time.Time
	for _, c := range h.conns {
		for _, k := range c.calls {
			at, err := k.expiresLocked()
			if at.IsZero() {
				continue
			}
			if at.After(now) {
				if next.IsZero() || at.Before(next) {
					next = at
				}
				continue
			}
			h.takeLocked(k)
			h.retractLocked(k, err)
			if k.method == mcp.Initialize || k.greets() {
				var others []over
				others, err = h.neverUpLocked()
				ended = append(ended, others...)
			}
			ended = append(ended, over{k, err})
		}
	}
	if !next.IsZero() {
		h.armAtLocked(next)
	}
	h.mu.Unlock()
	failAll(ended)
}

// neverUpLocked stops a process that did not answer initialize in time. The
// time may be that of Signalbox's own initialize or of a client that waits for
// it; all who wait learn the same.
func (h *hub) neverUpLocked() ([]over, error) {
	l := h.link
	if l == nil || l.up || l.doomed != nil {
		return nil, upstream.CallTimeout
	}
	// No failed start for the backoff: it would not keep anybody from waiting.
	err := h.startError(l, "did not answer "+h.greeting().String()+" within "+h.srv.cfg.StartTimeout.String()+" (--start-timeout)")
	err.Code = mcp.CodeServer
	return h.giveUpLocked(l, err), err
}
