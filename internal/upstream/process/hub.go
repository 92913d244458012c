package process

import (
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// hub is the routing table of one process slot.
type hub struct {
	// static
	srv    *Server
	shared bool
	log    *slog.Logger
	own    *conn // Signalbox's own calls on a shared process

	mu      sync.Mutex
	closed  bool
	link    *link            // the process that runs or starts; nil where none does
	conns   map[string]*conn // by the random part of their ROUTEs; own is among them
	timer   *time.Timer      // runs sweep at timerAt
	timerAt time.Time        // zero: not armed
	restart *time.Timer      // runs revive; nil: not armed

	// shared only, guarded by mu
	initResult []byte                   // what the process answered to initialize, for the next client
	openers    []*call                  // initialize calls that wait for it
	waiting    []*call                  // calls that wait for the process
	subs       map[string]*subscription // by URI
	quick      int                      // deaths in a row of a process that had lived only shortly
	startedAt  time.Time                // when it answered initialize; zero while it has not
}

func newHub(s *Server) *hub {
	h := &hub{srv: s, shared: s.cfg.Shared, log: s.cfg.Log, conns: make(map[string]*conn)}
	if h.shared {
		h.subs = make(map[string]*subscription)
		h.own = newConn(h, nil)
		h.own.ready = true
		h.conns[h.own.part] = h.own
	}
	return h
}

// sendLocked enters a call in the table and then queues its line; before the
// line is out, an answer can already find its entry.
func (h *hub) sendLocked(k *call) error {
	k.conn.calls[k.n] = k
	ticket, err := h.link.pipe.Write(k.line)
	if err != nil {
		delete(k.conn.calls, k.n)
		return pipeError(err)
	}
	h.srv.count.in.Add(float64(len(k.line) + 1))
	k.ticket, k.line = ticket, nil
	return nil
}

// sendAllLocked sends calls that waited, but for those that ended meanwhile,
// and returns the ones that could not be sent.
func (h *hub) sendAllLocked(calls []*call) (failed []over) {
	for _, k := range calls {
		if k.conn.calls[k.n] != k {
			continue
		}
		if err := h.sendLocked(k); err != nil {
			failed = append(failed, over{k, err})
		}
	}
	return failed
}

// writeLocked queues a line that expects no answer.
func (h *hub) writeLocked(line []byte) error {
	if h.link == nil || h.link.pipe == nil {
		return upstream.ErrClosed
	}
	if _, err := h.link.pipe.Write(line); err != nil {
		return pipeError(err)
	}
	h.srv.count.in.Add(float64(len(line) + 1))
	return nil
}

// takeLocked takes a call out of the table. Only one of several that end it
// gets true.
func (h *hub) takeLocked(k *call) bool {
	if k.conn.calls[k.n] != k {
		return false
	}
	delete(k.conn.calls, k.n)
	return true
}

// cancel ends a call early and tells the process, unless the request is still
// in the queue and can be withdrawn.
func (h *hub) cancel(k *call, reason error) {
	h.mu.Lock()
	taken := h.takeLocked(k)
	if taken {
		h.retractLocked(k, reason)
	}
	h.mu.Unlock()
	if taken {
		k.fail(reason)
	}
}

// retractLocked makes sure that the process does no more for k than it must.
func (h *hub) retractLocked(k *call, reason error) {
	if k.ticket == nil || h.link == nil || h.link.pipe == nil || k.method == mcp.Initialize {
		return // never sent, or nobody there; initialize must not be cancelled (2025-11-25, cancellation)
	}
	if h.link.pipe.Withdraw(k.ticket) {
		return
	}
	line := []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`)
	line = appendWireID(line, k.conn.part, k.n, k.id)
	line = append(line, `,"reason":`...)
	line = wire.AppendQuote(line, reason.Error())
	if err := h.writeLocked(append(line, "}}"...)); err != nil {
		h.log.Debug("cancel not sent", "err", err)
	}
}

// armLocked makes sweep run at the latest when k expires.
func (h *hub) armLocked(k *call) {
	at, _ := k.expiresLocked()
	h.armAtLocked(at)
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
			if at.After(now) {
				if next.IsZero() || at.Before(next) {
					next = at
				}
				continue
			}
			delete(c.calls, k.n)
			h.retractLocked(k, err)
			if k.method == mcp.Initialize {
				err = h.startOverLocked()
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

// startOverLocked stops a process that did not answer initialize in time.
func (h *hub) startOverLocked() error {
	l := h.link
	if l == nil || l.up || l.pipe == nil {
		return errCallTimeout
	}
	l.timedOut = true
	l.pipe.Stop()
	return h.startError(l, "did not answer initialize within "+h.srv.cfg.StartTimeout.String())
}

// close ends every connection and begins to stop the process.
func (h *hub) close(reason error) {
	h.mu.Lock()
	h.closed = true
	conns := slices.Collect(maps.Values(h.conns))
	if h.link != nil && h.link.pipe != nil {
		h.link.pipe.Stop()
	}
	h.stopTimersLocked()
	h.mu.Unlock()
	for _, c := range conns {
		c.End(reason)
	}
}

func (h *hub) stopTimersLocked() {
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.restart != nil {
		h.restart.Stop()
	}
}
