package remote

import (
	"errors"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/h1"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// answer passes on what the server answered, and gives the connection back.
func (k *call) answer(t target, h *h1.Conn, resp *h1.Response) error {
	k.status.Store(int32(resp.Status))
	kind := media(resp.ContentType)
	if resp.Status == 200 && kind == "text/event-stream" && !encoded(resp) {
		return k.events(t, h, resp)
	}
	defer k.hold.put(t.addr.pool, h)
	switch {
	case resp.Status != 200:
		return k.refused(t, resp)
	case encoded(resp):
		return upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server compressed its answer although asked not to (Content-Encoding: %s)", cut(resp.ContentEncoding))
	case kind == "application/json":
		return k.json(t, resp)
	}
	return upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server answered with %q instead of JSON or an event stream%s", cut(resp.ContentType), excerpt(resp))
}

// json: the body is the reply. It is looked at whole, for a reply under another
// id must reach nobody.
func (k *call) json(t target, resp *h1.Response) error {
	body, err := readAll(resp, k.c.srv.cfg.MaxMessage, k.c.srv.cfg.Buffers)
	if err != nil {
		return k.bodyError(err)
	}
	msg, err := wire.Parse(body)
	if err != nil {
		return upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server's answer is no JSON-RPC message: %v", err)
	}
	return k.replyIn(t, resp, &msg, body)
}

func (k *call) bodyError(err error) error {
	if errors.Is(err, errTooLarge) || errors.Is(err, sse.ErrTooLarge) {
		return upstream.Errorf(mcp.CodeInternal, "oversize", "the server's answer is larger than the limit of %d bytes (--max-message)", k.c.srv.cfg.MaxMessage)
	}
	return err
}

// reply ends the call with the server's response.
func (k *call) reply(t target, resp *h1.Response, msg *wire.Message) error {
	return k.replyIn(t, resp, msg, nil)
}

// replyIn is reply for a message that lies in a buffer of the pool.
func (k *call) replyIn(t target, resp *h1.Response, msg *wire.Message, buffer []byte) error {
	if k.c.lone && msg.Error.Present() && !msg.ID.Present() && bareAnswer(resp.Status) {
		msg, buffer = k.underOwnID(msg), nil
	}
	switch {
	case msg.Kind != wire.Response:
		return upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server answered with a %s instead of a response", msg.Kind)
	case !msg.ID.Present() && msg.Error.Present():
		return upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server answered with an error that names no request%s", errorText(msg))
	case !sameID(k.id, msg.Bytes(msg.ID)):
		return upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server answered under another id")
	case !msg.Result.Present():
	case k.method == mcp.Initialize:
		if err := k.c.accepted(t, resp, msg); err != nil {
			return err
		}
	case !k.c.lone:
		k.c.remember(k)
	}
	if !k.take() {
		return nil
	}
	k.sink.Deliver(upstream.Frame{Data: msg.Raw, Buffer: buffer, Method: k.method, Relation: upstream.Reply, Address: t.addr.key})
	k.sink.End(nil)
	return nil
}

// refused makes the answer with a status other than 200 the call's error. A
// JSON-RPC error under the call's own id is the server's answer, whatever the
// status; but for 404, which says that the session is not there. Without a session
// one that names no request is it too.
func (k *call) refused(t target, resp *h1.Response) error {
	body, err := readAll(resp, min(k.c.srv.cfg.MaxMessage, maxErrorBody), nil)
	if err != nil {
		body = nil
	}
	if media(resp.ContentType) == "application/json" && !(resp.Status == 404 && t.session != "") {
		msg, err := wire.Parse(body)
		bare := k.c.lone && !msg.ID.Present() && bareAnswer(resp.Status)
		if err == nil && msg.Kind == wire.Response && (bare || sameID(k.id, msg.Bytes(msg.ID))) {
			return k.reply(t, resp, &msg)
		}
	}
	return statusError(t, resp, body)
}

const maxErrorBody = 1 << 20

// statusError is the error for a status that is no answer.
func statusError(t target, resp *h1.Response, body []byte) error {
	var e *upstream.Error
	switch s := resp.Status; {
	case s == 404 && t.session != "":
		return upstream.ErrLost
	case s == 401 || s == 403:
		e = upstream.Errorf(mcp.CodeInternal, "unauthorized", "the server refused the credentials of signalbox (HTTP %d); check its headers in the configuration", s)
	case s >= 300 && s < 400:
		e = upstream.Errorf(mcp.CodeInternal, "redirect", "the server redirects to %s (HTTP %d), which is not followed; set that URL in the configuration", cut(resp.Location), s)
	case s == 429 || s == 503:
		hint := ""
		if resp.RetryAfter != "" {
			hint = "; it asks to wait " + cut(resp.RetryAfter) + " (Retry-After)"
		}
		e = upstream.Errorf(mcp.CodeInternal, "server_busy", "the server is busy (HTTP %d)%s", s, hint)
	case s >= 200 && s < 300:
		e = upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server took the request but gave no answer (HTTP %d)", s)
	default:
		e = upstream.Errorf(mcp.CodeInternal, "http_status", "the server answered with HTTP %d%s", s, quoteBody(resp.ContentType, body))
	}
	e.Status = resp.Status
	if resp.Status == 429 || resp.Status == 503 {
		e.RetryAfter = retryAfter(resp.RetryAfter)
	}
	return e
}

// retryAfter is a Retry-After that may be passed on: seconds or a date.
func retryAfter(v string) string {
	if _, err := strconv.ParseUint(v, 10, 32); err == nil {
		return v
	}
	if _, err := http.ParseTime(v); err == nil {
		return v
	}
	return ""
}

// unreachable is for what could not be sent.
func unreachable(err error) error {
	return upstream.Errorf(mcp.CodeInternal, "unreachable", "the server cannot be reached: %v", rootCause(err))
}

// quoteBody is the text of an error body for a message: what a JSON-RPC error
// says, or the start of plain text; HTML says nothing to a client.
func quoteBody(contentType string, body []byte) string {
	switch media(contentType) {
	case "application/json":
		if msg, err := wire.Parse(body); err == nil {
			return errorText(&msg)
		}
	case "text/plain":
		s := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 400)]), ""))
		if s != "" {
			return ": " + cut(s)
		}
	}
	return ""
}

// errorText is what an error response says, after a colon.
func errorText(msg *wire.Message) string {
	span, _ := wire.Lookup(msg.Raw, "error", "message")
	if s, ok := wire.Unquote(span.Of(msg.Raw)); ok && len(s) > 0 {
		return ": " + cut(string(s))
	}
	return ""
}

func excerpt(resp *h1.Response) string {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 400))
	return quoteBody(resp.ContentType, b)
}

// queries are those of URLs in a text. Servers quote the URL that they were asked
// for, and its query may hold a token.
var queries = regexp.MustCompile(`\?[^\s"'<>?]*=[^\s"'<>]*`)

// cut bounds what is quoted of a server, and leaves out what may be secret in it.
func cut(s string) string {
	s = queries.ReplaceAllString(s[:min(len(s), 4<<10)], "?...")
	if len(s) <= 200 {
		return s
	}
	n := 200
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}

// rootCause is the innermost text of a network error, without addresses.
func rootCause(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// broken: the stream was cut off, by the network or by a server that wants its
// client to come back (SEP-1699).
func broken(err error) bool { return isClosed(err) }
