package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"

	"golang.org/x/net/http2"
)

// Forward has the replica home answer r, for principal, and writes what it
// answers to w. Method, path, query and headers go as they came, less those of
// one connection. body is r's body or what has been read of it; nil: r.Body. It
// is not touched after Forward returned. Cancelling r's context cancels the
// request at home.
//
// Errors: ErrGone, ErrPeer, ErrLoop, ErrClient, ErrLost, session.ErrUnavailable,
// or what reading the body gave, as it is. Nothing has been written to w then,
// unless a LostError says so; after ErrClient nobody reads it.
func (n *Node) Forward(w http.ResponseWriter, r *http.Request, home, principal string, body io.Reader) error {
	err := n.forward(w, r, home, principal, body)
	n.metrics.forwarded(err)
	return err
}

func (n *Node) forward(w http.ResponseWriter, r *http.Request, home, principal string, body io.Reader) error {
	if _, again := FromPeer(r.Context()); again || home == n.ID() {
		return ErrLoop
	}
	peer, err := n.members.lookup(home)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	sent := newOutBody(w, r, body)
	defer sent.stop()
	// net/http cancels r when reading its body fails, be it because the body gave
	// up on a peer that broke off: then the client is there, and wants an answer.
	defer context.AfterFunc(r.Context(), func() {
		if !sent.gaveUp() {
			cancel()
		}
	})()
	res, err := n.send(outgoing(ctx, r, peer, principal, sent), n.poolOf(peer), sent)
	if err == nil {
		err = n.copyResponse(w, res)
		sent.stop() // first: Close waits until nobody reads the body
		_ = res.Body.Close()
	}
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrClient) {
		err = fmt.Errorf("%w: %w", ErrClient, context.Cause(r.Context()))
	}
	return err
}

// outgoing makes the request that the home gets.
func outgoing(ctx context.Context, r *http.Request, peer registration, principal string, sent *outBody) *http.Request {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		WroteHeaders:         func() { sent.headers.Store(true) },
		GotFirstResponseByte: sent.answered,
	})
	out := r.WithContext(ctx)
	url := *r.URL
	url.Scheme, url.Host = "https", peer.address
	out.URL = &url
	out.Header = outgoingHeader(r, principal)
	out.Body, out.ContentLength = http.NoBody, 0
	if sent.length != 0 {
		out.Body, out.ContentLength = sent, sent.length
	}
	out.Close, out.TransferEncoding, out.Trailer, out.RequestURI = false, nil, nil, ""
	return out
}

// send sends out on a connection of p, and once more on another one where the
// first turned out to be closed before anything was sent.
func (n *Node) send(out *http.Request, p *pool, sent *outBody) (*http.Response, error) {
	for again := false; ; again = true {
		cc, err := p.acquire(out.Context())
		if err != nil {
			return nil, err
		}
		res, err := cc.RoundTrip(out)
		if err == nil {
			return res, nil
		}
		switch {
		case sent.failed() != nil:
			return nil, sent.failed()
		case notProcessed(err):
			return nil, fmt.Errorf("%w: %w", ErrPeer, err)
		case sent.headers.Load():
			return nil, &LostError{Cause: err}
		case again || !sent.reopen():
			return nil, fmt.Errorf("%w: %w", ErrPeer, err)
		}
	}
}

// goneAway is what the transport says, by an error of its own, of a request that
// came after the last one which a peer that leaves has taken.
const goneAway = "http2: Transport received Server's graceful shutdown GOAWAY"

// notProcessed tells whether the peer has said that it did nothing with the
// request (RFC 9113, section 8.7).
func notProcessed(err error) bool {
	var reset http2.StreamError
	return errors.As(err, &reset) && reset.Code == http2.ErrCodeRefusedStream || err.Error() == goneAway
}
