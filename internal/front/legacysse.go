package front

import (
	"bytes"
	"errors"
	"net/http"
	"net/url"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// sse opens the stream of an HTTP+SSE session (2024-11-05, basic/transports).
// The session lives as long as the stream.
func (f *Front) sse(w http.ResponseWriter, r *http.Request, b *live.Backend, base string) {
	if r.Method != http.MethodGet {
		f.fail(w, nil, methodNotAllowed("GET"))
		return
	}
	if takes, ok := readAccept(r.Header); !ok || takes == live.TakesJSON {
		f.fail(w, nil, refuse(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept", "Accept must allow text/event-stream"))
		return
	}
	if err := f.mayOpen(); err != nil {
		f.fail(w, nil, err)
		return
	}
	sess, reader, err := f.cfg.Live.OpenLegacy(r.Context(), b, who(r).Key())
	if err != nil {
		f.decline(w, r, b.Name, nil, err)
		return
	}
	x := &exchange{f: f, w: w, r: r, b: b}
	streamHeaders(w)
	gauge := f.cfg.Metrics.Streams.WithLabelValues(b.Name, "sse", live.EraHandshake)
	gauge.Inc()
	defer gauge.Dec()
	// A reference with an absolute path: right behind any host name and TLS.
	endpoint := f.publicPrefix(r) + base + "/messages?session_id=" + url.QueryEscape(sess.ID())
	first := sse.AppendEvent(nil, "", "endpoint", []byte(endpoint))
	err = follow(x, reader, nil, first, func(live.Event) string { return "" })
	reader.Close()
	sess.HungUp(err)
}

// messages takes what a client of HTTP+SSE sends. Answers go to its stream.
func (f *Front) messages(w http.ResponseWriter, r *http.Request, b *live.Backend) {
	if r.Method != http.MethodPost {
		f.fail(w, nil, methodNotAllowed("POST"))
		return
	}
	if err := checkContentType(r.Header); err != nil {
		f.fail(w, nil, err)
		return
	}
	q := r.URL.Query()
	id := q.Get("session_id")
	if id == "" {
		id = q.Get("sessionId")
	}
	if id == "" {
		f.fail(w, nil, refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "no_session", "the query parameter session_id is missing; use the URL of the endpoint event"))
		return
	}
	sess, missing := f.find(r, b, session.LegacySSE, id)
	limit, home := f.maxMessage(b), elsewhere(missing)
	if missing != nil && home == "" {
		limit = min(limit, echoLimit)
	}
	read, err := f.readBody(w, r, limit)
	body := read.data
	switch {
	case err == nil && home != "":
		f.forward(w, r, b, id, home, nil, body)
	case err != nil && missing != nil:
		f.fail(w, nil, missing)
	case err != nil:
		f.decline(w, r, b.Name, nil, err)
	case missing == nil && wire.IsBatch(body):
		f.legacyBatch(w, r, sess, body)
	default:
		msg, err := wire.Parse(body)
		id := bytes.Clone(errorID(&msg, err)) // the bytes may be the server's soon
		switch {
		case missing != nil:
			err = missing
		case err == nil:
			err = f.legacyMessage(sess, r, msg)
		}
		if err != nil {
			f.fail(w, id, err)
			return
		}
		f.writeStatus(w, http.StatusAccepted)
	}
}

// legacyMessage passes one message on. What a request is refused for is told
// on the stream, like every answer: clients take a POST that fails for the end
// of their connection.
func (f *Front) legacyMessage(sess *live.Session, r *http.Request, msg wire.Message) error {
	if err := checkVersion(&msg, r.Header); err != nil {
		return err
	}
	if msg.Kind == wire.Request {
		return f.legacyRequest(sess, r, msg)
	}
	err := checkHandshake(&msg)
	if err == nil {
		err = sess.Send(newRequest(msg, r))
	}
	if err != nil {
		return unanswerable(err)
	}
	return nil
}

func (f *Front) legacyRequest(sess *live.Session, r *http.Request, msg wire.Message) error {
	id := bytes.Clone(msg.Bytes(msg.ID))
	err := checkHandshake(&msg)
	switch {
	case err != nil:
	case isInitialize(&msg):
		err = sess.Initialize(newRequest(msg, r))
	default:
		err = sess.CallOnOwn(newRequest(msg, r))
	}
	if err == nil || errors.Is(err, live.ErrNotFound) {
		return err
	}
	f.note(r, sess.Server(), err)
	e := refusalOf(err)
	f.cfg.Metrics.refuse(e.reason)
	return sess.ReplyOnOwn(e.reply(id))
}

// legacyBatch: a client may have negotiated 2025-03-26 over the old transport.
func (f *Front) legacyBatch(w http.ResponseWriter, r *http.Request, sess *live.Session, body []byte) {
	if sess.Revision() != mcp.R20250326 {
		f.fail(w, nil, refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "batch", "batches exist only in sessions of revision 2025-03-26"))
		return
	}
	reqs, replies, err := f.split(sess, r, body)
	for _, reply := range replies {
		if err == nil {
			err = sess.ReplyOnOwn(reply)
		}
	}
	for _, req := range reqs {
		if err == nil {
			err = f.legacyRequest(sess, r, req.Msg)
		}
	}
	if err != nil {
		f.fail(w, nil, err)
		return
	}
	f.writeStatus(w, http.StatusAccepted)
}
