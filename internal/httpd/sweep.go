package httpd

import (
	"sync"
	"time"
)

// sweepEvery is how often connections are looked at on whose end a handler
// waits. One that has waited since the last time is watched from then on, so
// that a client's end is known after twice this time at most.
const sweepEvery = 50 * time.Millisecond

// sweeper finds the handlers that wait for long. Most calls are answered much
// sooner, and what they wait on costs them nothing.
type sweeper struct {
	mu     sync.Mutex
	conns  []*conn
	timer  *time.Timer // nil before the first connection
	armed  bool
	closed bool
}

// list makes the sweeper look at c.
func (c *conn) list() {
	if c.listed.Load() || c.listed.Swap(true) {
		return
	}
	s := &c.s.sweeper
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.conns = append(s.conns, c)
	s.armLocked()
}

func (s *sweeper) armLocked() {
	switch {
	case s.armed:
	case s.timer == nil:
		s.timer = time.AfterFunc(sweepEvery, s.sweep)
	default:
		s.timer.Reset(sweepEvery)
	}
	s.armed = true
}

func (s *sweeper) sweep() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.armed = false; s.closed {
		return
	}
	kept := s.conns[:0]
	for _, c := range s.conns {
		if c.sweep() {
			kept = append(kept, c)
		}
	}
	clear(s.conns[len(kept):])
	if s.conns = kept; len(kept) > 0 {
		s.armLocked()
	}
}

func (s *sweeper) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.conns = true, nil
	if s.timer != nil {
		s.timer.Stop()
	}
}

// sweep tells whether c is to be looked at again.
func (c *conn) sweep() bool {
	x := c.cur.Load()
	var done *exchange // nothing more is to be done for it
	if x != nil && x.ctx.wanted.Load() {
		if c.swept != x {
			c.swept = x
			return true
		}
		if !c.watch(x) {
			return true
		}
		done = x
	}
	c.swept = nil
	c.listed.Store(false)
	// Somebody may have begun to wait before listed was reset.
	if x = c.cur.Load(); x != done && x != nil && x.ctx.wanted.Load() {
		return !c.listed.Swap(true)
	}
	return false
}

// watch begins a read in the background, which sees the client's end. What it
// reads is part of the next request. false: not yet, since the body was not
// read to its end.
func (c *conn) watch(x *exchange) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur.Load() != x || c.watched || c.earlyLen > 0 || c.readErr != nil {
		return true
	}
	if !x.body.ended.Load() {
		return false
	}
	if c.r < c.w {
		return true // there is another request: the client is still there
	}
	c.release() // a stream may be open for hours
	c.reading.want = time.Time{}
	c.reading.apply()
	c.reading.busy, c.watched = true, true
	go c.background(x)
	return true
}

func (c *conn) background(x *exchange) {
	n, err := c.nc.Read(c.early[:])
	c.mu.Lock()
	c.earlyLen, c.readErr = n, err
	c.reading.busy, c.watched = false, false
	c.unwatch.Broadcast()
	c.mu.Unlock()
	if err != nil {
		x.ctx.cancel()
	}
}
