package live

import (
	"errors"
	"fmt"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// What callers branch on. The front maps them to status codes.
var (
	ErrNotFound       = errors.New("session not found")
	ErrSessionLimit   = errors.New("too many sessions (--max-sessions)")
	ErrPrincipalLimit = errors.New("too many sessions of one principal (--max-sessions-per-principal)")
	ErrRetired        = errors.New("this server is no longer offered")
	ErrDraining       = errors.New("signalbox is shutting down")
	ErrPosition       = errors.New("the Last-Event-ID is none of this session, or its events are no longer held")
	ErrCalls          = errors.New("too many calls in flight in this session")
	ErrAllCalls       = errors.New("too many calls in flight (--max-calls)")
	ErrPrincipalCalls = errors.New("too many calls in flight of one principal (--max-calls-per-principal)")
	ErrTakenOver      = errors.New("another request took this stream over")
	ErrTooSlow        = errors.New("the client reads its stream too slowly")
	ErrNotStarted     = errors.New("the session has not been initialized")
	ErrStarted        = errors.New("the session is initialized already")
)

// errLost answers a call that could not be made because the server no longer
// has the session.
var errLost = fmt.Errorf("%w: %w", ErrNotFound, upstream.ErrLost)

// Why a session ended without the server having failed; for logs.
var (
	errDeleted   = errors.New("the client ended the session")
	errIdle      = errors.New("the session was idle too long (--session-idle)")
	errMaxAge    = errors.New("the session is too old (--session-max-age)")
	errHandshake = errors.New("the client did not finish the handshake")
	errHungUp    = errors.New("the client closed its stream")
	errGone      = errors.New("the client left before the session began")
)

// errAbandoned ends the oldest of too many calls whose clients left.
var errAbandoned = upstream.Errorf(mcp.CodeServer, "abandoned", "the client left too many calls behind; this was the oldest")

// errRefusedStart is what is known of a server that answered initialize with an
// error; its text is for the client alone.
var errRefusedStart = upstream.Errorf(mcp.CodeInternal, "refused", "the server answered initialize with an error")

// sessionOver is what open calls are told when their session ends.
func sessionOver(reason error) error {
	var e *upstream.Error
	if errors.As(reason, &e) || errors.Is(reason, upstream.ErrShutdown) {
		return reason
	}
	return upstream.Errorf(mcp.CodeServer, "session_ended", "the session has ended: %v", reason)
}
