package front

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func (f *Front) streamable(w http.ResponseWriter, r *http.Request, b *live.Backend) {
	switch {
	case r.Method == http.MethodPost:
		f.post(w, r, b)
	case claimsPerRequest(r.Header): // that revision has POST only
		f.failEarly(w, r, methodNotAllowed("POST"))
	case r.Method == http.MethodGet:
		f.get(w, r, b)
	case r.Method == http.MethodDelete:
		f.delete(w, r, b)
	default:
		f.fail(w, nil, methodNotAllowed("GET, POST, DELETE"))
	}
}

// echoLimit bounds the body that is read only to find the id of a request that
// is refused anyway.
const echoLimit = 64 << 10

func (f *Front) post(w http.ResponseWriter, r *http.Request, b *live.Backend) {
	takes, ok := readAccept(r.Header)
	x := &exchange{f: f, w: w, r: r, b: b, takes: takes, perRequest: claimsPerRequest(r.Header)}
	if !ok {
		x.fail(refuse(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept", "Accept must allow application/json or text/event-stream"))
		return
	}
	if err := checkContentType(r.Header); err != nil {
		x.fail(err)
		return
	}
	var sess *live.Session
	began := f.now()
	var missing error // set where the session header leads nowhere here
	limit, home := f.maxMessage(b), ""
	id := r.Header.Get(mcp.HeaderSession)
	if id != "" && !x.perRequest {
		sess, missing = f.find(r, b, session.Streamable, id)
		if home = elsewhere(missing); missing != nil && home == "" {
			limit = min(limit, echoLimit)
		}
	}
	read, err := f.readBody(w, r, limit)
	if err != nil {
		if missing != nil {
			err = missing
		}
		f.note(r, b.Name, err)
		x.fail(err)
		return
	}
	body := read.data
	x.arrived, x.until = f.arrived(began, read), read.at.Add(decideWait)
	if wire.IsBatch(body) && missing == nil {
		f.batch(x, sess, body)
		return
	}
	msg, err := wire.Parse(body)
	if err == nil && isPerRequest(&msg, r.Header) {
		f.perRequest(x, msg, body)
		return
	}
	if err == nil {
		x.perRequest = false
		err = checkVersion(&msg, r.Header)
	}
	switch {
	case err == nil && isInitialize(&msg):
		f.initialize(x, msg) // a session id that came with it means nothing
	case home != "":
		f.forward(w, r, b, id, home, errorID(&msg, err), body)
	case missing != nil:
		f.fail(w, errorID(&msg, err), missing)
	case err != nil:
		x.id = errorID(&msg, err)
		x.fail(err)
	case sess == nil:
		f.fail(w, errorID(&msg, nil), refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "no_session",
			"the header Mcp-Session-Id is missing; it comes with the answer to initialize"))
	default:
		f.message(x, sess, msg, body)
	}
}

// errorID is the id to echo for a message that was refused; nil for none. That
// of a response is the server's, and would name some request of the client.
func errorID(msg *wire.Message, err error) []byte {
	if e, ok := err.(*wire.Error); ok {
		return e.ID
	}
	if msg.Kind != wire.Request {
		return nil
	}
	return msg.Bytes(msg.ID)
}

func isInitialize(msg *wire.Message) bool {
	return msg.Kind == wire.Request && mcp.MethodOf(msg.MethodName()) == mcp.Initialize
}

// checkVersion refuses unknown versions in the header of anything but initialize.
func checkVersion(msg *wire.Message, h http.Header) error {
	v := h.Get(mcp.HeaderVersion)
	if v == "" || isInitialize(msg) || mcp.Revision(v).Handshake() {
		return nil
	}
	return unsupportedVersion(v)
}

func newRequest(msg wire.Message, r *http.Request) upstream.Request {
	req := upstream.NewRequest(msg)
	req.Header, req.Principal = r.Header, who(r)
	return req
}

// message passes one message of a session on.
func (f *Front) message(x *exchange, sess *live.Session, msg wire.Message, body []byte) {
	req := newRequest(msg, x.r)
	if msg.Kind != wire.Request {
		if req.Method == mcp.NotifCancelled {
			f.cancelElsewhere(x.r, sess, &msg, body)
		}
		if err := sess.Send(req); err != nil {
			f.fail(x.w, nil, unanswerable(err))
			return
		}
		f.writeStatus(x.w, http.StatusAccepted)
		return
	}
	x.id = bytes.Clone(msg.Bytes(msg.ID)) // the message is its receiver's from now on
	req.Buffer, req.Arrived = body, x.arrived
	reader, err := sess.Call(x.takes, []upstream.Request{req})
	if err != nil { // it was not sent
		f.decline(x.w, x.r, x.b.Name, x.id, err)
		return
	}
	x.sess, x.revision = sess, sess.Revision()
	x.run(reader)
}

// initialize begins a session. Its id goes out once the server has accepted,
// or with the headers of the stream that a slow start has opened before.
func (f *Front) initialize(x *exchange, msg wire.Message) {
	version, _ := wire.Unquote(msg.Bytes(msg.P.ProtocolVersion))
	x.revision = mcp.Revision(version) // what the client can read; the answer comes later
	id := bytes.Clone(msg.Bytes(msg.ID))
	req := newRequest(msg, x.r)
	if err := f.mayOpen(); err != nil {
		f.fail(x.w, id, err)
		return
	}
	sess, reader, err := f.cfg.Live.Open(x.b, who(x.r).Key(), x.takes, req)
	if now := f.backends.Load().byName[x.b.Name]; errors.Is(err, live.ErrRetired) && now != nil { // the configuration has just changed
		x.b = now
		sess, reader, err = f.cfg.Live.Open(x.b, who(x.r).Key(), x.takes, req)
	}
	if err != nil {
		f.decline(x.w, x.r, x.b.Name, id, err)
		return
	}
	x.sess, x.id = sess, id
	x.opening = true
	x.run(reader)
}

// batch takes an array, which exists in 2025-03-26 only: each element goes its
// own way, and the answers form one array.
func (f *Front) batch(x *exchange, sess *live.Session, body []byte) {
	if sess == nil || sess.Revision() != mcp.R20250326 {
		x.fail(refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "batch", "batches exist only in sessions of revision 2025-03-26"))
		return
	}
	reqs, replies, err := f.split(sess, x.r, body)
	if err != nil {
		f.fail(x.w, nil, err)
		return
	}
	if len(reqs)+len(replies) == 0 {
		f.writeStatus(x.w, http.StatusAccepted)
		return
	}
	reader, err := sess.Call(x.takes, reqs, replies...)
	if err != nil {
		f.decline(x.w, x.r, x.b.Name, nil, err)
		return
	}
	x.sess, x.revision, x.batch = sess, sess.Revision(), true
	x.run(reader)
}

