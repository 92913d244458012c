package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Config is one server, in the four ways in which it can be reached. All fields
// are required.
type Config struct {
	Name       string
	Era        Era
	Handshake  upstream.Server // its own sessions, for clients of that era
	PerRequest upstream.Asker  // its own requests, for clients of that era
	Parked     upstream.Asker  // requests, made of sessions of Handshake
	Dialog     upstream.Server // sessions, made of requests to PerRequest
	Close      func()          // of all four

	// Probe asks the server with Discover, on a process or connection that nobody
	// uses afterwards. An error says nothing of the era.
	Probe       func(context.Context) (Finding, error)
	Fingerprint func() string // see Verdicts
	Verdicts    *Verdicts
	Ring        *state.Ring
	// SeesHeaders: a server of the per-request era gets the headers of a request and
	// checks them itself. In all other cases it is done here.
	SeesHeaders bool
	Version     string // of Signalbox
	Log         *slog.Logger
}

// Server is a server for clients of both eras. It implements upstream.Server and
// upstream.Asker, and as New returns it upstream.Attacher, if Handshake does.
type Server struct {
	cfg     Config
	schemas schemas

	ctx    context.Context // over after Close
	cancel context.CancelFunc

	mu      sync.Mutex
	looking *looking // nil: nobody does
	keyText string
	keyed   time.Time
}

// Both is what New returns: a *Server, and an upstream.Attacher if its Handshake is.
type Both interface {
	upstream.Server
	upstream.Asker
	Eras() string
}

// New makes the server; nothing is started.
func New(cfg Config) Both {
	s := &Server{cfg: cfg}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if a, ok := cfg.Handshake.(upstream.Attacher); ok {
		return &attacher{s, a}
	}
	return s
}

// attacher is a Server whose sessions can move. Those that are bridged cannot,
// so what is attached is always Handshake's own.
type attacher struct {
	*Server
	inner upstream.Attacher
}

func (a *attacher) Attach(st upstream.State, events upstream.Sink) (upstream.Conn, error) {
	return a.inner.Attach(st, events)
}

// Close ends everything.
func (s *Server) Close() {
	s.cancel()
	s.cfg.Close()
}

// Open begins a session of the handshake era. A server that has not been seen to
// refuse a handshake gets one.
func (s *Server) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	switch known := s.known(); {
	case known.handshake == no:
		return s.cfg.Dialog.Open(init, &doubted{reply, s}, events)
	case known.handshake == yes:
		return s.cfg.Handshake.Open(init, &watched{reply, s}, events)
	}
	return s.try(init, reply, events)
}

// watched is the sink of an initialize that is expected to succeed.
type watched struct {
	upstream.Sink
	s *Server
}

func (w *watched) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation == upstream.Reply && wire.IsErrorResponse(f.Data) {
		w.s.note(func(e *eras) { e.handshake = unknown })
	}
	return w.Sink.Deliver(f)
}

// doubted is the sink of an initialize that a dialog answers.
type doubted struct {
	upstream.Sink
	s *Server
}

// End notices a server that no longer speaks the per-request era.
func (d *doubted) End(reason error) {
	if reason != nil && upstream.RPCError(reason).Reason == "era" {
		d.s.note(func(e *eras) { *e = eras{} })
	}
	d.Sink.End(reason)
}

// hidden is the sink of a request that is made of a session.
type hidden struct {
	upstream.Sink
	s *Server
}

// End notices a server that may know no handshake: it refused one, or the whole
// request by HTTP.
func (h *hidden) End(reason error) {
	var e *upstream.Error
	if errors.As(reason, &e) && (e.Reason == "start_failed" || e.Status == 400 || e.Status == 404 || e.Status == 405) {
		h.s.note(func(e *eras) { e.perRequest = unknown })
	}
	h.Sink.End(reason)
}

// Ask serves a request of the per-request era. It may wait for the server's era,
// and for the schema of a tool, to be found out.
func (s *Server) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	known := s.known()
	if known.perRequest == unknown {
		var err error
		if known, err = s.look(); err != nil {
			return nil, err
		}
	}
	own := known.perRequest == yes
	if !own || !s.cfg.SeesHeaders {
		if err := s.checkParams(&req, own); err != nil {
			return nil, err
		}
	}
	if !own {
		return s.cfg.Parked.Ask(req, &hidden{sink, s})
	}
	return s.pass(req, sink)
}
