package process

import (
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// maxSubscriptions bounds the resources that one session may watch.
const maxSubscriptions = 1024

// subscription is one resource that sessions of a shared process watch. The
// process is asked once for all; the last session that leaves ends it.
// Guarded by hub.mu.
type subscription struct {
	uri     string
	state   subState
	members map[*conn]struct{}
	waiters []*call // resources/subscribe calls that wait for the process's answer
}

type subState uint8

const (
	subscribing subState = iota
	subscribed
	unsubscribing
)

// startSubscription counts a session in or out.
func (c *conn) startSubscription(k *call, m *wire.Message) (upstream.Call, error) {
	uri, ok := wire.Unquote(m.Bytes(m.P.URI))
	if !ok {
		k.fail(upstream.Errorf(mcp.CodeInvalidParams, "uri", "params.uri is missing or no string"))
		return k, nil
	}
	h := c.hub
	h.mu.Lock()
	var begin *link
	var answer bool
	var err error
	switch {
	case c.ended:
		err = upstream.ErrClosed
	case k.method == mcp.ResourcesSubscribe:
		begin, answer, err = c.subscribeLocked(k, string(uri))
	default:
		answer, err = c.unsubscribeLocked(k, string(uri))
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
	if s != nil && s.state == subscribed {
		if c.joinLocked(s) {
			return nil, true, nil
		}
		return nil, false, errTooManySubs
	}
	if len(c.subs) >= maxSubscriptions {
		return nil, false, errTooManySubs
	}
	if begin, err = h.beginLocked(); err != nil {
		return nil, false, err
	}
	if s == nil {
		s = &subscription{uri: uri, members: make(map[*conn]struct{})}
		h.subs[uri] = s
		if h.link.up {
			if err := h.askSubscribeLocked(s); err != nil {
				delete(h.subs, uri)
				return nil, false, err
			}
		} // else resubscribeLocked asks when the process is up
	}
	k.setDeadlines(&h.srv.cfg)
	c.calls[k.n] = k
	s.waiters = append(s.waiters, k)
	h.armLocked(k)
	return begin, false, nil
}

var errTooManySubs = upstream.Errorf(mcp.CodeServer, "subscription_limit", "this session watches as many resources as one session may (%d)", maxSubscriptions)

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

// unsubscribeLocked: a session that is not in, or not the last, needs no word
// to the process. The last one waits for its answer.
func (c *conn) unsubscribeLocked(k *call, uri string) (answer bool, err error) {
	s := c.hub.subs[uri]
	if s == nil {
		return true, nil
	}
	if _, in := s.members[c]; !in {
		return true, nil
	}
	c.hub.leaveLocked(c, s)
	return true, nil
}

// leaveLocked takes a session out; the last one ends the subscription.
func (h *hub) leaveLocked(c *conn, s *subscription) {
	delete(s.members, c)
	delete(c.subs, s)
	if len(s.members) > 0 || s.state != subscribed {
		return
	}
	s.state = unsubscribing
	k := h.ownCall(mcp.ResourcesUnsubscribe, func(_ wire.Message, err error) { h.unsubscribed(s) })
	if !h.askLocked(k, s.uri) {
		delete(h.subs, s.uri)
	}
}

func (c *conn) unsubscribeAllLocked() {
	for s := range c.subs {
		c.hub.leaveLocked(c, s)
	}
}

func (h *hub) askSubscribeLocked(s *subscription) error {
	s.state = subscribing
	k := h.ownCall(mcp.ResourcesSubscribe, func(msg wire.Message, err error) { h.subscribed(s, &msg, err) })
	if !h.askLocked(k, s.uri) {
		return upstream.ErrBusy
	}
	return nil
}

// askLocked sends a call of Signalbox itself about one resource.
func (h *hub) askLocked(k *call, uri string) bool {
	if h.link == nil || !h.link.up {
		return false
	}
	k.line = h.ownRequest(k, k.method.String(), `{"uri":`+string(wire.AppendQuote(nil, uri))+`}`)
	k.setDeadlines(&h.srv.cfg)
	if err := h.sendLocked(k); err != nil {
		return false
	}
	h.armLocked(k)
	return true
}

// subscribed takes the process's answer: only now is anything recorded.
func (h *hub) subscribed(s *subscription, msg *wire.Message, err error) {
	h.mu.Lock()
	var waiters []*call
	var refused []over
	for _, k := range s.waiters {
		if !h.takeLocked(k) {
			continue
		}
		waiters = append(waiters, k)
		if err == nil && msg.Result.Present() && !k.conn.joinLocked(s) {
			refused = append(refused, over{k, errTooManySubs})
			waiters = waiters[:len(waiters)-1]
		}
	}
	s.waiters = nil
	ok := err == nil && msg.Result.Present()
	switch {
	case !ok:
		for c := range s.members { // of an earlier life of the process
			delete(c.subs, s)
		}
		delete(h.subs, s.uri)
	case len(s.members) == 0: // all who asked have gone
		s.state = subscribed
		h.leaveLocked(nil, s)
	default:
		s.state = subscribed
	}
	h.mu.Unlock()
	failAll(refused)
	for _, k := range waiters {
		switch {
		case ok:
			k.answer("{}")
		case err != nil:
			k.fail(err)
		default: // the server's own error, for each of them under its own id
			copied := *msg
			copied.Raw = append([]byte(nil), msg.Raw...)
			k.reply(&copied)
		}
	}
}

// unsubscribed: whoever came while the process was being told begins anew.
func (h *hub) unsubscribed(s *subscription) {
	h.mu.Lock()
	var ended []over
	if len(s.waiters) == 0 {
		delete(h.subs, s.uri)
	} else if err := h.askSubscribeLocked(s); err != nil && h.link != nil && h.link.up {
		delete(h.subs, s.uri)
		for _, k := range s.waiters {
			if h.takeLocked(k) {
				ended = append(ended, over{k, err})
			}
		}
	}
	h.mu.Unlock()
	failAll(ended)
}

// resubscribeLocked asks a new process for everything that sessions watch or
// wait to watch.
func (h *hub) resubscribeLocked() {
	for uri, s := range h.subs {
		if len(s.members) == 0 && len(s.waiters) == 0 {
			delete(h.subs, uri)
			continue
		}
		if err := h.askSubscribeLocked(s); err != nil {
			h.log.Warn("subscription not renewed", "err", err)
		}
	}
}

// updated tells the sessions that watch the resource, or one that it lies
// under.
func (h *hub) updated(msg *wire.Message) {
	raw, ok := wire.Unquote(msg.Bytes(msg.P.URI))
	uri := string(raw)
	h.mu.Lock()
	seen := make(map[*conn]bool)
	var all []homes
	for _, s := range h.subs {
		if !ok || !covers(s.uri, uri) {
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

// covers tells whether an update of uri concerns who watches watched: the same
// resource or one below it (MCP 2025-11-25, resources: "might be a sub-resource").
func covers(watched, uri string) bool {
	rest, ok := strings.CutPrefix(uri, watched)
	return ok && (rest == "" || strings.HasSuffix(watched, "/") || strings.HasPrefix(rest, "/"))
}
