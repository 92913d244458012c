package park

import (
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// phase of a session.
type phase uint8

const (
	opening phase = iota
	ready         // initialized is sent
	over
)

// session is one at the server that no client sees. All but the static part is
// guarded by Server.mu.
type session struct {
	// static
	srv    *Server
	group  *group
	pool   *pool
	client *client // who opened it

	phase     phase
	reason    error // why it is over
	exclusive bool  // one call at a time
	conn      upstream.Conn
	init      []byte // the InitializeResult; nil until there is one
	offers    offers
	calls     map[*call]struct{} // that it was given to and that are not over
	queue     []*call            // that wait for ready; server/discover is in here only
	level     level              // as of the last logging/setLevel that was accepted; 0: none was
	lastID    uint64             // of the requests to the server
	out       line               // what is sent without an answer, in order
	idle      *time.Timer
	readyAt   time.Time
	listens   map[*listen]struct{}
	subs      map[string]*sub // by URI
	following bool            // an upstream.Listener is on
}

func newSession(g *group, p *pool, c *client, exclusive bool) *session {
	return &session{
		srv: g.srv, group: g, pool: p, client: c, exclusive: exclusive,
		calls: make(map[*call]struct{}), listens: make(map[*listen]struct{}), subs: make(map[string]*sub),
		out: line{srv: g.srv},
	}
}

// fitsLocked tells whether the session may take a call now.
func (ses *session) fitsLocked(k *call) bool {
	switch {
	case ses.phase == over || ses.pool.can.text != k.client.can.text:
		return false
	case k.method == mcp.ServerDiscover:
		return true
	case ses.exclusive:
		return k.exclusive && len(ses.calls) == 0
	}
	return !k.exclusive || !k.client.can.asks() && ses.group.logging == absent
}

// takeLocked gives the session to a call.
func (ses *session) takeLocked(k *call, l *later) {
	k.ses = ses
	if k.method != mcp.ServerDiscover {
		ses.calls[k] = struct{}{}
	}
	ses.wakeLocked()
	if ses.phase == opening {
		ses.queue = append(ses.queue, k)
		return
	}
	k.goLocked(l)
}

// movesLocked tells whether the session will take another call without its
// client's doing.
func (ses *session) movesLocked() bool {
	for k := range ses.calls {
		if !k.parked {
			return true
		}
	}
	return len(ses.calls) == 0
}

// restLocked winds the clock of a session that nobody uses, or stops it.
func (ses *session) restLocked(l *later) {
	used := len(ses.calls)+len(ses.listens)+len(ses.queue) > 0
	switch {
	case ses.phase != ready:
	case used:
		ses.wakeLocked()
	case ses.group.loner():
		ses.endLocked(errUnused, l)
	case ses.idle == nil:
		ses.idle = time.AfterFunc(ses.srv.cfg.Idle, ses.unused)
	}
}

// wakeLocked stops the clock of a session that nobody used.
func (ses *session) wakeLocked() {
	if ses.idle != nil {
		ses.idle.Stop()
		ses.idle = nil
	}
}

var errUnused = upstream.Errorf(mcp.CodeInternal, "session_ended", "nobody used the session")

func (ses *session) unused() {
	ses.srv.locked(func(l *later) {
		if ses.idle != nil && ses.phase == ready && len(ses.calls)+len(ses.listens) == 0 {
			ses.endLocked(errUnused, l)
		}
	})
}

// endLocked ends the session here and at the server, and lets others have its
// place.
func (ses *session) endLocked(reason error, l *later) {
	if ses.phase == over {
		return
	}
	ses.leaveLocked(reason, l)
	ses.group.dispatchLocked(l)
}

// leaveLocked is endLocked without the others.
func (ses *session) leaveLocked(reason error, l *later) {
	if ses.phase == over {
		return
	}
	ses.phase, ses.reason = over, reason
	g := ses.group
	g.sessions = slices.DeleteFunc(g.sessions, func(s *session) bool { return s == ses })
	if ses.pool.sessions--; ses.pool.sessions == 0 {
		delete(g.pools, ses.pool.can.text)
	}
	ses.srv.opened--
	ses.srv.count.sessions.Dec()
	ses.wakeLocked()
	if conn := ses.conn; conn != nil {
		ses.out.put(func() { conn.End(reason) }, true, l)
	}
	for k := range ses.calls {
		if !k.begun { // the connection ends the others
			k.finishLocked(end{err: reason}, l)
		}
	}
	for _, k := range ses.queue {
		k.finishLocked(end{err: reason}, l)
	}
	ses.queue = nil
	for n := range ses.listens {
		n.lostLocked(reason, l)
	}
	clear(ses.listens)
}
