package policy

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Rules say what of a server one session may use. The zero Rules allow all. They
// are not changed once a session has them.
type Rules struct {
	Tools     *Filter // by name
	Prompts   *Filter // by name
	Resources *Filter // by URI, and templates by what they expand to
	// Shared: all sessions of the server have these rules, so that an answer which
	// the server calls public (MCP 2026-07-28, caching, "cacheScope") may stay so.
	// Without it, what the rules have a say in becomes private: a cache on the way
	// would show one user what another may see.
	Shared bool
	// NoTasks: the tasks of 2025-11-25 are not offered. The server takes all sessions
	// for one and the same user's, and would show each of them the tasks of all
	// (2025-11-25, basic/utilities/tasks, "Task Isolation and Access Control").
	NoTasks bool
}

func (r *Rules) empty() bool {
	return r == nil || r.Tools == nil && r.Prompts == nil && r.Resources == nil && !r.NoTasks
}

// Config of a wrapped server. All fields but Header are required.
type Config struct {
	Name string // of the server, for the metrics
	// Rules are asked for each message of a client, by several goroutines at
	// once, and must be quick; nil allows all. Rules that are Shared hold for the
	// whole session. An error refuses the message before the server hears of it.
	Rules func(upstream.Request) (*Rules, error)
	// Header, if not nil, is what the server may be told of who sends a message,
	// instead of the headers of its HTTP request.
	Header  func(upstream.Request) http.Header
	Log     *slog.Logger // names the server already
	Metrics *Metrics
}

// Wrap returns server with the rules enforced. A session without rules gets the
// server's own Conn. The result is an upstream.Attacher if server is one.
func Wrap(server upstream.Server, cfg Config) upstream.Server {
	w := &wrapped{Server: server, rules: cfg.Rules, header: cfg.Header, refusals: newRefusals(&cfg)}
	if a, ok := server.(upstream.Attacher); ok {
		return &attacher{w, a}
	}
	return w
}

type wrapped struct {
	upstream.Server
	rules    func(upstream.Request) (*Rules, error)
	header   func(upstream.Request) http.Header // nil: as they came
	refusals *refusals
}

func (w *wrapped) setHeader(req *upstream.Request) {
	if w.header != nil {
		req.Header = w.header(*req)
	}
}

// Open begins a session under the rules for it.
func (w *wrapped) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	rules, err := w.rules(init)
	if err != nil {
		return nil, err
	}
	if w.header == nil && (rules == nil || rules.Shared && rules.empty()) {
		return w.Server.Open(init, reply, events)
	}
	if rules == nil {
		rules = &Rules{Shared: true}
	}
	w.setHeader(&init)
	c := &conn{of: w}
	g := &guard{rules: rules, refusals: w.refusals}
	c.guard.Store(g)
	inner, err := w.Server.Open(init, g.watch(&init, reply), c.watchEvents(events))
	if err != nil {
		return nil, err
	}
	c.Conn = inner
	return withOptions(c), nil
}

// Ask makes wrapped an upstream.Asker, of use where the server is one. The rules are
// those for this one request.
func (w *wrapped) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	server, ok := w.Server.(upstream.Asker)
	if !ok {
		return nil, upstream.ErrNoAsker
	}
	rules, err := w.rules(req)
	if err != nil {
		return nil, err
	}
	if rules == nil {
		rules = &Rules{Shared: true}
	}
	g := &guard{rules: rules, refusals: w.refusals}
	if err := g.refuse(&req); err != nil {
		return nil, err
	}
	w.setHeader(&req)
	return server.Ask(req, g.watch(&req, sink))
}

// attacher is wrapped for a server whose sessions can move.
type attacher struct {
	*wrapped
	inner upstream.Attacher
}

// Attach goes on with a session. Until its client has sent something it is under
// the rules of nobody, which show nothing.
func (a *attacher) Attach(st upstream.State, events upstream.Sink) (upstream.Conn, error) {
	c := &conn{of: a.wrapped}
	c.guard.Store(&guard{rules: nothing, refusals: a.refusals})
	inner, err := a.inner.Attach(st, c.watchEvents(events))
	if err != nil {
		return nil, err
	}
	c.Conn = inner
	return withOptions(c), nil
}

// nothing are rules that allow nothing.
var nothing = func() *Rules {
	none := NewFilter([]string{}, nil)
	return &Rules{Tools: none, Prompts: none, Resources: none}
}()

// conn is a session under rules. All methods may be called at once.
type conn struct {
	upstream.Conn
	of    *wrapped
	guard atomic.Pointer[guard] // of the client's last message
}

// guardFor is the guard with the rules for one message.
func (c *conn) guardFor(req *upstream.Request) (*guard, error) {
	now := c.guard.Load()
	if now.rules.Shared {
		return now, nil
	}
	rules, err := c.of.rules(*req)
	switch {
	case err != nil:
		return nil, err
	case rules == nil:
		rules = &Rules{}
	}
	if rules == now.rules {
		return now, nil
	}
	next := &guard{rules: rules, refusals: c.of.refusals}
	c.guard.Store(next)
	return next, nil
}

// withOptions gives c the optional methods that the inner Conn has, and no
// others.
func withOptions(c *conn) upstream.Conn {
	listener, listens := c.Conn.(upstream.Listener)
	movable, moves := c.Conn.(upstream.Movable)
	switch {
	case listens && moves:
		return &struct {
			*conn
			upstream.Listener
			upstream.Movable
		}{c, listener, movable}
	case listens:
		return &struct {
			*conn
			upstream.Listener
		}{c, listener}
	case moves:
		return &struct {
			*conn
			upstream.Movable
		}{c, movable}
	}
	return c
}

// Start sends a request, or returns the *upstream.Error of one that the rules
// refuse.
func (c *conn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	g, err := c.guardFor(&req)
	if err == nil {
		err = g.refuse(&req)
	}
	if err != nil {
		return nil, err
	}
	c.of.setHeader(&req)
	return c.Conn.Start(req, g.watch(&req, sink))
}

// Send passes a notification or a response. A request without an id is a
// notification, and some servers would still run it: it is dropped where the
// rules refuse the request, without an error, for none is owed (JSON-RPC 2.0
// section 4.1).
func (c *conn) Send(req upstream.Request) error {
	g, err := c.guardFor(&req)
	if err != nil {
		return err
	}
	if g.refuse(&req) != nil {
		return nil
	}
	c.of.setHeader(&req)
	return c.Conn.Send(req)
}
