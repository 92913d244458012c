package dialog

import (
	"errors"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// A session has one subscriptions/listen, for the lists whose changes the server
// tells and for the resources that the client watches (2026-07-28,
// basic/patterns/subscriptions). What one listen asks for cannot be changed, so a
// change opens another. When the server has acknowledged that, what it has sent on the
// one before may still be on its way.

const (
	ackWait    = 30 * time.Second // until the server acknowledges a listen
	lingering  = time.Second      // how long the one before it is listened to still
	backoffMin = 500 * time.Millisecond
	backoffMax = time.Minute
)

// listening is what a session listens to. All is guarded by conn.mu.
type listening struct {
	from    origin              // who listens: of the last message that changed it
	lists   bool                // the client has initialized, and is told of lists
	uris    map[string]struct{} // that it watches
	cur     *feed               // acknowledged; nil: none
	next    *feed               // sent, and not acknowledged yet; nil: none
	old     *feed               // the one before cur, for a moment still; nil: none
	overlap map[change]int      // while there is an old one: see firstLocked
	stale   bool                // next does not ask for what is wanted now
	waiting []*watching         // in order
	fails   int                 // in a row
	again   *time.Timer         // opens the next one after a failure
}

// watching is a resources/subscribe or unsubscribe that waits for a listen to be
// acknowledged.
type watching struct {
	k    *call
	uri  string
	on   bool
	feed *feed // the listen that decides; nil: not sent yet
}

// leaveLocked: its call has ended.
func (w *watching) leaveLocked() {
	l := &w.k.c.listening
	l.waiting = slices.DeleteFunc(l.waiting, func(o *watching) bool { return o == w })
}

// initialized begins to listen for changes of lists.
func (c *conn) initialized(req *upstream.Request) error {
	c.mu.Lock()
	if err := c.closedLocked(); err != nil {
		c.mu.Unlock()
		return err
	}
	l := &c.listening
	var do todo
	if !l.lists && c.offers.lists() {
		l.lists, l.from = true, originOf(req)
		do = c.changedLocked()
	}
	c.mu.Unlock()
	do.run()
	return nil
}

// stopLocked: the session is over. The feeds are to be cancelled.
func (l *listening) stopLocked() (open []*feed) {
	if l.again != nil {
		l.again.Stop()
	}
	open = l.dropLocked()
	if l.next != nil {
		l.next.timer.Stop()
		open = append(open, l.next)
	}
	l.next, l.waiting = nil, nil
	return open
}

// todo is what a change of the listening makes necessary, outside of the mutex.
type todo struct {
	ask    *feed
	cancel []*feed // that are not needed any more
	settle []settled
}

// settled is a watching call that can be answered; err nil: by {}.
type settled struct {
	k   *call
	err error
}

func (d todo) run() {
	for _, s := range d.settle {
		if s.err != nil {
			s.k.end(s.err)
		} else {
			s.k.result([]byte("{}"))
		}
	}
	for _, f := range d.cancel {
		f.cancel(errNotNeeded)
	}
	if d.ask != nil {
		d.ask.ask()
	}
}

var errNotNeeded = errors.New("this subscriptions/listen is not needed any more")

// changedLocked opens a listen for what is wanted now. One that is on its way
// already is waited for: there are never more than two.
func (c *conn) changedLocked() todo {
	l := &c.listening
	if c.ended != nil {
		return todo{}
	}
	if l.next != nil {
		l.stale = true
		return todo{}
	}
	if l.again != nil {
		l.again.Stop()
		l.again = nil
	}
	l.stale = false
	if !l.lists && len(l.uris) == 0 {
		return todo{cancel: l.dropLocked(), settle: l.settleLocked(nil, nil)}
	}
	f := newFeed(c)
	l.next = f
	for _, w := range l.waiting {
		w.feed = f
	}
	return todo{ask: f}
}

// dropLocked forgets what is listened to now. The feeds are to be cancelled.
func (l *listening) dropLocked() (feeds []*feed) {
	for _, f := range []*feed{l.old, l.cur} {
		if f != nil {
			f.timer.Stop()
			feeds = append(feeds, f)
		}
	}
	l.old, l.cur, l.overlap = nil, nil, nil
	return feeds
}

// settleLocked answers the calls that waited for f: with err, else by what the
// server agreed to. To stop watching always succeeds. f nil: nothing is watched any
// more, and all are answered.
func (l *listening) settleLocked(f *feed, err error) (all []settled) {
	var rest []*watching
	for _, w := range l.waiting {
		if f != nil && w.feed != f {
			rest = append(rest, w)
			continue
		}
		w.k.watching = nil
		s := settled{k: w.k}
		if f != nil && w.on && (err != nil || !f.agreed[w.uri]) {
			if s.err = err; err == nil {
				s.err = upstream.Errorf(mcp.CodeResourceNotFound, "not_agreed", "the server does not tell of changes of %s", cut([]byte(w.uri), 256))
			}
			if l.cur == nil || !l.cur.agreed[w.uri] {
				delete(l.uris, w.uri)
			}
		}
		all = append(all, s)
	}
	l.waiting = rest
	return all
}

// reopen opens the listen anew after a pause.
func (c *conn) reopen() {
	c.mu.Lock()
	c.listening.again = nil
	do := c.changedLocked()
	c.mu.Unlock()
	do.run()
}

// lostLocked: f has ended by itself.
func (c *conn) lostLocked(f *feed, err error) todo {
	l := &c.listening
	var do todo
	switch f {
	case l.old:
		f.timer.Stop()
		l.old, l.overlap = nil, nil
		return do
	case l.cur:
		l.cur = nil
		if time.Since(f.since) >= delay(l.fails) {
			l.fails = 0
		}
	case l.next:
		f.timer.Stop()
		l.next = nil
		for _, w := range l.waiting {
			l.stale = l.stale || w.feed == f && !w.on // cur tells of it still
		}
		do.settle = l.settleLocked(f, err)
		if l.cur != nil && !l.stale {
			return do // the one before goes on, for what the client watches still
		}
	default:
		return do
	}
	c.srv.count.lost.Inc()
	c.srv.cfg.Log.Debug("subscription lost", "err", err)
	if c.ended != nil || l.next != nil || l.again != nil || !l.lists && len(l.uris) == 0 && !l.stale {
		return do
	}
	l.again = time.AfterFunc(delay(l.fails), c.reopen)
	l.fails++
	return do
}

// delay is the pause after so many failures before.
func delay(fails int) time.Duration {
	if fails >= 7 {
		return backoffMax
	}
	return min(backoffMin<<fails, backoffMax)
}
