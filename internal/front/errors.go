package front

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// refusal is an answer of Signalbox itself, with an HTTP status.
type refusal struct {
	status     int
	code       int    // JSON-RPC
	reason     string // error.data.reason, and the metric's label
	message    string
	data       string // further members of error.data, as JSON: `,"k":v`
	retryAfter int    // seconds; 0: none
	limit      string // that was reached, by its flag if it has one; "": no limit is the reason
	challenge  string // WWW-Authenticate; "": none
	allow      string // for 405
}

func (e *refusal) Error() string { return e.message }

func refuse(status, code int, reason, format string, args ...any) *refusal {
	return &refusal{status: status, code: code, reason: reason, message: fmt.Sprintf(format, args...)}
}

// refusalOf is the one table from errors to status codes.
func refusalOf(err error) *refusal {
	var r *refusal
	var w *wire.Error
	var g *guard.Refused
	var a *auth.Failure
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &w):
		return refuse(http.StatusBadRequest, w.Code, "invalid_message", "%s", w.Msg)
	case errors.As(err, &g):
		return refuse(http.StatusForbidden, mcp.CodeInvalidRequest, g.What, "%s", g)
	case errors.As(err, &a):
		r = refuse(a.Status, mcp.CodeInvalidRequest, a.Reason, "%s", a.Message)
		r.challenge, r.retryAfter = a.Challenge, int(a.RetryAfter/time.Second)
		return r
	case errors.Is(err, live.ErrNotFound), errors.Is(err, upstream.ErrClosed):
		return refuse(http.StatusNotFound, mcp.CodeSessionNotFound, "session_not_found", "Session not found")
	case errors.Is(err, live.ErrRetired):
		return refuse(http.StatusNotFound, mcp.CodeInvalidRequest, "path", "%s", err)
	case errors.Is(err, live.ErrSessionLimit):
		return over("--max-sessions", http.StatusServiceUnavailable, "session_limit", err, 5)
	case errors.Is(err, live.ErrPrincipalLimit):
		return over("--max-sessions-per-principal", http.StatusTooManyRequests, "principal_limit", err, 5)
	case errors.Is(err, live.ErrCalls):
		return over("calls of one session", http.StatusTooManyRequests, "call_limit", err, 1)
	case errors.Is(err, live.ErrAllCalls):
		return over("--max-calls", http.StatusServiceUnavailable, "calls_limit", err, 1)
	case errors.Is(err, live.ErrPrincipalCalls):
		return over("--max-calls-per-principal", http.StatusTooManyRequests, "principal_calls_limit", err, 1)
	case errors.Is(err, upstream.ErrTooMany):
		return over("--max-processes", http.StatusServiceUnavailable, "process_limit", fmt.Errorf("%w (--max-processes)", err), 5)
	case errors.Is(err, upstream.ErrBusy):
		return busy(http.StatusServiceUnavailable, "busy", err, 1)
	case errors.Is(err, live.ErrDraining), errors.Is(err, upstream.ErrShutdown):
		return busy(http.StatusServiceUnavailable, "shutdown", err, 1)
	case errors.Is(err, session.ErrUnavailable):
		return busy(http.StatusServiceUnavailable, "store_unavailable", errors.New("the session store is out of reach"), 2)
	case errors.Is(err, live.ErrPosition):
		return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "event_id", "%s", err)
	case errors.Is(err, live.ErrNotStarted):
		return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "not_initialized", "%s; send initialize first", err)
	case errors.Is(err, live.ErrStarted):
		return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "initialized", "%s", err)
	case errors.Is(err, upstream.ErrNothingPending):
		return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "nothing_pending", "%s", err)
	}
	e := upstream.RPCError(err) // what the server did wrong is no HTTP error
	r = refuse(http.StatusOK, e.Code, e.Reason, "%s", e.Message)
	r.data = e.Data
	return r
}

// unanswerable is err for a message that owes no answer: a failure of the
// server has no request to be reported to, and is an HTTP status here.
func unanswerable(err error) error {
	e := refusalOf(err)
	if e.status == http.StatusOK {
		e.status, e.retryAfter = http.StatusServiceUnavailable, 1
	}
	return e
}

func busy(status int, reason string, err error, retryAfter int) *refusal {
	r := refuse(status, mcp.CodeServer, reason, "%s", err)
	r.retryAfter = retryAfter
	return r
}

// over is busy because of a limit.
func over(limit string, status int, reason string, err error, retryAfter int) *refusal {
	r := busy(status, reason, err, retryAfter)
	r.limit = limit
	return r
}

// tooFast asks to wait whole seconds, as Retry-After does.
func tooFast(wait time.Duration) error {
	return over("--max-requests-per-second", http.StatusTooManyRequests, "rate_limit",
		errors.New("too many requests in a short time (--max-requests-per-second)"), int((wait+time.Second-1)/time.Second))
}

// fail answers with the JSON-RPC error for err, under the raw id token id (nil:
// null, as the handshake era wants it).
func (f *Front) fail(w http.ResponseWriter, id []byte, err error) {
	e := refusalOf(err)
	f.answer(w, e, e.reply(id))
}

// answer answers with a refusal, of which reply is the body.
func (f *Front) answer(w http.ResponseWriter, e *refusal, reply []byte) {
	f.cfg.Metrics.refuse(e.reason)
	h := w.Header()
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(e.retryAfter))
	}
	if e.challenge != "" {
		h.Set("WWW-Authenticate", e.challenge)
	}
	if e.allow != "" {
		h.Set("Allow", e.allow)
	}
	f.writeJSON(w, e.status, reply)
}

// reply is the JSON-RPC error.
func (e *refusal) reply(id []byte) []byte {
	data := append([]byte(`{"source":"signalbox","reason":`), wire.AppendQuote(nil, e.reason)...)
	data = append(append(data, e.data...), '}')
	return wire.AppendError(nil, id, e.code, e.message, data)
}

func methodNotAllowed(allow string) *refusal {
	e := refuse(http.StatusMethodNotAllowed, mcp.CodeInvalidRequest, "method", "this path takes %s", allow)
	e.allow = allow
	return e
}

// unsupportedVersion refuses a version with the list of those that are spoken here.
func unsupportedVersion(requested string) *refusal {
	e := upstream.UnsupportedVersion(requested)
	r := refuse(http.StatusBadRequest, e.Code, e.Reason, "%s", e.Message)
	r.data = e.Data
	return r
}

func cut(s string) string {
	if len(s) > 100 {
		return s[:100] + "..."
	}
	return s
}
