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

// A session under a listen that is lost is replaced after listenPause, then twice
// that, up to listenPauseMax. If that fails for listenPatience, the listen ends. A
// session that lived for listenStable is no failure.
const (
	listenPause    = 500 * time.Millisecond
	listenPauseMax = 30 * time.Second
	listenPatience = 2 * time.Minute
	listenStable   = time.Minute
)

// kinds are the lists whose changes a listen wants, or gets.
type kinds struct{ tools, prompts, resources bool }

func (k kinds) has(m mcp.Method) bool {
	switch m {
	case mcp.NotifToolsListChanged:
		return k.tools
	case mcp.NotifPromptsListChanged:
		return k.prompts
	case mcp.NotifResourcesListChanged:
		return k.resources
	}
	return false
}

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

// change is one thing that a client is told of.
type change struct {
	method mcp.Method
	uri    string // of notifications/resources/updated
	token  []byte // the same, as the server wrote it
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
			err = upstream.ErrShutdown
			return
		}
		n.group = s.groupLocked(c)
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
	ses.listenLocked(true, l)
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

// missedLocked tells the client of everything that may have changed while there
// was no session.
func (n *listen) missedLocked(l *later) {
	for _, m := range []mcp.Method{mcp.NotifToolsListChanged, mcp.NotifPromptsListChanged, mcp.NotifResourcesListChanged} {
		n.tellLocked(change{method: m}, l)
	}
	for _, r := range n.uris {
		n.tellLocked(change{mcp.NotifResourcesUpdated, r.uri, r.token}, l)
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

// agreed are the members of the acknowledgement's notifications.
func (n *listen) agreed() []byte {
	var text []byte
	member := func(name string, value []byte) {
		if len(text) > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), name...), `":`...)
		text = append(text, value...)
	}
	for _, k := range []struct {
		name string
		on   bool
	}{{"toolsListChanged", n.gets.tools}, {"promptsListChanged", n.gets.prompts}, {"resourcesListChanged", n.gets.resources}} {
		if k.on {
			member(k.name, []byte("true"))
		}
	}
	if len(n.watches) > 0 {
		list := []byte{'['}
		for _, r := range n.uris {
			if _, ok := n.watches[r.uri]; !ok {
				continue
			}
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, r.token...)
		}
		member("resourceSubscriptions", append(list, ']'))
	}
	return text
}

// changedLocked tells the group's listens of a change that one of its sessions saw.
func (g *group) changedLocked(method mcp.Method, m *wire.Message, l *later) {
	c := change{method: method}
	if method == mcp.NotifResourcesUpdated {
		c.token = m.Bytes(m.P.URI)
		uri, ok := wire.Unquote(c.token)
		if !ok || len(uri) > maxURI {
			return
		}
		c.uri = string(uri)
	}
	for n := range g.listens {
		n.tellLocked(c, l)
	}
}

// tellLocked passes a change to the client if it asked for it; before the
// acknowledgement it waits for that.
func (n *listen) tellLocked(c change, l *later) {
	switch {
	case n.over:
		return
	case !n.acked:
		for _, e := range n.early {
			if e.method == c.method && e.uri == c.uri {
				return
			}
		}
		if len(n.early) < maxURIs {
			n.early = append(n.early, c)
		}
		return
	case c.method == mcp.NotifResourcesUpdated && !covers(n.watches, c.uri),
		c.method != mcp.NotifResourcesUpdated && !n.gets.has(c.method):
		return
	}
	text := []byte(`{"jsonrpc":"2.0","method":"` + c.method.String() + `","params":{`)
	if c.token != nil {
		text = append(append(append(text, `"uri":`...), c.token...), ',')
	}
	text = append(append(append(text, `"_meta":{"`+mcp.MetaSubscription+`":`...), n.id...), "}}}"...)
	n.sendLocked(c.method, text, l)
}

// covers tells whether uri is watched, or lies under one that is (MCP 2025-11-25,
// resources: "might be a sub-resource").
func covers(watched map[string]struct{}, uri string) bool {
	if _, ok := watched[uri]; ok {
		return true
	}
	for i := range len(uri) {
		if i == 0 || uri[i] != '/' && uri[i-1] != '/' {
			continue
		}
		if _, ok := watched[uri[:i]]; ok {
			return true
		}
	}
	return false
}

func (n *listen) sendLocked(method mcp.Method, data []byte, l *later) {
	n.out.put(func() {
		n.sink.Deliver(upstream.Frame{Data: data, Method: method, Relation: upstream.Own})
	}, false, l)
}

// lostLocked: the session is over, and with it what it watched.
func (n *listen) lostLocked(reason error, l *later) {
	if n.over {
		return
	}
	lived := n.ses.phase == over && !n.ses.readyAt.IsZero() && time.Since(n.ses.readyAt) >= listenStable
	n.ses, n.pending, n.good = nil, 0, nil
	if n.lostAt.IsZero() || lived {
		n.lostAt, n.fails = time.Now(), 0
	}
	if !n.acked || time.Since(n.lostAt) >= listenPatience {
		n.endLocked(reason, l)
		return
	}
	pause := min(listenPause<<min(n.fails, 10), listenPauseMax)
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
		n.out.put(func() { n.sink.End(reason) }, false, l)
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
		if len(ses.listens) == 0 {
			ses.listenLocked(false, l)
		}
		ses.restLocked(l)
	}
	n.group.dispatchLocked(l)
}
