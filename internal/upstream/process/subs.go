package process

import (
	"maps"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Bounds of what sessions can have a shared process watch.
const (
	maxSubscriptions = 1024    // of one session
	maxURI           = 8 << 10 // bytes
	maxOwnCalls      = 4096    // (un)subscribe calls in flight
)

// subscription is one resource that sessions of a shared process watch. The
// process is asked once for all; the last session that leaves ends it.
// Guarded by hub.mu.
type subscription struct {
	uri     string
	on      bool  // the process has it
	ask     *call // Signalbox's own call about it that is open; else nil
	members map[*conn]struct{}
	waiters map[*call]struct{} // resources/subscribe calls that wait for the process's answer
}

var (
	errTooManySubs = upstream.Errorf(mcp.CodeServer, "subscription_limit", "this session watches as many resources as one session may (%d)", maxSubscriptions)
	errURI         = upstream.Errorf(mcp.CodeInvalidParams, "uri", "params.uri is missing, no string, or longer than %d bytes", maxURI)
)

// startSubscription counts a session in or out.
func (c *conn) startSubscription(k *call, m *wire.Message) (upstream.Call, error) {
	uri, ok := wire.Unquote(m.Bytes(m.P.URI))
	if !ok || len(uri) > maxURI {
		k.fail(errURI)
		return k, nil
	}
	h := c.hub
	h.mu.Lock()
	var begin *link
	var err error
	answer := true
	switch {
	case c.ended:
		err = upstream.ErrClosed
	case k.method == mcp.ResourcesSubscribe:
		begin, answer, err = c.subscribeLocked(k, string(uri))
	default:
		c.unsubscribeLocked(string(uri))
	}
	h.mu.Unlock()
	if begin != nil {
		h.start(begin)
	}
	if err != nil {
		return nil, err
	}
	if answer {
		k.answer("{}")
	}
	return k, nil
}

func (c *conn) subscribeLocked(k *call, uri string) (begin *link, answer bool, err error) {
	h := c.hub
	s := h.subs[uri]
	if s != nil && s.on {
		if c.joinLocked(s) {
			return nil, true, nil
		}
		return nil, false, errTooManySubs
	}
	if begin, err = h.beginLocked(); err != nil {
		return nil, false, err
	}
	if s == nil {
		s = &subscription{uri: uri, members: make(map[*conn]struct{}), waiters: make(map[*call]struct{})}
		h.subs[uri] = s
	}
	k.setDeadlines(&h.srv.cfg)
	c.calls[k.n] = k
	k.sub = s
	s.waiters[k] = struct{}{}
	h.armLocked(k)
	if err := h.nextLocked(s); err != nil {
		h.takeLocked(k)
		return begin, false, err
	}
	return begin, false, nil
}

func (c *conn) joinLocked(s *subscription) bool {
	if _, in := s.members[c]; !in && len(c.subs) >= maxSubscriptions {
		return false
	}
	if c.subs == nil {
		c.subs = make(map[*subscription]struct{})
	}
	c.subs[s] = struct{}{}
	s.members[c] = struct{}{}
	return true
}

// unsubscribeLocked: only the last session's leaving needs a word to the
// process, and nobody has to wait for its answer.
func (c *conn) unsubscribeLocked(uri string) {
	s := c.hub.subs[uri]
	if s == nil {
		return
	}
	for k := range s.waiters {
		if k.conn == c {
			k.brief = true
		}
	}
	if _, in := s.members[c]; in {
		c.hub.leaveLocked(c, s)
	}
}

// leaveLocked takes a session out; the last one ends the subscription.
func (h *hub) leaveLocked(c *conn, s *subscription) {
	delete(s.members, c)
	delete(c.subs, s)
	h.nextLocked(s)
}

// unwaitLocked: a subscribe call ended before the process answered.
func (h *hub) unwaitLocked(k *call) {
	s := k.sub
	k.sub = nil
	delete(s.waiters, k)
	h.nextLocked(s)
}

// nextLocked does what a subscription needs now: it asks the process to begin
// or to end it, or forgets it. One question is open at a time; its answer
// leads here again. The error is that of a subscribe that could not be sent.
func (h *hub) nextLocked(s *subscription) error {
	wanted := len(s.members)+len(s.waiters) > 0
	switch {
	case s.ask != nil:
	case wanted && !s.on && h.upLocked():
		if len(h.own.calls) >= maxOwnCalls {
			return upstream.ErrBusy
		}
		return h.askLocked(s, mcp.ResourcesSubscribe)
	case !wanted && s.on && h.upLocked() && h.askLocked(s, mcp.ResourcesUnsubscribe) == nil:
		s.on = false
	case !wanted:
		delete(h.subs, s.uri)
	}
	return nil
}

func (h *hub) askLocked(s *subscription, m mcp.Method) error {
	var k *call
	k = h.ownCall(m, func(msg wire.Message, err error) { h.asked(s, k, &msg, err) })
	err := h.sendOwnLocked(k, `{"uri":`+string(wire.AppendQuote(nil, s.uri))+`}`)
	if err == nil {
		s.ask = k
	}
	return err
}

// asked takes the process's answer. Only now is a subscription recorded. The
// lock was free since the answer came: a new life of the process may have
// another question open.
func (h *hub) asked(s *subscription, k *call, msg *wire.Message, err error) {
	var waiters []*call
	var failed []over
	h.mu.Lock()
	if s.ask == k {
		s.ask = nil
		if k.method == mcp.ResourcesSubscribe {
			s.on = err == nil && msg.Result.Present()
			waiters, failed = h.settleWaitersLocked(s)
		}
		if err := h.nextLocked(s); err != nil {
			failed = append(failed, h.dropLocked(s, err)...)
		}
	}
	h.mu.Unlock()
	failAll(failed)
	for _, w := range waiters {
		switch {
		case err != nil:
			w.fail(err)
		case msg.Result.Present():
			w.answer("{}")
		default: // the server's own error, for each of them under its own id
			copied := *msg
			copied.Raw = slices.Clone(msg.Raw)
			w.reply(&copied, nil)
		}
	}
}

// settleWaitersLocked makes members of those who waited, if the process has
// the subscription now, else of nobody, not even of who had it in an earlier
// life of the process. It returns the calls to answer.
func (h *hub) settleWaitersLocked(s *subscription) (waiters []*call, refused []over) {
	for _, k := range slices.Collect(maps.Keys(s.waiters)) {
		k.sub = nil
		h.takeLocked(k)
		if s.on && !k.brief && !k.conn.joinLocked(s) {
			refused = append(refused, over{k, errTooManySubs})
		} else {
			waiters = append(waiters, k)
		}
	}
	clear(s.waiters)
	if !s.on {
		h.expelLocked(s)
	}
	return waiters, refused
}

func (h *hub) expelLocked(s *subscription) {
	for c := range s.members {
		delete(c.subs, s)
	}
	clear(s.members)
}

// dropLocked gives a subscription up that cannot be asked for.
func (h *hub) dropLocked(s *subscription, err error) []over {
	var ended []over
	h.expelLocked(s)
	for k := range s.waiters {
		h.takeLocked(k)
		ended = append(ended, over{k, err})
	}
	return ended
}

// resubscribeLocked asks a new process for everything that sessions watch or
// wait to watch.
func (h *hub) resubscribeLocked() (failed []over) {
	for _, s := range h.subs {
		if err := h.nextLocked(s); err != nil {
			h.log.Warn("subscription not renewed", "err", err)
			failed = append(failed, h.dropLocked(s, err)...)
		}
	}
	return failed
}

// updated tells the sessions that watch the resource, or one that it lies
// under (MCP 2025-11-25, resources: "might be a sub-resource").
func (h *hub) updated(msg *wire.Message) {
	uri, _ := wire.Unquote(msg.Bytes(msg.P.URI))
	h.mu.Lock()
	seen := make(map[*conn]bool)
	var all []homes
	for i := range min(len(uri), maxURI) + 1 {
		// What is watched is the resource itself, or a path above it.
		if i < len(uri) && uri[i] != '/' && (i == 0 || uri[i-1] != '/') {
			continue
		}
		s := h.subs[string(uri[:i])]
		if s == nil {
			continue
		}
		for c := range s.members {
			if !seen[c] {
				seen[c] = true
				all = append(all, c.homesLocked(false))
			}
		}
	}
	h.mu.Unlock()
	if len(all) == 0 {
		h.srv.drops.add(DropNotSubscribed, mcp.NotifResourcesUpdated.String())
		return
	}
	h.deliverAll(all, upstream.Frame{Data: msg.Raw, Method: mcp.NotifResourcesUpdated})
}
