package dialog

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A session has one subscriptions/listen, for the lists whose changes the server
// tells and for the resources that the client watches (2026-07-28,
// basic/patterns/subscriptions). What one listen asks for cannot be changed, so a
// change opens another, and the server's acknowledgement of that ends the one before.

const (
	ackWait    = 30 * time.Second // until the server acknowledges a listen
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
	for _, f := range []*feed{l.cur, l.next} {
		if f != nil {
			f.restLocked()
			open = append(open, f)
		}
	}
	l.cur, l.next, l.waiting = nil, nil, nil
	return open
}

// todo is what a change of the listening makes necessary, outside of the mutex.
type todo struct {
	ask    *feed
	cancel *feed
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
	if d.cancel != nil {
		d.cancel.cancel(errNotNeeded)
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
		do := todo{cancel: l.cur, settle: l.settleLocked(nil, nil)}
		l.cur = nil
		return do
	}
	f := newFeed(c)
	l.next = f
	for _, w := range l.waiting {
		w.feed = f
	}
	return todo{ask: f}
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
	f.restLocked()
	var do todo
	switch f {
	case l.cur:
		l.cur = nil
		if time.Since(f.since) >= delay(l.fails) {
			l.fails = 0
		}
	case l.next:
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

// feed is one subscriptions/listen and the sink of what comes.
type feed struct {
	handle
	members []byte // raw params.notifications
	from    origin

	// guarded by conn.mu
	ack    *time.Timer     // until the acknowledgement
	agreed map[string]bool // URIs
	since  time.Time       // when it was acknowledged
}

func newFeed(c *conn) *feed {
	l := &c.listening
	f := &feed{handle: handle{c: c}, from: l.from}
	var members [][]byte
	flag := func(name string, on bool) {
		if on && l.lists {
			members = append(members, quoted(name, []byte("true")))
		}
	}
	flag("toolsListChanged", c.offers.tools)
	flag("promptsListChanged", c.offers.prompts)
	flag("resourcesListChanged", c.offers.resources)
	if len(l.uris) > 0 {
		var uris [][]byte
		for uri := range l.uris {
			uris = append(uris, wire.AppendQuote(nil, uri))
		}
		slices.SortFunc(uris, bytes.Compare)
		list := slices.Concat([]byte("["), bytes.Join(uris, comma), []byte("]"))
		members = append(members, quoted("resourceSubscriptions", list))
	}
	f.members = object("notifications", bytes.Join(members, comma))
	f.ack = time.AfterFunc(ackWait, f.silent)
	return f
}

func (f *feed) restLocked() { f.ack.Stop() }

func (f *feed) ask() {
	req, err := f.c.own("subscriptions/listen", f.members, f.from)
	if err != nil {
		f.lost(err)
		return
	}
	up, err := f.c.srv.cfg.Asker.Ask(req, f)
	if err != nil {
		f.lost(err)
		return
	}
	f.opened(up)
}

// silent: the server did not acknowledge.
func (f *feed) silent() {
	err := &upstream.Error{Code: mcp.CodeServer, Reason: "timeout", Err: upstream.ErrTimeout,
		Message: "the server did not acknowledge subscriptions/listen within " + ackWait.String()}
	f.c.mu.Lock()
	late := f.c.listening.next != f
	f.c.mu.Unlock()
	if !late {
		f.giveUp(err)
	}
}

// giveUp ends a listen that the server has not ended.
func (f *feed) giveUp(err error) {
	f.c.mu.Lock()
	do := f.c.lostLocked(f, err)
	f.c.mu.Unlock()
	f.cancel(err)
	do.run()
}

func (f *feed) lost(err error) {
	f.c.mu.Lock()
	f.done = true
	do := f.c.lostLocked(f, err)
	f.c.mu.Unlock()
	do.run()
}

// Deliver takes what the server says on the listen's stream.
func (f *feed) Deliver(fr upstream.Frame) upstream.Verdict {
	switch {
	case fr.Relation == upstream.Reply:
		f.lost(ended(fr.Data))
	case fr.Method == mcp.NotifSubscriptionsAcknowledged:
		f.acknowledged(fr.Data)
	case fr.Method == mcp.NotifCancelled: // some servers end a listen so
		f.giveUp(errEnded)
	case fr.Method.IsListChanged() || fr.Method == mcp.NotifResourcesUpdated:
		return f.pass(fr)
	default:
		return upstream.NoTaker
	}
	return upstream.Taken
}

// End is the end of the listen.
func (f *feed) End(reason error) {
	if reason == nil {
		reason = errEnded
	}
	f.lost(reason)
}

var errEnded = upstream.Errorf(mcp.CodeInternal, "no_answer", "the server ended subscriptions/listen")

// ended is why a listen that was answered is over.
func ended(reply []byte) error {
	msg, err := wire.Parse(reply)
	if err != nil || !msg.Error.Present() {
		return errEnded
	}
	f := readFailure(&msg)
	code := mcp.CodeInternal
	if f.code == "-32602" {
		code = mcp.CodeInvalidParams
	}
	return upstream.Errorf(code, "listen", "the server refused subscriptions/listen: %s (%s)", f.message, cut([]byte(f.code), 32))
}

// acknowledged: from now on this feed tells of all changes, and the one before
// is of no use.
func (f *feed) acknowledged(data []byte) {
	c := f.c
	agreed := make(map[string]bool)
	if msg, err := wire.Parse(data); err == nil {
		subset, _ := member(msg.Raw, msg.Params, "notifications")
		uris, _ := member(msg.Raw, subset, "resourceSubscriptions")
		for _, uri := range texts(msg.Raw, uris) {
			agreed[uri] = true
		}
	}
	c.mu.Lock()
	l := &c.listening
	if l.next != f {
		c.mu.Unlock()
		return
	}
	f.restLocked()
	f.agreed, f.since = agreed, time.Now()
	old := l.cur
	l.cur, l.next = f, nil
	settle := l.settleLocked(f, nil)
	var do todo
	if l.stale {
		do = c.changedLocked()
	}
	c.mu.Unlock()
	if old != nil {
		old.cancel(errNotNeeded)
	}
	todo{settle: settle}.run()
	do.run()
}

// pass delivers a change without the id of the subscription, which no client of
// the handshake era has made.
func (f *feed) pass(fr upstream.Frame) upstream.Verdict {
	c := f.c
	c.mu.Lock()
	known := c.listening.cur == f || c.listening.next == f
	c.mu.Unlock()
	if !known {
		return upstream.Closed
	}
	msg, err := wire.Parse(fr.Data)
	if err != nil {
		return upstream.NoTaker
	}
	if isObject(msg.Raw, msg.Params) {
		edits, _ := edit(msg.Raw, msg.Params.Start, func(name []byte, value wire.Span) verdict {
			if string(name) == "_meta" {
				return withoutMeta(msg.Raw, value, mcp.MetaSubscription)
			}
			return stays
		})
		if len(edits) > 0 {
			fr.Data, fr.Buffer = splice(msg.Raw, edits), nil
		}
	}
	if c.homes(nil, fr) {
		return upstream.Taken
	}
	return upstream.NoTaker
}
