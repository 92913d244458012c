// Package upstream says what Signalbox needs of a server, whatever transport
// leads to it. Package process is the stdio kind.
//
// A session opens one Conn. Requests go in by Start, everything else by Send;
// what comes back arrives at sinks: each call has one of its own, and the
// session has one for what the server sends unasked.
package upstream

import (
	"net/http"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Principal is who sent a request. Its Key is that of the session's owner.
type Principal interface{ Key() string }

// Request is one message from a client on its way to a server. The receiver
// owns the bytes of Msg from then on.
type Request struct {
	Msg    wire.Message
	Method mcp.Method  // mcp.Other for a response or an unknown method
	Header http.Header // of the client's HTTP request, for allow-lists; not to be changed; may be nil
	// Inline: whoever sends it waits for the answer in a goroutine of its own,
	// in which the call may run if it is a Runner.
	Inline bool
	// Arrived is when Signalbox had it, less the time that it waited for the
	// client; zero where nobody asks.
	Arrived time.Time
	// Principal is who sent it; nil where nobody is told from others.
	Principal Principal
	// Address of an HTTP server (scheme://host:port) that has what the request goes
	// on with, so far as is known, as a Frame has named it; "": any.
	Address string
	// Buffer is what Msg lies in, if that came from a buf.Pool. A receiver that
	// needs Msg no more may put it back.
	Buffer []byte
	// Span is what the server's time belongs to, and whose context it gets; nil where
	// nothing is traced.
	Span *trace.Span
}

// NewRequest looks the method of msg up.
func NewRequest(msg wire.Message) Request {
	r := Request{Msg: msg}
	if msg.Kind != wire.Response {
		r.Method = mcp.MethodOf(msg.MethodName())
	}
	return r
}

// Rewrite makes raw the message of r. It keeps the method, which raw must have too.
func (r *Request) Rewrite(raw []byte) error {
	msg, err := wire.Parse(raw)
	if err != nil {
		return err
	}
	r.Msg, r.Buffer = msg, nil
	return nil
}

// Relation tells a sink how a frame belongs to it.
type Relation uint8

const (
	// Reply is the response of the sink's own call, with the client's own id.
	// It is always taken.
	Reply Relation = iota + 1
	// Own is a notification that provably belongs to the sink's call
	// (progress with its token).
	Own
	// Loose is what the server sent without naming a call. A sink takes it
	// only where a client is reading at this moment.
	Loose
	// Waiting is Loose for which no reader was found: the session's own sink
	// keeps it, bounded, for the next stream.
	Waiting
)

// Frame is one message on its way to a client.
type Frame struct {
	Data     []byte // one JSON-RPC message; owned by whoever takes it
	Buffer   []byte // what Data lies in, if that came from a buf.Pool; else nil
	Method   mcp.Method
	Relation Relation
	Address  string // of the HTTP server that gave a reply, or spoke of a task; else ""
}

// Verdict is a sink's answer to one frame.
type Verdict uint8

const (
	Taken   Verdict = iota + 1
	NoTaker         // nobody here reads such a frame: try the next home
	Closed          // the sink has ended
)

// Sink takes what belongs to one stream. Methods may be called from any
// goroutine; a frame that comes after End is answered with Closed.
type Sink interface {
	// Deliver never blocks. On Taken the sink owns f.Data.
	Deliver(f Frame) Verdict
	// End is called exactly once: with nil after the Reply, with the reason
	// (see RPCError) when there will be none. For a session's own sink it
	// means that the connection is over. It never blocks.
	End(reason error)
}

// Call is an open request. Cancel is idempotent and may race with the answer:
// one of them wins, and the sink's End is called once.
type Call interface{ Cancel(reason error) }

// Runner is a Call that has not begun: it runs in the goroutine that waits for
// it, which saves waking one goroutine by another for each frame.
type Runner interface {
	// Run goes on with the call until its sink may have something new, or until
	// a point in time. false: it is over, or goes on by itself from now on.
	Run(until time.Time) bool
	// Go lets it go on by itself. After that, and after a Run that gave false,
	// neither is called again.
	Go()
}

// Conn is one session's connection to its server. All methods may be called
// at once from several goroutines.
type Conn interface {
	// Start sends a request. The call lives until its sink's End or its
	// Cancel, and is tied to no HTTP request: a client that leaves is no
	// cancel in the handshake era (MCP 2025-11-25, basic/transports). After
	// an error the sink is not used. The Call for a request that is Inline may be
	// a Runner, which the caller must Run or Go.
	Start(Request, Sink) (Call, error)
	// Send passes a notification, or a response to a request of the server.
	// ErrNothingPending: the server can have asked this session nothing;
	// ErrBusy: the server's queue is full; ErrClosed: the connection is over.
	Send(Request) error
	// End ends the session at the server: open calls end with reason, the
	// process of one session is stopped in the background. Idempotent, never
	// blocks.
	End(reason error)
}

// Listener is a Conn whose server sends what it sends unasked only to those who
// ask for it. Listen is called when the session's own stream gets a reader and
// when it loses it; the frames go to the session's own sink.
type Listener interface{ Listen(on bool) }

// Movable is a Conn that other processes can serve at the same time, by its
// State, once that has an Address. All methods may be called at any time.
type Movable interface {
	// Moves tells whether State has an Address. It is asked for each message.
	Moves() bool
	State() State
	// Adopt says that another process has changed the session's State.
	Adopt(State)
	// Detach is End without a word to the server: the session lives on.
	Detach(reason error)
}

// State is what another process needs to go on with a session.
type State struct {
	Address  string       // the address that answered initialize: scheme://host:port; "": the session cannot move
	Session  string       // the server's own session id; "" for a stateless server
	Revision mcp.Revision // negotiated with the server
	// For a session that can be opened anew at another address; else empty.
	Initialize    []byte   // the client's initialize
	LogLevel      string   // as of logging/setLevel
	Subscriptions []string // URIs, sorted
}

// Attacher is a Server whose sessions are Movable.
type Attacher interface {
	// Attach goes on with a session that this or another process opened. events
	// is as for Open. ErrLost: its address is none of the server's any more.
	Attach(st State, events Sink) (Conn, error)
}

// Keeper is a session's own Sink that keeps the State of a Movable for other
// processes.
type Keeper interface {
	// Changed: change makes the new State of the old one. It may be called later,
	// more than once, and by another goroutine; Changed does not block.
	Changed(change func(*State))
	// Renewed: the session was lost and has been opened anew. The result is what
	// is true from now on: another process may have been faster, and now is of no
	// use then. An error is none of the server's.
	Renewed(lost, now State) (State, error)
}

// Server opens connections to one MCP server.
type Server interface {
	// Open begins a session with the client's initialize. reply gets the
	// answer, events whatever the server sends unasked; events ends when the
	// connection does. The error of a start that failed at once is returned,
	// and neither sink is used then.
	Open(initialize Request, reply, events Sink) (Conn, error)
	// Close ends every connection with ErrShutdown and begins to stop what the
	// server runs.
	Close()
}
