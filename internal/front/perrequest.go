package front

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/bridge/header"
	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// claimsPerRequest tells whether the headers of a message say that it is of the
// per-request era, in which a session id means nothing.
func claimsPerRequest(h http.Header) bool { return mcp.LooksModern(h.Get(mcp.HeaderVersion)) }

// isPerRequest tells the era of a message, by its own words: the version in
// params._meta, or without that the one in the header, but for initialize, which
// begins a handshake. A session that is named counts more than a version that is
// of neither era.
func isPerRequest(msg *wire.Message, h http.Header) bool {
	if v := msg.Bytes(msg.P.MetaVersion); v != nil {
		version, _ := wire.Unquote(v)
		return mcp.LooksModern(string(version)) || claimsPerRequest(h) || h.Get(mcp.HeaderSession) == ""
	}
	return claimsPerRequest(h) && !isInitialize(msg)
}

// perRequest answers a message of the per-request era (2026-07-28,
// basic/transports/streamable-http). It is of no session: what it wants is in it.
func (f *Front) perRequest(x *exchange, msg wire.Message, body []byte) {
	x.perRequest = true
	x.id = errorID(&msg, nil)
	switch msg.Kind {
	case wire.Response:
		x.fail(refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "response", "a client of this revision sends no responses: answers stand in inputResponses of a retry"))
		return
	case wire.Notification: // none means anything over HTTP: a closed stream is the cancel
		f.writeStatus(x.w, http.StatusAccepted)
		return
	}
	req := newRequest(msg, x.r)
	if err := checkPerRequest(&req); err != nil {
		x.fail(err)
		return
	}
	if req.Method == mcp.SubscriptionsListen && x.takes == live.TakesJSON {
		x.fail(refuse(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept", "Accept must allow text/event-stream for subscriptions/listen"))
		return
	}
	x.id = bytes.Clone(x.id) // the message is its receiver's from now on
	req.Buffer, req.Arrived = body, x.arrived
	reader, err := f.cfg.Live.Ask(x.b, who(x.r).Key(), x.takes, req)
	if now := f.backends.Load().byName[x.b.Name]; errors.Is(err, live.ErrRetired) && now != nil { // the configuration has just changed
		x.b = now
		reader, err = f.cfg.Live.Ask(x.b, who(x.r).Key(), x.takes, req)
	}
	var away *upstream.Elsewhere
	switch {
	case errors.As(err, &away):
		f.askElsewhere(x, away.Replica, body)
	case err != nil:
		f.note(x.r, x.b.Name, err)
		x.fail(err)
	default:
		x.run(reader)
	}
}

// askElsewhere has the replica answer that holds the call which a retry goes on
// with. One that is no more has taken the call along.
func (f *Front) askElsewhere(x *exchange, home string, body []byte) {
	err := f.tryForward(x.w, x.r, home, body)
	var lost *cluster.LostError
	switch {
	case errors.Is(err, cluster.ErrGone) || f.cfg.Peers == nil:
		x.fail(state.ErrState)
	case errors.As(err, &lost) && lost.Begun && lost.Events:
		_ = f.writeParts(x.w, http.NewResponseController(x.w), sse.AppendEvent(nil, "", "message", upstream.PerRequestErrorReply(x.id, errHomeLost)))
	case errors.As(err, &lost) && lost.Begun:
		f.notForwarded(x.w, x.id, err)
	case err != nil && !errors.Is(err, cluster.ErrClient):
		x.fail(homeError(err))
	}
}

// checkPerRequest checks what every request of the era must say of itself, in its
// headers and in its body.
func checkPerRequest(req *upstream.Request) error {
	m := &req.Msg
	if version, isText := wire.Unquote(m.Bytes(m.P.MetaVersion)); isText {
		if named := req.Header.Get(mcp.HeaderVersion); named != string(version) {
			return upstream.Errorf(mcp.CodeHeaderMismatch, "header_mismatch",
				"the header MCP-Protocol-Version is %q, params._meta says %q", cut(named), cut(string(version)))
		}
	}
	err := upstream.CheckVersion(req)
	if err == nil {
		err = header.Check(req.Header, req)
	}
	if err == nil {
		err = upstream.CheckMeta(req)
	}
	return err
}

// fail answers a message with err, in the way of its era.
func (x *exchange) fail(err error) {
	if !x.perRequest {
		x.f.fail(x.w, x.id, err)
		return
	}
	e := *refusalOf(err)
	if e.status == http.StatusOK {
		e.status = perRequestStatus(e.code)
	}
	e.code = upstream.PerRequestCode(e.code)
	x.f.answer(x.w, &e, e.perRequestReply(x.id))
}

// failEarly answers with err a request whose message has not been read, in the way
// of the era that its headers claim.
func (f *Front) failEarly(w http.ResponseWriter, r *http.Request, err error) {
	(&exchange{f: f, w: w, perRequest: claimsPerRequest(r.Header)}).fail(err)
}

// perRequestReply is reply in the way of the per-request era, which has no null id.
func (e *refusal) perRequestReply(id []byte) []byte {
	reply := e.reply(id)
	if id == nil {
		return wire.Remove(reply, "id")
	}
	return reply
}

// perRequestStatus is the HTTP status of an error response (2026-07-28,
// streamable-http): where the revision names none, the error is in the body only.
func perRequestStatus(code int) int {
	switch code {
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion, mcp.CodeInvalidParams:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// statusOf is the HTTP status of the one response that a JSON body holds.
func (x *exchange) statusOf(reply []byte) int {
	if !x.perRequest {
		return http.StatusOK
	}
	span, ok := wire.Lookup(reply, "error", "code")
	if !ok {
		return http.StatusOK
	}
	code, _ := strconv.Atoi(string(span.Of(reply)))
	return perRequestStatus(code)
}

// paramHeaders are the Mcp-Param-* headers that a browser asks to be allowed.
func paramHeaders(asked string) string {
	var list strings.Builder
	for name := range strings.SplitSeq(asked, ",") {
		name = strings.TrimSpace(name)
		if len(name) > len(mcp.HeaderParamPrefix) && strings.EqualFold(name[:len(mcp.HeaderParamPrefix)], mcp.HeaderParamPrefix) && isToken(name) {
			list.WriteString(", " + name)
		}
	}
	return list.String()
}

// isToken tells whether s can be the name of a header (RFC 9110, section 5.1).
func isToken(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", c))
	})
}
