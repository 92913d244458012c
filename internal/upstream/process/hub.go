package process

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// hub is the routing table of one process slot.
type hub struct {
	// static
	srv    *Server
	shared bool
	direct bool // of the per-request era; shared, too
	log    *slog.Logger
	own    *conn // Signalbox's own calls on a shared process

	mu      sync.Mutex
	closed  bool
	link    *link            // the process that runs, starts or stops; nil where none does
	conns   map[string]*conn // by the random part of their ROUTEs; own is among them
	unsent  int              // bytes of the calls that wait to be sent
	timer   *time.Timer      // runs sweep at timerAt
	timerAt time.Time        // zero: not armed
	restart *time.Timer      // runs revive; nil: not armed

	// shared only, guarded by mu
	initResult []byte                   // what the process answered to initialize, for the next client
	subs       map[string]*subscription // by URI
	logging    *call                    // of the per-request era: the call whose log messages come
	late       uint64                   // number of one that was given up, whose log messages may still come; 0: none
	lateUntil  time.Time                // until when they may
	quick      int                      // lives in a row that were short, or never began
	startedAt  time.Time                // when it answered initialize; zero while it has not
}

// Bounds of what waits for a process that starts, or for its handshake: as
// much as the queue of a running one holds by default.
const (
	maxUnsent  = 64 << 20
	unsentCost = 64 // what a waiting call costs beside its line
)

func newHub(s *Server) *hub {
	h := &hub{srv: s, shared: s.cfg.Shared, direct: s.cfg.PerRequest, log: s.cfg.Log, conns: make(map[string]*conn)}
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
	line, header := k.line, k.header
	k.line, k.header = nil, nil
	k.conn.calls[k.n] = k
	ticket, err := h.link.write(line, header)
	switch {
	case errors.Is(err, child.ErrGone):
		// Exit is near. It ends the call, and knows what happened.
	case err != nil:
		delete(k.conn.calls, k.n)
		return pipeError(err)
	default:
		h.srv.count.in.Add(float64(len(line) + 1))
		k.ticket = ticket
	}
	return nil
}

// holdLocked enters a call in the table that sendHeldLocked will send.
func (h *hub) holdLocked(k *call) error {
	cost := len(k.line) + unsentCost
	if h.unsent > 0 && h.unsent+cost > maxUnsent+h.srv.cfg.MaxMessage {
		return upstream.ErrBusy
	}
	h.unsent += cost
	k.waits = k.span.Child("wait for process")
	k.conn.calls[k.n] = k
	return nil
}

// unholdLocked: k waits no longer, or never did.
func (h *hub) unholdLocked(k *call) {
	k.waits.End()
	if k.line != nil {
		h.unsent -= len(k.line) + unsentCost
	}
}

// sendHeldLocked sends the calls of c that wait, oldest first, and returns
// those that could not be sent.
func (h *hub) sendHeldLocked(c *conn) (failed []over) {
	var held []*call
	for _, k := range c.calls {
		if k.line != nil {
			held = append(held, k)
		}
	}
	slices.SortFunc(held, func(a, b *call) int { return cmp.Compare(a.n, b.n) })
	for _, k := range held {
		h.unholdLocked(k)
		if err := h.sendLocked(k); err != nil {
			failed = append(failed, over{k, err})
		}
	}
	return failed
}

// takeLocked takes a call out of the table. Only one of several that end it
// gets true.
func (h *hub) takeLocked(k *call) bool {
	if k.conn.calls[k.n] != k {
		return false
	}
	delete(k.conn.calls, k.n)
	h.unholdLocked(k)
	k.line, k.header = nil, nil
	if k.sub != nil {
		h.unwaitLocked(k)
	}
	if h.logging == k {
		h.logging = nil
	}
	return true
}

// takeAllLocked empties the table of calls.
func (h *hub) takeAllLocked(reason error) []over {
	var ended []over
	for _, c := range h.conns {
		for _, k := range c.calls {
			h.takeLocked(k)
			ended = append(ended, over{k, reason})
		}
	}
	return ended
}

// writeLocked queues a line that expects no answer.
func (h *hub) writeLocked(line []byte, header http.Header) error {
	if h.link == nil || h.link.pipe == nil {
		return upstream.ErrClosed
	}
	if _, err := h.link.write(line, header); err != nil {
		return pipeError(err)
	}
	h.srv.count.in.Add(float64(len(line) + 1))
	return nil
}

// upLocked tells whether calls can go to the process: it has answered
// initialize where there is such a thing, and nobody has told it to stop.
func (h *hub) upLocked() bool {
	return h.link != nil && h.link.up && !h.closed
}

// stopLocked ends the life of the process, if there is one.
func (h *hub) stopLocked() {
	if h.link != nil && h.link.pipe != nil {
		h.link.pipe.Stop()
	}
}

// close ends every connection and then begins to stop the process, so that all
// learn the reason and none of them the exit.
func (h *hub) close(reason error) {
	h.mu.Lock()
	h.closed = true
	conns := slices.Collect(maps.Values(h.conns))
	h.stopTimersLocked()
	h.mu.Unlock()
	for _, c := range conns {
		c.End(reason)
	}
	h.mu.Lock()
	h.stopLocked()
	h.mu.Unlock()
}

func (h *hub) stopTimersLocked() {
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.restart != nil {
		h.restart.Stop()
	}
}

func pipeError(err error) error {
	switch {
	case errors.Is(err, child.ErrBusy):
		return upstream.ErrBusy
	case errors.Is(err, child.ErrGone):
		return upstream.Errorf(mcp.CodeInternal, "process_exited", "server process is gone")
	}
	return err
}
