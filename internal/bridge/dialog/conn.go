package dialog

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// conn is one session. It implements upstream.Conn. Neither the server nor a sink is
// called under its mutex.
type conn struct {
	// static
	srv    *Server
	said   profile
	events upstream.Sink // what belongs to no call

	mu        sync.Mutex
	ended     error // why; nil: it has not
	calls     map[*call]struct{}
	entered   uint64               // calls so far
	questions map[string]*question // open, by the value of their ids
	level     []byte               // raw, as of logging/setLevel; nil: none, and no log messages
	wrapped   map[string]struct{}  // tools whose outputSchema the client saw wrapped
	offers    offers               // as the server said to server/discover
	listening listening
}

// origin is who a request of Signalbox itself is sent for.
type origin struct {
	principal upstream.Principal
	header    http.Header
	span      *trace.Span
}

// originOf leaves out what a client may have sent under the names of headers that
// repeat arguments: those are made from the body that goes to the server (2026-07-28,
// streamable-http, "Client Behavior").
func originOf(req *upstream.Request) origin {
	isParam := func(name string, _ []string) bool { return strings.HasPrefix(name, mcp.HeaderParamPrefix) }
	header := req.Header
	for name := range header {
		if isParam(name, nil) {
			header = header.Clone()
			maps.DeleteFunc(header, isParam)
			break
		}
	}
	return origin{req.Principal, header, req.Span}
}

func newConn(s *Server, init *upstream.Request, events upstream.Sink) *conn {
	return &conn{
		srv: s, events: events, said: readProfile(&init.Msg, s.cfg.Version),
		calls: make(map[*call]struct{}), questions: make(map[string]*question),
		listening: listening{uris: make(map[string]struct{}), from: originOf(init)},
	}
}

// Start sends a request, or answers it.
func (c *conn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	k := newCall(c, &req, sink)
	switch req.Method {
	case mcp.Initialize:
		return nil, upstream.Errorf(mcp.CodeInvalidRequest, "initialized", "the session has been initialized")
	case mcp.Ping:
		return k, k.local(nil)
	case mcp.LoggingSetLevel:
		return k, k.local(c.setLevel(&req.Msg))
	case mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe:
		return k, c.watch(k, &req)
	case mcp.TasksList, mcp.TasksGet, mcp.TasksResult, mcp.TasksCancel, mcp.TasksUpdate:
		return nil, upstream.Errorf(mcp.CodeMethodNotFound, "tasks",
			"this session has no tasks: its server is one of MCP 2026-07-28; call tools without params.task")
	case mcp.ServerDiscover, mcp.SubscriptionsListen:
		return nil, upstream.Errorf(mcp.CodeMethodNotFound, "era",
			"%s is a request of MCP 2026-07-28, and this session has negotiated %s", req.Method, c.said.revision)
	case mcp.ToolsCall:
		if req.Msg.P.Task.Present() {
			return nil, upstream.Errorf(mcp.CodeInvalidParams, "tasks",
				"this session has no tasks: its server is one of MCP 2026-07-28; call the tool without params.task")
		}
	}
	if err := k.enter(); err != nil {
		return nil, err
	}
	if err := k.ask(); err != nil {
		if k.take(err) {
			return nil, err
		}
	}
	return k, nil
}

// setLevel remembers what every request says from now on (2025-11-25,
// server/utilities/logging).
func (c *conn) setLevel(m *wire.Message) error {
	raw := m.Bytes(m.P.Level)
	level, _ := wire.Unquote(raw)
	if !mcp.IsLogLevel(string(level)) {
		return upstream.Errorf(mcp.CodeInvalidParams, "level", "params.level is no log level; see MCP %s, logging", c.said.revision)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.level = append([]byte(nil), raw...)
	return nil
}

// Send takes a notification of the client, or its answer to a question.
func (c *conn) Send(req upstream.Request) error {
	switch {
	case req.Msg.Kind == wire.Response:
		return c.respond(&req.Msg)
	case req.Method == mcp.NotifCancelled:
		return c.cancelled(&req.Msg)
	case req.Method == mcp.NotifInitialized:
		return c.initialized(&req)
	}
	// Progress of a question, and that roots have changed: the per-request era
	// has no words for it. Roots are asked for anew in each call.
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closedLocked()
}

func (c *conn) closedLocked() error {
	if c.ended != nil {
		return upstream.ErrClosed
	}
	return nil
}

// cancelled ends the call that the client names. A client that has several
// calls open under one id cannot say which one it means; initialize must not be
// cancelled (2025-11-25, basic/utilities/cancellation).
func (c *conn) cancelled(m *wire.Message) error {
	want, ok := idKey(m.Bytes(m.P.RequestID))
	c.mu.Lock()
	var hit *call
	hits := 0
	for k := range c.calls {
		if key, _ := idKey(k.id); ok && key == want && k.method != mcp.Initialize {
			hit = k
			hits++
		}
	}
	err := c.closedLocked()
	c.mu.Unlock()
	if hits == 1 {
		hit.Cancel(upstream.ErrCancelled)
	}
	return err
}

// End ends the session.
func (c *conn) End(reason error) {
	c.mu.Lock()
	if c.ended != nil {
		c.mu.Unlock()
		return
	}
	if reason == nil {
		reason = upstream.ErrClosed
	}
	c.ended = reason
	calls := slices.SortedFunc(maps.Keys(c.calls), func(a, b *call) int { return cmp.Compare(a.n, b.n) })
	feeds := c.listening.stopLocked()
	c.mu.Unlock()
	c.srv.forget(c)
	for _, k := range calls {
		k.end(reason)
	}
	for _, f := range feeds {
		f.cancel(reason)
	}
	c.events.End(reason)
}

// homes deliver what the client is to see beside the answers to its requests: on
// the stream of the call that it belongs to, else on the session's own, else when that
// has a reader again. false: nobody takes it.
func (c *conn) homes(call upstream.Sink, f upstream.Frame) bool {
	f.Relation = upstream.Loose
	if call != nil && call.Deliver(f) == upstream.Taken {
		return true
	}
	if c.events.Deliver(f) == upstream.Taken {
		return true
	}
	f.Relation = upstream.Waiting
	return c.events.Deliver(f) == upstream.Taken
}
