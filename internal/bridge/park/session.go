package park

import (
	"bytes"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
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
	listening bool            // an upstream.Listener is on
}

// offers are the optional things of a server that matter here.
type offers struct {
	logging, tools, prompts, resources, subscribe bool
	info                                          []byte // serverInfo; nil for none
}

func newSession(g *group, p *pool, c *client, exclusive bool) *session {
	return &session{
		srv: g.srv, group: g, pool: p, client: c, exclusive: exclusive,
		calls: make(map[*call]struct{}), listens: make(map[*listen]struct{}), subs: make(map[string]*sub),
		out: line{srv: g.srv},
	}
}

// open begins the session at the server.
func (ses *session) open(c *client) {
	conn, err := ses.connect(c)
	ses.srv.locked(func(l *later) {
		switch {
		case err != nil:
			ses.endLocked(err, l)
		case ses.phase == over:
			l.do(func() { conn.End(ses.reason) })
		default:
			ses.conn = conn
			ses.greetLocked(l)
		}
	})
}

func (ses *session) connect(c *client) (upstream.Conn, error) {
	info := c.info
	if info == nil {
		info = wire.AppendQuote([]byte(`{"name":"signalbox","version":`), ses.srv.cfg.Version)
		info = append(info, '}')
	}
	text := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + string(mcp.NewestHandshake) +
		`","capabilities":` + ses.pool.can.text + `,"clientInfo":`
	req, err := c.request(append(append([]byte(text), info...), "}}"...))
	if err != nil {
		return nil, err
	}
	return ses.srv.cfg.Server.Open(req, &welcome{ses: ses}, events{ses})
}

// welcome is the sink of initialize.
type welcome struct {
	ses    *session
	answer []byte // by whoever delivers
}

func (w *welcome) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation != upstream.Reply {
		return events{w.ses}.Deliver(f)
	}
	w.answer = f.Data
	return upstream.Taken
}

func (w *welcome) End(err error) {
	var result []byte
	if err == nil {
		result, err = readWelcome(w.answer)
	}
	w.ses.srv.locked(func(l *later) {
		if err != nil {
			w.ses.endLocked(err, l)
			return
		}
		w.ses.init = result
		w.ses.greetLocked(l)
	})
}

// readWelcome returns the InitializeResult in the server's answer.
func readWelcome(answer []byte) ([]byte, error) {
	msg, err := wire.Parse(answer)
	if err != nil {
		return nil, upstream.Errorf(mcp.CodeInternal, "start_failed", "the server's answer to initialize is no JSON-RPC response: %v", err)
	}
	if msg.Error.Present() {
		text := msg.Bytes(msg.Error)
		return nil, upstream.Errorf(mcp.CodeInternal, "start_failed", "the server refused initialize: %s", text[:min(len(text), 512)])
	}
	result := msg.Bytes(msg.Result)
	at, _ := wire.Lookup(result, "protocolVersion")
	if v, _ := wire.Unquote(at.Of(result)); !mcp.Revision(v).Handshake() {
		return nil, upstream.Errorf(mcp.CodeInternal, "start_failed", "the server answered initialize with revision %.64q, which is none of the handshake era", v)
	}
	return result, nil
}

