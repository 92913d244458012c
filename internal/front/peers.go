package front

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Peers are the other replicas that share the store.
type Peers interface {
	// Forward has the replica called home answer r, whose body is body, in the
	// name of p. An error means that nothing was written to w:
	// live.ErrNotFound where that replica is no more, session.ErrUnavailable
	// where it cannot be reached or nobody can tell.
	Forward(w http.ResponseWriter, r *http.Request, home string, p *auth.Principal, body []byte) error
	// Tell has every other replica serve r in the same way, and waits for none.
	Tell(r *http.Request, p *auth.Principal, body []byte)
}

// peerKey is the context key of a request that another replica forwarded.
type peerKey struct{}

// ServePeer serves a request that another replica has checked and forwarded.
func (f *Front) ServePeer(w http.ResponseWriter, r *http.Request, p *auth.Principal) {
	r = withPrincipal(r.WithContext(context.WithValue(r.Context(), peerKey{}, true)), p)
	b, what, base, err := f.route(trimPath(r.URL.Path))
	if err != nil {
		f.fail(w, nil, err)
		return
	}
	f.serve(w, r, b, what, base)
}

// fromPeer tells whether another replica has forwarded r.
func fromPeer(r *http.Request) bool { return r.Context().Value(peerKey{}) != nil }

// elsewhere is the replica that err says has the session; "" if it says none.
func elsewhere(err error) string {
	var e *live.Elsewhere
	if errors.As(err, &e) {
		return e.Home
	}
	return ""
}

// forward has the session's home answer. A home that is no more takes the
// session with it.
func (f *Front) forward(w http.ResponseWriter, r *http.Request, b *live.Backend, id, home string, reqID, body []byte) {
	err := f.tryForward(w, r, home, body)
	if errors.Is(err, live.ErrNotFound) {
		f.cfg.Live.HomeGone(b, id)
	}
	if err != nil {
		f.fail(w, reqID, err)
	}
}

// tryForward forwards a request once; one that was forwarded here already goes
// no further.
func (f *Front) tryForward(w http.ResponseWriter, r *http.Request, home string, body []byte) error {
	if fromPeer(r) || f.cfg.Peers == nil {
		return session.ErrUnavailable
	}
	return f.cfg.Peers.Forward(w, r, home, who(r), body)
}

// cancelElsewhere passes on a cancel whose call may be open at another replica.
func (f *Front) cancelElsewhere(r *http.Request, sess *live.Session, msg *wire.Message, body []byte) {
	if fromPeer(r) || f.cfg.Peers == nil || !sess.Moves() || sess.HasCall(msg.Bytes(msg.P.RequestID)) {
		return
	}
	f.cfg.Peers.Tell(r, who(r), bytes.Clone(body))
}

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
		case err == nil:
			return nil, false
		case last != "" && errors.Is(err, live.ErrNotFound):
			f.fail(w, nil, live.ErrPosition)
			return nil, false
		case !errors.Is(err, live.ErrNotFound):
			f.fail(w, nil, err)
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
