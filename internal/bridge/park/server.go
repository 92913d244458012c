package park

import (
	"encoding/binary"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Config of the bridge to one server. Name, Server and Ring are required.
type Config struct {
	Name   string          // of the server
	Server upstream.Server // of the handshake era; not closed by this package
	// Shared: the server has one process for all, and can ask nobody anything; it is
	// offered no capability of a client.
	Shared bool
	// Alone, if not nil, tells that a request has a session of its own, which ends
	// with it: nobody can be told from others.
	Alone func(upstream.Request) bool
	// Scope, if not nil, tells what else than the principal requests must have in
	// common to use one session, such as the values of headers that are passed on.
	Scope func(upstream.Request) string
	Ring  *state.Ring // seals requestState
	// Replica is the name of this process among those that share Ring, "" where
	// there are no others.
	Replica string
	// Idle is how long a session is kept that nobody uses; 0: 5 minutes.
	Idle time.Duration
	// Question is how long a parked call waits for its client; 0: 10 minutes.
	Question time.Duration
	// MaxParked bounds the calls that the server has asked something, from the first
	// question to their end; 0: 256. Of one principal: 0: 16.
	MaxParked, MaxParkedPerPrincipal int
	// MaxSessions bounds the sessions of all; 0: 1024. An idle one makes room; without
	// any, who has none yet is refused.
	MaxSessions int
	// MaxSessionsPerPrincipal bounds the sessions of one principal and Scope; 0: 8.
	MaxSessionsPerPrincipal int
	Version                 string       // of Signalbox, for clientInfo where the client gave none
	Log                     *slog.Logger // names the server already; nil: no log
	Metrics                 *Metrics     // nil: counted nowhere
}

// maxWaiting bounds the calls of one group that wait for a session.
const maxWaiting = 64

var _ upstream.Asker = (*Server)(nil)

// Server is the bridge to one server. It implements upstream.Asker.
type Server struct {
	cfg   Config
	count counters

	mu       sync.Mutex
	closed   bool
	groups   map[string]*group   // by groupKey, those that have something
	loners   map[*group]struct{} // of one request each
	parked   map[parkID]*call    // those that wait for their client
	opened   int                 // sessions
	pinned   int                 // calls that were asked something and are not over
	pinnedBy map[string]int      // the same, by principal
}

// New makes the bridge; nothing is opened before the first Ask.
func New(cfg Config) *Server {
	orInt := func(v *int, or int) {
		if *v == 0 {
			*v = or
		}
	}
	orTime := func(v *time.Duration, or time.Duration) {
		if *v == 0 {
			*v = or
		}
	}
	orTime(&cfg.Idle, 5*time.Minute)
	orTime(&cfg.Question, 10*time.Minute)
	orInt(&cfg.MaxParked, 256)
	orInt(&cfg.MaxParkedPerPrincipal, 16)
	orInt(&cfg.MaxSessions, 1024)
	orInt(&cfg.MaxSessionsPerPrincipal, 8)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Metrics == nil {
		cfg.Metrics = NewMetrics()
	}
	return &Server{
		cfg:      cfg,
		count:    cfg.Metrics.of(cfg.Name),
		groups:   make(map[string]*group),
		loners:   make(map[*group]struct{}),
		parked:   make(map[parkID]*call),
		pinnedBy: make(map[string]int),
	}
}

// Ask sends one request of a client. Besides what upstream.Asker says: the
// request is well-formed, its _meta and headers have been checked. An error is an
// *upstream.Error with a code that the per-request era allows, or an
// *upstream.Elsewhere.
func (s *Server) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	if err := refuse(&req); err != nil {
		return nil, err
	}
	c, err := s.readClient(&req)
	if err != nil {
		return nil, err
	}
	switch p := &req.Msg.P; {
	case req.Method == mcp.SubscriptionsListen:
		return s.listen(c, req, sink)
	case p.RequestState.Present() || p.InputResponses.Present():
		return s.retry(c, req, sink)
	}
	return s.begin(c, req, sink)
}

