package dialog

import (
	"bytes"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// feed is one subscriptions/listen and the sink of what comes.
type feed struct {
	handle
	members []byte // raw params.notifications
	from    origin

	// guarded by conn.mu
	timer  *time.Timer     // until it must be acknowledged, later until it is let go
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
	f.timer = time.AfterFunc(ackWait, f.silent)
	return f
}

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

// acknowledged: from now on this feed tells of all changes.
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
	f.timer.Stop()
	f.agreed, f.since = agreed, time.Now()
	do := todo{cancel: l.replaceLocked(f), settle: l.settleLocked(f, nil)}
	var more todo
	refused := 0 // of what was agreed before
	if l.stale {
		more = c.changedLocked()
	} else {
		for uri := range l.uris {
			if !agreed[uri] {
				refused++
			}
		}
	}
	c.mu.Unlock()
	if refused > 0 {
		c.srv.cfg.Log.Warn("the server does not tell any more of changes of resources that a session watches", "count", refused)
	}
	do.run()
	more.run()
}

// replaceLocked puts f in the place of the feed before, which lingers, unless
// it tells of something that nobody wants to hear of any more. The feeds are to be
// cancelled.
func (l *listening) replaceLocked(f *feed) (cancel []*feed) {
	before := l.cur
	l.cur = nil
	cancel = l.dropLocked() // one that lingers still
	l.cur, l.next = f, nil
	switch {
	case before == nil:
	case !before.wantedLocked(l):
		cancel = append(cancel, before)
	default:
		l.old, l.overlap = before, make(map[change]int)
		before.timer = time.AfterFunc(lingering, before.letGo)
	}
	return cancel
}

// wantedLocked tells whether the client watches all that the feed tells of.
func (f *feed) wantedLocked(l *listening) bool {
	for uri := range f.agreed {
		if _, ok := l.uris[uri]; !ok {
			return false
		}
	}
	return true
}

// letGo ends a feed in whose place there is another.
func (f *feed) letGo() {
	f.c.mu.Lock()
	if l := &f.c.listening; l.old == f {
		l.old, l.overlap = nil, nil
	}
	f.c.mu.Unlock()
	f.cancel(errNotNeeded)
}

// change is what a notification of a feed tells of.
type change struct {
	method mcp.Method
	uri    string
}

// firstLocked tells whether this notification is the first that tells of a change.
// While two feeds overlap, both tell of the same changes, and the one before perhaps
// of some more: of each change, as many are passed on as the one has that has more.
// What cur tells late is passed on in any case, for its twin may not arrive any more.
func (f *feed) firstLocked(ch change) bool {
	l := &f.c.listening
	switch {
	case f != l.old && f != l.cur && f != l.next:
		return false
	case l.old == nil || f == l.next || len(l.overlap) > maxWatched:
		return true
	case f == l.old:
		l.overlap[ch]++
		return l.overlap[ch] > 0
	}
	l.overlap[ch]--
	return l.overlap[ch] < 0 || time.Since(f.since) > lingering/2
}

// pass delivers a change without the id of the subscription, which no client of
// the handshake era has made.
func (f *feed) pass(fr upstream.Frame) upstream.Verdict {
	c := f.c
	msg, err := wire.Parse(fr.Data)
	if err != nil {
		return upstream.NoTaker
	}
	uri, _ := wire.Unquote(msg.Bytes(msg.P.URI))
	c.mu.Lock()
	first := f.firstLocked(change{fr.Method, string(uri)})
	c.mu.Unlock()
	if !first {
		return upstream.Taken // by the feed before
	}
	if isObject(msg.Raw, msg.Params) {
		edits, _ := wire.EditMembers(msg.Raw, msg.Params.Start, func(name []byte, value wire.Span) verdict {
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
