package remote

import (
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Attach goes on with a session by what its record says. Its address must be
// one of the server's own: a record is not believed where to send credentials.
func (s *Server) Attach(st upstream.State, events upstream.Sink) (upstream.Conn, error) {
	if err := s.addrs.refresh(s.ctx, false); err != nil {
		return nil, unreachable(err)
	}
	a := s.addrs.find(st.Address)
	if a == nil {
		_ = s.addrs.refresh(s.ctx, true) // it may be new
		a = s.addrs.find(st.Address)
	}
	if a == nil {
		if !s.cfg.Reinitialize || len(st.Initialize) == 0 {
			return nil, upstream.ErrLost
		}
		// Another address does not know the session, which is then opened anew.
		if a = s.addrs.pick(nil); a == nil {
			return nil, unreachable(errNoAddress)
		}
	}
	c := &conn{srv: s, events: events, opened: true, at: target{addr: a}.named(st.Session, st.Revision), calls: make(map[*call]struct{})}
	c.keepLocked(st)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.addrs.release(a)
		return nil, upstream.ErrShutdown
	}
	s.conns[c] = struct{}{}
	return c, nil
}

// keepLocked takes over what is needed to open the session anew.
func (c *conn) keepLocked(st upstream.State) {
	if !c.srv.cfg.Reinitialize {
		return
	}
	c.init = st.Initialize
	c.replay = upstream.State{LogLevel: st.LogLevel, Subscriptions: slices.Clone(st.Subscriptions)}
}

// Adopt follows a session that another process has opened anew.
func (c *conn) Adopt(st upstream.State) {
	c.mu.Lock()
	if c.ended || c.via != nil || c.opening != nil || st.Address == "" {
		c.mu.Unlock()
		return
	}
	same := c.at.addr.key == st.Address && c.at.session == st.Session
	if !same {
		c.keepLocked(st)
	}
	life := c.at.life
	c.mu.Unlock()
	if same {
		return
	}
	a := c.srv.addrs.find(st.Address)
	if a == nil {
		return // the next call finds out what that means
	}
	if _, ok := c.moveTo(target{addr: a, life: life + 1}.named(st.Session, st.Revision)); !ok {
		c.srv.addrs.release(a)
	}
}

// Detach frees what is local; the server hears nothing.
func (c *conn) Detach(reason error) { c.leaveFor(reason, false) }

// changed tells the keeper of the session's state, if there is one.
func (c *conn) changed(change func(*upstream.State)) {
	if k, ok := c.events.(upstream.Keeper); ok {
		k.Changed(change)
	}
}

// renewed settles with other processes who has opened the session anew.
func (c *conn) renewed(lost, now target) (target, error) {
	k, ok := c.events.(upstream.Keeper)
	if !ok {
		return now, nil
	}
	st, err := k.Renewed(c.stateAt(lost), c.stateAt(now))
	if err != nil {
		return now, err
	}
	c.mu.Lock()
	c.keepLocked(st)
	c.mu.Unlock()
	if st.Address == now.addr.key && st.Session == now.session {
		return now, nil
	}
	a := c.srv.addrs.find(st.Address)
	if a == nil {
		return now, upstream.ErrLost
	}
	c.srv.wg.Add(1)
	go c.goodbye(now)
	return target{addr: a, life: now.life}.named(st.Session, st.Revision), nil
}

func (c *conn) stateAt(t target) upstream.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stateLocked(t)
}

func (c *conn) movesLocked(t target) bool { return t.addr != nil && c.opened && c.via == nil }

func (c *conn) stateLocked(t target) upstream.State {
	st := upstream.State{Session: t.session, Revision: t.revision, Initialize: c.init, LogLevel: c.replay.LogLevel, Subscriptions: slices.Clone(c.replay.Subscriptions)}
	if c.movesLocked(t) {
		st.Address = t.addr.key
	}
	return st
}
