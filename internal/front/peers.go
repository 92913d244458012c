package front

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Peers are the other replicas that share the store; a *cluster.Node is one.
type Peers interface {
	// Forward has the replica called home answer r, whose body is body, in the
	// name of principal; see cluster.Node for its errors.
	Forward(w http.ResponseWriter, r *http.Request, home, principal string, body io.Reader) error
	// Peers are the replicas that are registered.
	Peers(ctx context.Context) ([]cluster.Peer, error)
}

// ServePeer serves a request that another replica has checked and forwarded.
func (f *Front) ServePeer(w http.ResponseWriter, r *http.Request) {
	p := new(auth.Principal)
	text, _ := cluster.FromPeer(r.Context())
	if err := p.UnmarshalText([]byte(text)); err != nil {
		f.fail(w, nil, fmt.Errorf("%w: %w", session.ErrUnavailable, err))
		return
	}
	b, what, base, err := f.route(trimPath(r.URL.Path))
	if err != nil { // the replicas do not have the same servers
		f.fail(w, nil, err)
		return
	}
	f.serve(w, withPrincipal(r, p), b, what, base)
}

// fromPeer tells whether another replica has forwarded r.
func fromPeer(r *http.Request) bool {
	_, forwarded := cluster.FromPeer(r.Context())
	return forwarded
}

// elsewhere is the replica that err says has the session; "" if it says none.
func elsewhere(err error) string {
	var e *live.Elsewhere
	if errors.As(err, &e) {
		return e.Home
	}
	return ""
}

// forward has the session's home answer. A home that is no more takes the
// session with it. reqID is the raw id of the request that the body holds; nil:
// it holds none.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, b *live.Backend, id, home string, reqID, body []byte) {
	err := f.tryForward(w, r, home, body)
	if errors.Is(err, cluster.ErrGone) {
		f.cfg.Live.HomeGone(b, id)
	}
	f.notForwarded(w, reqID, err)
}

// notForwarded answers where the home did not, or not to the end.
func (f *Front) notForwarded(w http.ResponseWriter, reqID []byte, err error) {
	var lost *cluster.LostError
	switch {
	case err == nil, errors.Is(err, cluster.ErrClient):
	case errors.As(err, &lost) && lost.Begun && !lost.Events:
		panic(http.ErrAbortHandler) // it must not look complete
	case errors.As(err, &lost) && lost.Begun:
		if reqID != nil {
			_ = f.writeParts(w, http.NewResponseController(w), sse.AppendEvent(nil, "", "message", upstream.ErrorReply(reqID, errHomeLost)))
		}
	case reqID == nil:
		f.fail(w, nil, unanswerable(homeError(err)))
	default:
		f.fail(w, reqID, homeError(err))
	}
}

// homeError is what a client is told of a replica that could not be asked.
func homeError(err error) error {
	switch {
	case errors.Is(err, cluster.ErrGone):
		return live.ErrNotFound
	case errors.Is(err, cluster.ErrLost):
		return errHomeLost
	case errors.Is(err, cluster.ErrPeer), errors.Is(err, cluster.ErrLoop):
		return busy(http.StatusServiceUnavailable, "replica_unavailable", errHomeAway, 1) // addresses of peers are nobody's business
	}
	return err
}

var errHomeAway = errors.New("the replica that has the session cannot be reached just now")

var errHomeLost = upstream.Errorf(mcp.CodeServer, "replica_lost", "the replica that has the session broke off; outcome unknown: the request may have run")

// tryForward forwards a request once; one that was forwarded here already goes
// no further.
func (f *Front) tryForward(w http.ResponseWriter, r *http.Request, home string, body []byte) error {
	if f.cfg.Peers == nil {
		return session.ErrUnavailable
	}
	principal, err := who(r).MarshalText()
	if err != nil {
		return err
	}
	r, done := f.traceForward(r, home, body)
	err = f.cfg.Peers.Forward(w, r, home, string(principal), bytes.NewReader(body))
	done(err)
	return err
}

// tellTimeout bounds what is passed on to every replica.
const tellTimeout = 5 * time.Second

// cancelElsewhere passes on a cancel whose call may be open at another replica.
func (f *Front) cancelElsewhere(r *http.Request, sess *live.Session, msg *wire.Message, body []byte) {
	if fromPeer(r) || f.cfg.Peers == nil || !sess.Moves() || sess.HasCall(msg.Bytes(msg.P.RequestID)) {
		return
	}
	peers, err := f.cfg.Peers.Peers(r.Context())
	if err != nil {
		return
	}
	body = bytes.Clone(body)
	ctx, cancel := context.WithTimeout(r.Context(), tellTimeout)
	defer cancel()
	var told sync.WaitGroup
	for _, p := range peers {
		if !p.Self {
			told.Go(func() { _ = f.tryForward(nobody{make(http.Header)}, r.WithContext(ctx), p.ID, body) })
		}
	}
	told.Wait()
}

// nobody reads an answer.
type nobody struct{ header http.Header }

func (n nobody) Header() http.Header         { return n.header }
func (n nobody) Write(b []byte) (int, error) { return len(b), nil }
func (n nobody) WriteHeader(int)             {}
func (n nobody) Flush()                      {}

// find is live.Manager.Find for the sender of r. A replica that was told
// something by another looks at what it has already only.
func (f *Front) find(r *http.Request, b *live.Backend, t session.Transport, id string) (*live.Session, error) {
	if fromPeer(r) {
		return f.cfg.Live.Local(b, t, id, who(r).Key())
	}
	return f.cfg.Live.Find(r.Context(), b, t, id, who(r).Key())
}

// ownStream answers a GET for the session's own stream, or for the rest of any
// of its streams, here or where the stream is.
func (f *Front) ownStream(w http.ResponseWriter, r *http.Request, b *live.Backend, sess *live.Session) (*live.Reader, bool) {
	last := r.Header.Get(mcp.HeaderLastEvent)
	home := sess.StreamHome()
	if last != "" {
		home = f.cfg.Live.EventHome(b, sess.ID(), last)
	}
	if home != "" {
		err := f.tryForward(w, r, home, nil)
		switch {
		case errors.Is(err, cluster.ErrGone) && last != "":
			f.fail(w, nil, live.ErrPosition)
			return nil, false
		case !errors.Is(err, cluster.ErrGone):
			f.notForwarded(w, nil, err)
			return nil, false
		}
	}
	var reader *live.Reader
	var err error
	if last != "" {
		reader, err = sess.Resume(last)
	} else {
		reader, err = sess.Listen()
	}
	if err != nil {
		f.fail(w, nil, err)
		return nil, false
	}
	return reader, true
}