// split sends the notifications and responses of a batch, and returns its
// requests and the errors for elements that are none of these.
func (f *Front) split(sess *live.Session, r *http.Request, body []byte) (reqs []upstream.Request, replies [][]byte, err error) {
	elems, err := wire.SplitBatch(body)
	if err != nil {
		return nil, nil, err
	}
	if len(elems) > maxBatch {
		return nil, nil, refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "batch", "more than %d messages in a batch", maxBatch)
	}
	for _, e := range elems {
		msg, err := wire.Parse(append([]byte(nil), e...))
		if err == nil {
			err = checkHandshake(&msg)
		}
		if err == nil {
			err = checkVersion(&msg, r.Header)
		}
		if err == nil && isInitialize(&msg) {
			err = refuse(0, mcp.CodeInvalidRequest, "batch", "initialize must not be part of a batch")
		}
		if err == nil && msg.Kind == wire.Request {
			reqs = append(reqs, newRequest(msg, r))
			continue
		}
		if err == nil {
			if err = sess.Send(newRequest(msg, r)); err == nil || msg.Kind == wire.Notification {
				continue
			}
		}
		e := refusalOf(err)
		replies = append(replies, upstream.ErrorReply(errorID(&msg, err), upstream.Errorf(e.code, e.reason, "%s", e.message)))
	}
	return reqs, replies, nil
}

// maxBatch bounds the messages of one batch.
const maxBatch = 1000

// get opens the session's own stream, or resumes any of its streams.
func (f *Front) get(w http.ResponseWriter, r *http.Request, b *live.Backend) {
	if takes, ok := readAccept(r.Header); !ok || takes == live.TakesJSON {
		f.fail(w, nil, refuse(http.StatusNotAcceptable, mcp.CodeInvalidRequest, "accept", "Accept must allow text/event-stream"))
		return
	}
	sess := f.existing(w, r, b)
	if sess == nil {
		return
	}
	reader, ok := f.ownStream(w, r, b, sess)
	if !ok {
		return
	}
	x := &exchange{f: f, w: w, r: r, b: b, takes: live.TakesSSE, sess: sess, revision: sess.Revision()}
	defer reader.Close()
	x.stream(reader, nil)
}

func (f *Front) delete(w http.ResponseWriter, r *http.Request, b *live.Backend) {
	sess := f.existing(w, r, b)
	if sess == nil {
		return
	}
	sess.Delete()
	f.writeStatus(w, http.StatusNoContent)
}

// checkHandshake refuses a message of the per-request era where none can stand.
func checkHandshake(msg *wire.Message) error {
	if v, ok := wire.Unquote(msg.Bytes(msg.P.MetaVersion)); ok && mcp.LooksModern(string(v)) {
		return unsupportedVersion(string(v))
	}
	return nil
}

// existing is the session that a request without a body names; nil: the request
// is answered.
func (f *Front) existing(w http.ResponseWriter, r *http.Request, b *live.Backend) *live.Session {
	id := r.Header.Get(mcp.HeaderSession)
	if id == "" {
		f.fail(w, nil, refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "no_session", "the header Mcp-Session-Id is missing"))
		return nil
	}
	sess, err := f.find(r, b, session.Streamable, id)
	if home := elsewhere(err); home != "" {
		f.forward(w, r, b, id, home, nil, nil)
		return nil
	}
	if v := r.Header.Get(mcp.HeaderVersion); err == nil && v != "" && !mcp.Revision(v).Handshake() {
		err = unsupportedVersion(v)
	}
	if err != nil {
		f.fail(w, nil, err)
		return nil
	}
	return sess
}