// greetLocked: when the server has answered and the connection is here, it is
// told that calls begin.
func (ses *session) greetLocked(l *later) {
	if ses.init == nil || ses.conn == nil || ses.phase != opening {
		return
	}
	ses.offers = readOffers(ses.init)
	ses.group.logging = absent
	if ses.offers.logging {
		ses.group.logging = offered
	}
	conn := ses.conn
	ses.out.put(func() {
		req, err := ses.client.request([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		if err == nil {
			err = conn.Send(req)
		}
		ses.srv.locked(func(l *later) {
			if err != nil {
				ses.endLocked(err, l)
				return
			}
			ses.readyLocked(l)
		})
	}, true, l)
}

func readOffers(init []byte) offers {
	is := func(path ...string) bool {
		v, ok := wire.Lookup(init, path...)
		return ok && string(v.Of(init)) == "true"
	}
	o := offers{
		tools:     is("capabilities", "tools", "listChanged"),
		prompts:   is("capabilities", "prompts", "listChanged"),
		resources: is("capabilities", "resources", "listChanged"),
		subscribe: is("capabilities", "resources", "subscribe"),
	}
	v, ok := wire.Lookup(init, "capabilities", "logging")
	o.logging = ok && string(v.Of(init)) != "null"
	if v, ok := wire.Lookup(init, "serverInfo"); ok && init[v.Start] == '{' {
		o.info = bytes.Clone(v.Of(init))
	}
	return o
}

func (ses *session) readyLocked(l *later) {
	if ses.phase != opening {
		return
	}
	ses.phase, ses.readyAt = ready, time.Now()
	if ses.exclusive && !ses.pool.can.asks() && !ses.offers.logging {
		ses.exclusive = false // it was for log messages, of which there are none
	}
	ses.srv.cfg.Log.Debug("session at the server is open for clients of the per-request era")
	queue := ses.queue
	ses.queue = nil
	for _, k := range queue {
		k.goLocked(l)
	}
	for n := range ses.listens {
		n.joinLocked(l)
	}
	ses.restLocked(l)
	ses.group.dispatchLocked(l)
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

// answerLocked sends a response to a request of the server.
func (ses *session) answerLocked(c *client, raw []byte, l *later) {
	conn := ses.conn
	if ses.phase == over || conn == nil {
		return
	}
	ses.out.put(func() {
		req, err := c.request(raw)
		if err == nil {
			err = conn.Send(req)
		}
		if err == nil {
			return
		}
		ses.srv.cfg.Log.Warn("answer to the server not sent", "err", err)
		// The server would wait for ever, and with it the one call that it is about.
		ses.srv.locked(func(l *later) {
			if ses.exclusive {
				ses.endLocked(err, l)
			}
		})
	}, true, l)
}

// events is the sink for what the server sends unasked.
type events struct{ ses *session }

func (e events) Deliver(f upstream.Frame) upstream.Verdict {
	msg, err := wire.Parse(f.Data)
	if err != nil {
		return upstream.NoTaker
	}
	e.ses.srv.locked(func(l *later) { e.ses.unaskedLocked(&msg, l) })
	return upstream.Taken
}

func (e events) End(reason error) {
	if reason == nil {
		reason = upstream.ErrClosed
	}
	e.ses.srv.locked(func(l *later) {
		if e.ses.phase != over {
			e.ses.srv.cfg.Log.Info("session at the server is over", "err", reason)
		}
		e.ses.endLocked(reason, l)
	})
}

// unaskedLocked takes what belongs to no call.
func (ses *session) unaskedLocked(m *wire.Message, l *later) {
	method := mcp.MethodOf(m.MethodName())
	switch {
	case m.Kind == wire.Request:
		ses.outsideLocked(method, m, l)
	case m.Kind == wire.Notification && (method.IsListChanged() || method == mcp.NotifResourcesUpdated):
		ses.group.changedLocked(method, m, l)
	}
}

// outsideLocked answers what the server asks when no client can be asked.
func (ses *session) outsideLocked(method mcp.Method, m *wire.Message, l *later) {
	id := m.Bytes(m.ID)
	var text []byte
	q := newQuestion(m)
	switch {
	case method == mcp.Ping:
		ses.answerLocked(ses.client, wire.AppendResult(nil, id, []byte("{}")), l)
		return
	case q != nil && !ses.pool.can.has(q.needs):
		text = upstream.ErrorReply(id, errUndeclared(q.needs))
	case method == mcp.RootsList && ses.pool.roots != nil:
		text = wire.AppendResult(nil, id, ses.pool.roots)
	case q == nil:
		text = upstream.ErrorReply(id, errNoCall)
	default:
		text = refusal(method, id, errNoCall)
	}
	ses.srv.count.questions(unrelated, 1)
	ses.answerLocked(ses.client, text, l)
}