// refuse is the error for what does not exist in the per-request era, or crosses
// no eras.
func refuse(req *upstream.Request) error {
	switch req.Method {
	case mcp.TasksList, mcp.TasksGet, mcp.TasksResult, mcp.TasksCancel, mcp.TasksUpdate:
		return upstream.Errorf(mcp.CodeMethodNotFound, "tasks_era",
			"the server speaks a revision before 2026-07-28, and its tasks are not offered to clients of this one: call the tool without a task")
	case mcp.Initialize, mcp.Ping, mcp.LoggingSetLevel, mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe,
		mcp.SamplingCreateMessage, mcp.ElicitationCreate, mcp.RootsList:
		return upstream.Errorf(mcp.CodeMethodNotFound, "method_era", "%s is no request of a client of revision 2026-07-28", req.Method)
	}
	if req.Method != mcp.Other && req.Msg.P.Task.Present() {
		return upstream.Errorf(mcp.CodeInvalidParams, "tasks_era",
			"the server speaks a revision before 2026-07-28, and its tasks are not offered to clients of this one: leave params.task out")
	}
	return nil
}

var errShutdown = errorOf(upstream.ErrShutdown)

// begin lets a request wait for its session.
func (s *Server) begin(c *client, req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	k := newCall(s, c, req)
	ex := newExchange(k, c, &req, sink)
	k.ex = ex
	var err error
	s.locked(func(l *later) {
		if s.closed {
			err = errShutdown
			return
		}
		if k.group, err = s.groupLocked(c, l); err == nil {
			err = k.group.enterLocked(k, l)
		}
	})
	if err != nil {
		return nil, err
	}
	return ex, nil
}

// groupLocked is the group that a request belongs to. One that has no session yet
// needs room for it: what clients can tell apart by, they can make up.
func (s *Server) groupLocked(c *client, l *later) (*group, error) {
	g := s.groups[c.group]
	if c.alone {
		g = nil
	}
	if (g == nil || len(g.sessions) == 0) && s.opened >= s.cfg.MaxSessions && !s.makeRoomLocked(l) {
		return nil, errManySessions
	}
	switch {
	case g != nil:
	case c.alone:
		g = newGroup(s, "")
		s.loners[g] = struct{}{}
	default:
		g = newGroup(s, c.group)
		s.groups[c.group] = g
	}
	return g, nil
}

var errManySessions = upstream.Errorf(mcp.CodeInternal, "busy",
	"too many sessions at the server are open for clients of revision 2026-07-28; try again later")

// makeRoomLocked ends a session that nobody uses; false: there is none.
func (s *Server) makeRoomLocked(l *later) bool {
	for _, g := range s.groups {
		for _, ses := range g.sessions {
			if ses.phase == ready && len(ses.calls)+len(ses.listens)+len(ses.queue) == 0 {
				ses.endLocked(errRoom, l)
				return true
			}
		}
	}
	return false
}

// groupKey joins what requests of one group have in common, unambiguously.
func groupKey(who upstream.Principal, scope string) string {
	if who == nil {
		return "n" + scope
	}
	key := who.Key()
	return string(append(binary.AppendUvarint([]byte{'p'}, uint64(len(key))), key...)) + scope
}

// Close ends everything: calls and sessions with upstream.ErrShutdown, each
// listen with its result. It waits for nothing.
func (s *Server) Close() {
	s.locked(func(l *later) {
		s.closed = true
		for _, k := range s.parked {
			k.unparkLocked()
			k.over = true
			s.count.questions(abandoned, len(k.asks))
			k.asks = nil
			k.unpinLocked()
		}
		for _, g := range s.groups {
			g.closeLocked(l)
		}
		for g := range s.loners {
			g.closeLocked(l)
		}
	})
}

// later is what is done when the lock is free again, in this order.
type later struct{ todo []func() }

func (l *later) do(f func()) { l.todo = append(l.todo, f) }

// locked runs f under the lock, and then what f left for later.
func (s *Server) locked(f func(*later)) {
	var l later
	s.mu.Lock()
	f(&l)
	s.mu.Unlock()
	for _, do := range l.todo {
		do()
	}
}

// line does one thing after the other, without the lock. It is guarded by it.
type line struct {
	srv  *Server
	todo []func()
	busy bool // somebody is at it
}

// put has f done after everything that was put before. async: in a goroutine,
// for f may block.
func (q *line) put(f func(), async bool, l *later) {
	q.todo = append(q.todo, f)
	if q.busy {
		return
	}
	q.busy = true
	if async {
		l.do(func() { go q.run() })
	} else {
		l.do(q.run)
	}
}

func (q *line) run() {
	for {
		q.srv.mu.Lock()
		if len(q.todo) == 0 {
			q.todo, q.busy = nil, false
			q.srv.mu.Unlock()
			return
		}
		f := q.todo[0]
		q.todo = q.todo[1:]
		q.srv.mu.Unlock()
		f()
	}
}
