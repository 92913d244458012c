package park

import (
	"bytes"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Bounds of one listen.
const (
	maxURIs = 1024
	maxURI  = 8 << 10 // bytes
)

// A session under a listen that is lost is replaced at once, then after listenPause,
// then twice that, up to listenPauseMax. If that fails for listenPatience, the listen ends. A
// session that lived for listenStable is no failure.
const (
	listenPause    = 500 * time.Millisecond
	listenPauseMax = 30 * time.Second
	listenPatience = 2 * time.Minute
	listenStable   = time.Minute
)

// listen is a subscriptions/listen request (MCP 2026-07-28,
// basic/patterns/subscriptions). It implements upstream.Call. All but the static
// part is guarded by Server.mu.
type listen struct {
	// static
	srv    *Server
	client *client
	group  *group
	sink   upstream.Sink
	id     []byte // raw, of the request
	want   kinds
	uris   []resource // that it wants

	over    bool
	ses     *session // that its resources are watched through; nil while there is none
	acked   bool
	gets    kinds               // as acknowledged
	watches map[string]struct{} // URIs, as acknowledged
	pending int                 // URIs that the server has not answered for
	good    map[string]struct{} // URIs that it has answered well for, until acked
	early   []change            // until acked
	out     line                // the order in which the client gets things
	timer   *time.Timer         // runs again
	fails   int                 // sessions in a row that were lost soon
	lostAt  time.Time           // when the first of them was
}

type resource struct {
	uri   string
	token []byte // as the client wrote it
}

func (s *Server) listen(c *client, req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	m := &req.Msg
	n := &listen{srv: s, client: c, sink: sink, id: bytes.Clone(m.Bytes(m.ID)), out: line{srv: s}}
	if err := n.read(m); err != nil {
		return nil, err
	}
	var err error
	s.locked(func(l *later) {
		if s.closed {
			err = errShutdown
			return
		}
		if n.group, err = s.groupLocked(c, l); err != nil {
			return
		}
		n.group.listens[n] = struct{}{}
		n.findLocked(l)
	})
	if err != nil {
		return nil, err
	}
	return n, nil
}

func badListen(why string) error {
	return upstream.Errorf(mcp.CodeInvalidParams, "notifications", "params.notifications: %s", why)
}

// read reads what the client wants to be told of.
func (n *listen) read(m *wire.Message) error {
	at, ok := wire.Lookup(m.Bytes(m.Params), "notifications")
	raw := at.Of(m.Bytes(m.Params))
	if !ok || raw[0] != '{' {
		return badListen("missing, or no object")
	}
	found := make([]wire.Span, 4)
	if _, err := wire.Pick(found, raw, 0, "toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions"); err != nil {
		return badListen(err.Error())
	}
	is := func(i int) bool { return string(found[i].Of(raw)) == "true" }
	n.want = kinds{is(0), is(1), is(2)}
	if !found[3].Present() || string(found[3].Of(raw)) == "null" {
		return nil
	}
	if raw[found[3].Start] != '[' {
		return badListen("resourceSubscriptions is no array")
	}
	seen := make(map[string]bool)
	for e := range wire.Elements(raw, found[3].Start) {
		uri, ok := wire.Unquote(e.Of(raw))
		switch {
		case !ok || len(uri) > maxURI:
			return badListen("a URI is no string, or longer than 8 KiB")
		case seen[string(uri)]:
			continue
		case len(n.uris) >= maxURIs:
			return badListen("more than 1024 URIs")
		}
		seen[string(uri)] = true
		n.uris = append(n.uris, resource{string(uri), bytes.Clone(e.Of(raw))})
	}
	return nil
}

// findLocked finds a session for the listen: one of equal capabilities, a new one,
// or any of the group, for what a server tells of its resources does not depend on
// what its client can be asked.
func (n *listen) findLocked(l *later) {
	g := n.group
	var ses *session
	for _, s := range g.sessions {
		if s.pool.can.text == n.client.can.text {
			ses = s
			break
		}
	}
	if ses == nil && len(g.sessions) >= g.most() {
		ses = g.sessions[0]
	}
	if ses == nil {
		ses = g.openLocked(n.client, n.client.can.asks(), l)
	}
	n.ses = ses
	ses.listens[n] = struct{}{}
	ses.restLocked(l)
	if ses.phase == ready {
		n.joinLocked(l)
	}
}

// joinLocked has the session, which is ready, watch what the listen wants.
func (n *listen) joinLocked(l *later) {
	ses := n.ses
	ses.followLocked(l)
	again := n.acked
	if !again {
		o := &ses.offers
		n.gets = kinds{n.want.tools && o.tools, n.want.prompts && o.prompts, n.want.resources && o.resources}
		n.good = make(map[string]struct{})
	}
	n.pending++ // not settled before all are counted
	if ses.offers.subscribe {
		for _, r := range n.uris {
			if _, had := n.watches[r.uri]; again && !had {
				continue
			}
			n.pending++
			ses.watchLocked(n, r.uri, l)
		}
	}
	n.pending--
	n.settleLocked(l)
	if again {
		n.missedLocked(l)
	}
}

// watchedLocked takes the server's answer for one URI.
func (n *listen) watchedLocked(uri string, good bool, l *later) {
	n.pending--
	switch {
	case good && !n.acked:
		n.good[uri] = struct{}{}
	case !good:
		n.srv.cfg.Log.Info("the server does not let a resource be watched")
	}
	n.settleLocked(l)
}

// settleLocked acknowledges the listen when it is known what it gets.
func (n *listen) settleLocked(l *later) {
	if n.acked || n.pending > 0 || n.over {
		return
	}
	n.acked = true
	n.watches, n.good = n.good, nil
	text := append([]byte(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{`), n.agreed()...)
	text = append(append(append(text, `},"_meta":{"`+mcp.MetaSubscription+`":`...), n.id...), "}}}"...)
	n.sendLocked(mcp.NotifSubscriptionsAcknowledged, text, l)
	early := n.early
	n.early = nil
	for _, c := range early {
		n.tellLocked(c, l)
	}
}

// lostLocked: the session is over, and with it what it watched.
func (n *listen) lostLocked(reason error, l *later) {
	if n.over {
		return
	}
	began := n.ses.readyAt
	n.ses, n.pending, n.good = nil, 0, nil
	if n.lostAt.IsZero() || !began.IsZero() && time.Since(began) >= listenStable {
		n.lostAt, n.fails = time.Now(), 0
	}
	if !n.acked && began.IsZero() || time.Since(n.lostAt) >= listenPatience {
		n.endLocked(reason, l)
		return
	}
	var pause time.Duration
	if n.fails > 0 {
		pause = min(listenPause<<min(n.fails-1, 10), listenPauseMax)
	}
	n.fails++
	n.timer = time.AfterFunc(pause, n.again)
}

func (n *listen) again() {
	n.srv.locked(func(l *later) {
		if !n.over && n.ses == nil && !n.srv.closed {
			n.findLocked(l)
		}
	})
}

// endLocked ends the listen without a result.
func (n *listen) endLocked(reason error, l *later) {
	n.leaveLocked(l)
	n.out.put(func() { n.sink.End(errorOf(reason)) }, false, l)
}

// closeLocked ends the listen with its result.
func (n *listen) closeLocked(l *later) {
	if n.over {
		return
	}
	n.leaveLocked(l)
	result := append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaSubscription+`":`), n.id...)
	data := wire.AppendResult(nil, n.id, append(result, "}}"...))
	n.out.put(func() {
		n.sink.Deliver(upstream.Frame{Data: data, Method: mcp.SubscriptionsListen, Relation: upstream.Reply})
		n.sink.End(nil)
	}, false, l)
}

// Cancel ends the listen for a client that went away.
func (n *listen) Cancel(reason error) {
	n.srv.locked(func(l *later) {
		if n.over {
			return
		}
		n.leaveLocked(l)
		n.out.put(func() { n.sink.End(errorOf(reason)) }, false, l)
	})
}

// leaveLocked takes the listen out of its group and session.
func (n *listen) leaveLocked(l *later) {
	n.over = true
	n.early = nil
	delete(n.group.listens, n)
	if n.timer != nil {
		n.timer.Stop()
	}
	if ses := n.ses; ses != nil && ses.phase != over {
		delete(ses.listens, n)
		ses.unwatchLocked(n, l)
		ses.followLocked(l)
		ses.restLocked(l)
	}
	n.group.dispatchLocked(l)
}
