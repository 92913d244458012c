package live

import (
	"bytes"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// What operators may look back at. Without a Recorder each of these returns at
// once.

// sighted is what is kept of a session for operators. Guarded by Session.mu.
type sighted struct {
	tape          observe.Tape
	client        string // as it calls itself
	clientVersion string
}

// lag is a reply on its way to the client.
type lag struct {
	seq  uint64        // its position; 0: there is none
	at   time.Time     // when the server had answered
	told time.Duration // added before that
}

// maxIdentity bounds what is kept of a client's name and version, in bytes.
const maxIdentity = 100

// maxPeek is how large a message of a server may be to be looked into for an id
// or a method that is none of the protocol's.
const maxPeek = 4 << 10

// sawLocked notes a message of the client.
func (s *Session) sawLocked(req *upstream.Request) {
	if !s.m.cfg.Observe.On() {
		return
	}
	if s.who == nil { // attached by its record
		s.who = req.Principal
	}
	msg := &req.Msg
	at := req.Arrived
	if at.IsZero() {
		at = time.Now()
	}
	m := observe.NewMessage(at, observe.FromClient, msg.Kind, req.Method, len(msg.Raw))
	if req.Method == mcp.Other && msg.Kind != wire.Response {
		m.SetMethod(msg.MethodName())
	}
	m.SetID(msg.Bytes(msg.ID))
	s.tapeLocked(&m)
	if req.Method == mcp.Initialize {
		info := msg.Bytes(msg.P.ClientInfo)
		s.seen.client, s.seen.clientVersion = textIn(info, "name"), textIn(info, "version")
	}
}

// textIn is a member of a small object of a peer, cut.
func textIn(object []byte, name string) string {
	if len(object) == 0 {
		return ""
	}
	at, _ := wire.Lookup(object, name)
	text, _ := wire.Unquote(at.Of(object))
	text = text[:min(len(text), maxIdentity)]
	return string(bytes.ToValidUTF8(text, nil))
}

// sentLocked notes a message for the client that was appended to a stream. c is
// the call that it belongs to; nil: none.
func (s *Session) sentLocked(f *upstream.Frame, c *callSink) {
	if !s.m.cfg.Observe.On() {
		return
	}
	now := time.Now()
	if f.Relation == upstream.Reply && c != nil {
		s.repliedLocked(now, len(f.Data), c)
		return
	}
	m := observe.NewMessage(now, observe.ToClient, wire.Notification, f.Method, len(f.Data))
	if len(f.Data) <= maxPeek && (f.Method == mcp.Other || asks(f.Method)) {
		id, _ := wire.Lookup(f.Data, "id")
		m.SetID(id.Of(f.Data))
		if f.Method == mcp.Other {
			at, _ := wire.Lookup(f.Data, "method")
			name, _ := wire.Unquote(at.Of(f.Data))
			m.SetMethod(name)
		}
		if id.Present() {
			m.Kind = wire.Request
		}
	} else if asks(f.Method) {
		m.Kind = wire.Request
	}
	s.tapeLocked(&m)
}

// tapeLocked notes a message of a session. A request of the per-request era is of
// none, and nobody could look at its tape.
func (s *Session) tapeLocked(m *observe.Message) {
	if !s.lone {
		s.seen.tape.Add(m)
	}
}

// asks tells whether a server sends the method as a request.
func asks(m mcp.Method) bool {
	switch m {
	case mcp.Ping, mcp.SamplingCreateMessage, mcp.ElicitationCreate, mcp.RootsList, mcp.TasksList, mcp.TasksGet, mcp.TasksResult, mcp.TasksCancel:
		return true
	}
	return false
}

func (s *Session) repliedLocked(now time.Time, size int, c *callSink) {
	m := c.answer(now, size)
	s.tapeLocked(&m)
	if st := c.st; st.reader != nil && st.lag.seq == 0 && c.handed > 0 {
		st.lag = lag{st.last(), now, c.handed}
	}
}

// answer is the entry of the call's answer.
func (c *callSink) answer(now time.Time, size int) observe.Message {
	m := observe.NewMessage(now, observe.ToClient, wire.Response, c.method, size)
	m.Duration = now.Sub(c.started)
	m.SetID(c.id)
	return m
}

// failedLocked notes that a call got an error of Signalbox itself, of n bytes.
func (s *Session) failedLocked(c *callSink, n int, reason error) {
	if !s.m.cfg.Observe.On() {
		return
	}
	m := c.answer(time.Now(), n)
	m.SetReason(upstream.RPCError(reason).Reason)
	s.tapeLocked(&m)
}

// handedLocked notes that the server, or the queue of its process, has the call.
func (c *callSink) handedLocked() {
	if c.handed > 0 && !c.replied {
		c.handed = c.sinceArrival(time.Now())
	}
}

// sinceArrival is above zero.
func (c *callSink) sinceArrival(now time.Time) time.Duration {
	from := c.arrived
	if from.IsZero() {
		from = c.started
	}
	return max(now.Sub(from), 1)
}

// writtenLocked: the client has everything up to a position since now.
func (st *Stream) writtenLocked(pos uint64, now time.Time) {
	if st.lag.seq == 0 || pos < st.lag.seq {
		return
	}
	added := st.lag.told + now.Sub(st.lag.at)
	st.s.m.cfg.Observe.Added(now, added)
	st.s.m.cfg.Metrics.of(st.s.backend).added.Observe(added.Seconds())
	st.lag = lag{}
}

// droppedLocked notes that a client read too slowly.
func (s *Session) droppedLocked(reason string) {
	if s.m.cfg.Observe.On() {
		s.m.cfg.Observe.Dropped(time.Now(), observe.Incident{Reason: reason, Server: s.backend.Name, Session: s.Hash()})
	}
}
