package process

import "time"

// A shared process that ended is started again while sessions live on it.

// quickLife is a life so short that an immediate new start would be a loop.
const quickLife = 10 * time.Second

// deathLocked cleans up after a life of the shared process, or the attempt of
// one: it returns the calls that were open, and arranges the next start.
func (h *hub) deathLocked(reason error) []over {
	h.link, h.late = nil, 0
	for _, s := range h.subs {
		s.ask, s.on = nil, false
		h.nextLocked(s)
	}
	waiting := h.listensLocked()
	ended := append(h.takeAllLocked(reason), h.waitLocked(waiting)...)
	h.quick++
	if !h.startedAt.IsZero() && time.Since(h.startedAt) > quickLife {
		h.quick = 1
	}
	h.startedAt = time.Time{}
	h.reviveLaterLocked()
	return ended
}

// reviveLaterLocked starts the process again after a pause if sessions still
// need it. A request that comes earlier starts it at once.
func (h *hub) reviveLaterLocked() {
	if !h.neededLocked() {
		return
	}
	wait := (&breaker{fails: h.quick}).delay()
	if h.restart == nil {
		h.restart = time.AfterFunc(wait, h.revive)
	} else {
		h.restart.Reset(wait)
	}
}

// neededLocked: there are sessions, or listens, for which a process must run.
func (h *hub) neededLocked() bool {
	return !h.closed && (len(h.conns) > 1 || h.direct && len(h.own.calls) > 0) // the hub's own is always there
}

func (h *hub) revive() {
	h.mu.Lock()
	var begin *link
	if h.neededLocked() {
		var err error
		if begin, err = h.beginLocked(); err != nil {
			h.quick++
			h.reviveLaterLocked()
		}
	}
	h.mu.Unlock()
	if begin != nil {
		h.start(begin)
	}
}
