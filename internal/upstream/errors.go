package upstream

import (
	"errors"
	"fmt"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Sentinel errors that callers branch on.
var (
	ErrNothingPending = errors.New("the server asked nothing under this id")
	ErrBusy           = errors.New("the server's queue is full")
	ErrClosed         = errors.New("the session has ended")
	ErrCancelled      = errors.New("the request was cancelled")
	ErrTimeout        = errors.New("the server did not answer in time")
	ErrTooMany        = errors.New("too many server processes")
	ErrShutdown       = errors.New("signalbox is shutting down")
	// ErrLost: the server, or its address, no longer has the session. The client
	// is to begin anew.
	ErrLost = errors.New("the server has lost the session")
)

// Error is a failure with everything that a client is told of it.
type Error struct {
	Code    int    // JSON-RPC error code
	Reason  string // short word for error.data.reason and metrics
	Message string
	Status  int // of an HTTP server's answer, where that is what failed; else 0
	// RetryAfter is the header of that name in the answer, "" if there was none.
	RetryAfter string
	Data       string // further members of error.data, as JSON: `,"k":v`
	Err        error  // may be nil
}

func (e *Error) Error() string { return e.Message }
func (e *Error) Unwrap() error { return e.Err }

// What ends a call whose time is over.
var (
	CallTimeout = &Error{Code: mcp.CodeServer, Reason: "timeout", Err: ErrTimeout,
		Message: "the server gave neither an answer nor progress in time (--call-timeout)"}
	CallLimit = &Error{Code: mcp.CodeServer, Reason: "timeout", Err: ErrTimeout,
		Message: "the call ran longer than one call may (--call-limit)"}
)

// Errorf makes an Error of code and reason.
func Errorf(code int, reason, format string, args ...any) *Error {
	return &Error{Code: code, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// RPCError is the one table from errors to JSON-RPC errors: code, message and
// the reason that stands in error.data.reason beside the source.
func RPCError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, ErrCancelled):
		return &Error{Code: mcp.CodeServer, Reason: "cancelled", Message: err.Error(), Err: err}
	case errors.Is(err, ErrTimeout):
		return &Error{Code: mcp.CodeServer, Reason: "timeout", Message: err.Error(), Err: err}
	case errors.Is(err, ErrBusy):
		return &Error{Code: mcp.CodeServer, Reason: "busy", Message: err.Error() + "; try again later", Err: err}
	case errors.Is(err, ErrTooMany):
		return &Error{Code: mcp.CodeServer, Reason: "process_limit", Message: err.Error() + "; try again later, or raise --max-processes", Err: err}
	case errors.Is(err, ErrClosed):
		return &Error{Code: mcp.CodeServer, Reason: "session_ended", Message: err.Error(), Err: err}
	case errors.Is(err, ErrLost):
		return &Error{Code: mcp.CodeServer, Reason: "session_lost", Message: err.Error() + "; initialize again", Err: err}
	case errors.Is(err, ErrShutdown):
		return &Error{Code: mcp.CodeServer, Reason: "shutdown", Message: err.Error(), Err: err}
	}
	return &Error{Code: mcp.CodeInternal, Reason: "internal", Message: "internal error of signalbox; see its log", Err: err}
}

// ErrorReply is the JSON-RPC error response for err under the raw id token
// id, marked as Signalbox's own so that a user can tell it from the server's.
func ErrorReply(id []byte, err error) []byte {
	e := RPCError(err)
	return wire.AppendError(nil, id, e.Code, e.Message, e.data())
}

// data is error.data.
func (e *Error) data() []byte {
	data := append([]byte(`{"source":"signalbox","reason":`), wire.AppendQuote(nil, e.Reason)...)
	return append(append(data, e.Data...), '}')
}

// PerRequestErrorReply is ErrorReply for a client of 2026-07-28, which allows
// other codes (basic/index, "Error codes"), and leaves an id out that is not known.
func PerRequestErrorReply(id []byte, err error) []byte {
	e := RPCError(err)
	reply := wire.AppendError(nil, id, PerRequestCode(e.Code), e.Message, e.data())
	if id == nil {
		return wire.Remove(reply, "id")
	}
	return reply
}

// PerRequestCode is the error code for a client of 2026-07-28: those from -32000
// to -32019 mean nothing there, and two that older revisions define are gone.
func PerRequestCode(code int) int {
	switch {
	case code == mcp.CodeResourceNotFound:
		return mcp.CodeInvalidParams
	case code <= mcp.CodeServer && code > mcp.CodeHeaderMismatch, code == mcp.CodeURLElicitationRequired, code == 0:
		return mcp.CodeInternal
	}
	return code
}

// ListenEnd is the response that ends a subscriptions/listen of that id in good
// order (2026-07-28, basic/patterns/subscriptions).
func ListenEnd(id []byte) []byte {
	result := append([]byte(`{"resultType":"complete","_meta":{"`+mcp.MetaSubscription+`":`), id...)
	return wire.AppendResult(nil, id, append(result, "}}"...))
}
