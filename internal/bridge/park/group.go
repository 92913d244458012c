package park

import (
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// group is what requests of one principal and scope share. All of it is guarded
// by Server.mu.
type group struct {
	srv *Server // static
	key string  // static; "" for a group of one request, which is in loners

	sessions []*session // not over
	waiting  []*call    // for a session; oldest first
	listens  map[*listen]struct{}
	pools    map[string]*pool // by the text of capabilities, while they have sessions
	logging  offer            // whether the server takes logging/setLevel

	busy, redo bool // of dispatchLocked
}

// pool is what sessions share that were opened with equal capabilities.
type pool struct {
	can      capabilities
	sessions int
	roots    []byte // the client's last answer to roots/list; nil: none yet
}

// offer is what is known of an optional thing.
type offer uint8

const (
	unknown offer = iota
	offered
	absent
)

var errBusy = upstream.Errorf(mcp.CodeInternal, "busy",
	"all sessions at the server that this client may have wait for answers of its calls, or too many calls wait; answer them, or try again later")

func newGroup(s *Server, key string) *group {
	return &group{srv: s, key: key, listens: make(map[*listen]struct{}), pools: make(map[string]*pool)}
}

// loner tells that the group is that of one request.
func (g *group) loner() bool { return g.key == "" }

// most is how many sessions the group may have.
func (g *group) most() int {
	switch s := g.srv; {
	case g.loner():
		return 1
	case s.opened >= s.cfg.MaxSessions:
		return max(1, len(g.sessions))
	}
	return g.srv.cfg.MaxSessionsPerPrincipal
}

// enterLocked takes a call in: it runs as soon as a session may take it.
func (g *group) enterLocked(k *call, l *later) error {
	k.exclusive = k.client.can.asks() || k.client.level != 0 && !g.srv.cfg.Shared && g.logging != absent
	if len(g.waiting) >= maxWaiting {
		return errBusy
	}
	g.waiting = append(g.waiting, k)
	g.dispatchLocked(l)
	return nil
}

// dispatchLocked gives sessions to those who wait, oldest first. What it does may
// call it again: then it begins anew when it has finished.
func (g *group) dispatchLocked(l *later) {
	if g.redo = true; g.busy {
		return
	}
	g.busy = true
	for g.redo {
		g.redo = false
		g.dispatchOnceLocked(l)
	}
	g.busy = false
}

// dispatchOnceLocked refuses all who wait when nothing is left that could give a
// session back by itself.
func (g *group) dispatchOnceLocked(l *later) {
	for _, k := range slices.Clone(g.waiting) {
		if g.placeLocked(k, l) {
			g.unwaitLocked(k)
		}
	}
	if len(g.waiting) > 0 && !slices.ContainsFunc(g.sessions, (*session).movesLocked) {
		all := g.waiting
		g.waiting = nil
		for _, k := range all {
			k.finishLocked(end{err: errBusy}, l)
		}
	}
	if len(g.sessions)+len(g.waiting)+len(g.listens) == 0 {
		delete(g.srv.loners, g)
		if g.srv.groups[g.key] == g {
			delete(g.srv.groups, g.key)
		}
	}
}

func (g *group) unwaitLocked(k *call) {
	g.waiting = slices.DeleteFunc(g.waiting, func(w *call) bool { return w == k })
}

// placeLocked finds a session for a call, or opens one.
func (g *group) placeLocked(k *call, l *later) bool {
	for _, ses := range g.sessions {
		if ses.fitsLocked(k) {
			ses.takeLocked(k, l)
			return true
		}
	}
	if ses := g.openLocked(k.client, k.exclusive, l); ses != nil {
		ses.takeLocked(k, l)
		return true
	}
	if k.method == mcp.ServerDiscover && len(g.sessions) > 0 {
		g.sessions[0].takeLocked(k, l)
		return true
	}
	return false
}

// openLocked begins a session. One of another pool that nobody uses makes room
// for it. nil: there is no room.
func (g *group) openLocked(c *client, exclusive bool, l *later) *session {
	if len(g.sessions) >= g.most() {
		idle := g.idlestLocked()
		if idle == nil {
			return nil
		}
		idle.leaveLocked(errRoom, l)
	}
	p := g.pools[c.can.text]
	if p == nil {
		p = &pool{can: c.can}
		g.pools[c.can.text] = p
	}
	p.sessions++
	ses := newSession(g, p, c, exclusive)
	g.sessions = append(g.sessions, ses)
	g.srv.opened++
	g.srv.count.sessions.Inc()
	l.do(func() { go ses.open(c) })
	return ses
}

var errRoom = upstream.Errorf(mcp.CodeInternal, "session_ended", "the session made room for another one")

// idlestLocked is a session that no call uses, best one that no listen uses either.
func (g *group) idlestLocked() *session {
	var hit *session
	for _, ses := range g.sessions {
		if ses.phase != ready || len(ses.calls) > 0 {
			continue
		}
		if hit == nil || len(ses.listens) < len(hit.listens) {
			hit = ses
		}
	}
	return hit
}

// closeLocked ends everything for a server that shuts down.
func (g *group) closeLocked(l *later) {
	waiting := g.waiting
	g.waiting = nil
	for _, k := range waiting {
		k.finishLocked(end{err: upstream.ErrShutdown}, l)
	}
	for n := range g.listens {
		n.closeLocked(l)
	}
	for _, ses := range slices.Clone(g.sessions) {
		conn := ses.conn
		ses.endLocked(upstream.ErrShutdown, l)
		if conn != nil { // at once, whatever its line is at
			l.do(func() { conn.End(upstream.ErrShutdown) })
		}
	}
}
