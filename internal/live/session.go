package live

import (
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const legacy = session.LegacySSE

// Session is one client session of this process.
type Session struct {
	// static
	m         *Manager
	backend   *Backend
	id        string
	principal string
	transport session.Transport
	created   time.Time
	lone      bool // it is one request of the per-request era, and nothing else

	mu         sync.Mutex
	who        upstream.Principal // for the audit log; nil until initialize
	conn       upstream.Conn      // nil until the server was asked to open one
	opener     *callSink          // the initialize that conn came from, or will; nil: none, or it failed
	accepted   bool               // the server answered initialize with a result
	abandoned  bool               // the client left before that
	registered bool               // in the manager's table and the store
	shaken     bool               // the client sent something after initialize
	ended      bool
	revision   mcp.Revision
	streams    map[uint64]*Stream // open, or kept for resumption; not the own one
	kept       []*Stream          // over, but resumable; oldest first
	detached   []*Stream          // open calls whose client left; oldest first
	nextStream uint64
	own        *Stream
	greeted    bool // notifications/initialized was sent
	told       bool // what conn, a Listener, was told last
	telling    bool // somebody is telling it
	calls      int  // in flight
	places     int  // that calls have: of those which have no answer
	readers    int  // open streams
	logged     int  // bytes in all logs
	lastUse    time.Time
	lastStored time.Time // when the store was last told of it
	listener   string    // see session.Record, as of the last look
	version    uint64    // of the record, as of then
	timer      *time.Timer
	seen       sighted // what operators may see of it
}

// ID is the session id. It must not stand in any log line.
func (s *Session) ID() string { return s.id }

// Hash is the form of the session id that may be logged; "" for what has none.
func (s *Session) Hash() string {
	if s.lone {
		return ""
	}
	return session.ShortHash(s.id)
}

// Server is the name of its server.
func (s *Session) Server() string { return s.backend.Name }

// Revision is what the server negotiated; empty before that.
func (s *Session) Revision() mcp.Revision {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Accepted tells whether the server has answered initialize with a result.
func (s *Session) Accepted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted
}

// Call sends a request, or the requests of a batch, and returns the reader of
// their stream. Replies that are known already stand in it first.
func (s *Session) Call(takes Takes, reqs []upstream.Request, replies ...[]byte) (*Reader, error) {
	s.mu.Lock()
	if err := s.mayCallLocked(len(reqs)); err != nil {
		s.mu.Unlock()
		return nil, err
	}
	st := s.newStreamLocked(takes)
	sinks := make([]*callSink, len(reqs))
	for i := range reqs {
		sinks[i] = s.enterLocked(st, &reqs[i])
	}
	r := st.attachLocked(0)
	for _, data := range replies {
		st.appendLocked(data, reply)
	}
	if len(reqs) == 0 {
		st.endLocked()
	}
	conn := s.conn
	s.mu.Unlock()
	s.m.makeRoom()
	for i, sink := range sinks {
		reqs[i].Inline = len(reqs) == 1
		r.call = s.begin(conn, sink, reqs[i])
	}
	return r, nil
}

// CallOnOwn sends a request whose answer goes to the session's own stream, as
// in HTTP+SSE.
func (s *Session) CallOnOwn(req upstream.Request) error {
	s.mu.Lock()
	if err := s.mayCallLocked(1); err != nil {
		s.mu.Unlock()
		return err
	}
	sink := s.enterLocked(s.own, &req)
	conn := s.conn
	s.mu.Unlock()
	s.begin(conn, sink, req)
	return nil
}

// ReplyOnOwn puts an answer of Signalbox itself into the session's own stream.
func (s *Session) ReplyOnOwn(data []byte) error {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return s.over()
	}
	cut := s.own.appendLocked(data, reply)
	s.mu.Unlock()
	s.delivered(cut)
	return nil
}

// mayCallLocked takes the places of n calls, which enterLocked fills: nothing in
// between can fail.
func (s *Session) mayCallLocked(n int) error {
	switch {
	case s.ended:
		return s.over()
	case s.conn == nil:
		return ErrNotStarted
	case s.m.Draining() && !s.movesLocked(): // one that is not at home here is served to the end
		return ErrDraining
	case s.places+n > s.m.cfg.MaxCalls:
		return ErrCalls
	}
	if err := s.m.places.take(s.principal, n); err != nil {
		return err
	}
	s.touchLocked()
	return nil
}

func (s *Session) newStreamLocked(takes Takes) *Stream {
	s.nextStream++
	st := &Stream{s: s, n: s.nextStream, takes: takes}
	s.streams[st.n] = st
	return st
}

// enterLocked makes the sink of a call whose place in flight is taken.
func (s *Session) enterLocked(st *Stream, req *upstream.Request) *callSink {
	sink := newCallSink(st, req)
	st.sinks = append(st.sinks, sink)
	s.calls++
	s.places++
	s.sawLocked(req)
	s.callStarted()
	return sink
}

// begin starts a call on the connection, and returns it where it has to be run
// still. An error becomes the call's answer.
func (s *Session) begin(conn upstream.Conn, sink *callSink, req upstream.Request) upstream.Runner {
	call, err := conn.Start(req, sink)
	if err != nil {
		sink.refused = true
		sink.End(err)
		return nil
	}
	if run := s.started(sink, call); req.Inline {
		return run
	}
	return nil
}

// started notes a call that has begun, and returns it if it can be run by
// whoever waits for it.
func (s *Session) started(sink *callSink, call upstream.Call) upstream.Runner {
	s.mu.Lock()
	sink.call = call
	sink.handedLocked()
	doomed := sink.doomed
	s.mu.Unlock()
	if doomed != nil {
		call.Cancel(doomed)
	}
	run, _ := call.(upstream.Runner)
	return run
}

func (s *Session) cancelAll(st *Stream, reason error) {
	s.mu.Lock()
	var calls []upstream.Call
	for _, sink := range st.sinks {
		if sink.doomed = reason; sink.call != nil {
			calls = append(calls, sink.call)
		}
	}
	s.mu.Unlock()
	for _, c := range calls {
		c.Cancel(reason)
	}
}

// Send passes a notification or a response. Errors are those of
// upstream.Conn.Send, and ErrNotStarted, ErrNotFound.
func (s *Session) Send(req upstream.Request) error {
	s.mu.Lock()
	conn, opener, ended := s.conn, s.opener, s.ended
	if !ended {
		s.sawLocked(&req)
	}
	s.touchLocked()
	s.mu.Unlock()
	switch {
	case ended:
		return s.over()
	case conn == nil:
		return ErrNotStarted
	}
	if err := conn.Send(req); err != nil {
		return err
	}
	if req.Method == mcp.NotifInitialized {
		s.greet(opener)
	}
	return nil
}
