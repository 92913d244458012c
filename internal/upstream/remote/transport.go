package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/h1"
)

// sent tells how far a request got before it failed.
type sent uint8

const (
	notSent  sent = iota // there was no connection to send it on
	mayBeRun             // the server may have got it
)

type options struct {
	deadline time.Time // for the head of the answer; zero: none
	arm      func()    // sets the deadline of hold's connection instead
	fresh    bool      // no reused connection
	hold     *hold     // who can break it off; may be nil
	sent     func()    // the request is written, or will not be; may be nil
	waiter   h1.Waiter // of the connection; may be nil
	dialing  func()    // a connection has to be made first; may be nil
}

// maxRedirects in a row, all to the server's own origin.
const maxRedirects = 3

// roundTrip sends a request and reads the head of its answer. On success the
// connection is the caller's, who puts it back. A redirect that keeps method and
// body (307, 308) is followed within the server's own origin; the server has
// not run what it redirects.
func (s *Server) roundTrip(a *address, head, body []byte, o options) (*h1.Conn, *h1.Response, sent, error) {
	refused := false
	for hop := 0; ; hop++ {
		full, token, err := s.authorized(head)
		if err != nil {
			return nil, nil, notSent, err
		}
		h, resp, state, err := s.exchange(a, full, body, o)
		if err == nil && resp.Status == http.StatusUnauthorized && token != "" && !refused {
			refused = true // nothing has run
			s.cfg.Authorizer.Refused(token)
			discard(h, resp)
			o.hold.put(a.pool, h)
			continue
		}
		if err != nil || resp.Status != http.StatusTemporaryRedirect && resp.Status != http.StatusPermanentRedirect || hop == maxRedirects {
			return h, resp, state, err
		}
		next, ok := s.redirected(head, resp.Location)
		if !ok {
			return h, resp, state, nil
		}
		discard(h, resp)
		o.hold.put(a.pool, h)
		head = next
	}
}

// redirected is head with the request line for location, unless that is of
// another origin: credentials stay where they belong.
func (s *Server) redirected(head []byte, location string) ([]byte, bool) {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	part := strings.Split(string(line), " ") // method, target, version
	from, err := s.cfg.URL.Parse(part[1])
	if err != nil || location == "" {
		return nil, false
	}
	to, err := from.Parse(location)
	if err != nil || !sameOrigin(s.cfg.URL, to) {
		return nil, false
	}
	target, ok := requestTarget(to)
	if !ok {
		return nil, false
	}
	s.redirects.Do(func() {
		s.cfg.Log.Warn("the server redirects every request; the URL in the configuration should be the one it redirects to", "path", to.Path)
	})
	return slices.Concat([]byte(part[0]+" "+target+" HTTP/1.1\r\n"), rest), true
}

func (s *Server) exchange(a *address, head, body []byte, o options) (*h1.Conn, *h1.Response, sent, error) {
	if o.sent != nil {
		defer o.sent()
	}
	h := a.pool.Idle(o.fresh)
	var err error
	if h == nil {
		if o.dialing != nil {
			o.dialing()
		}
		h, err = a.pool.Dial(s.ctx)
	}
	if err != nil {
		if s.ctx.Err() == nil && !ownFault(err) {
			s.addrs.failed(a)
		}
		return nil, nil, notSent, err
	}
	if !o.hold.took(h) {
		o.hold.put(a.pool, h)
		return nil, nil, notSent, errGivenUp
	}
	h.Watch(o.waiter)
	if o.arm != nil {
		o.arm()
	} else {
		h.SetDeadline(o.deadline)
	}
	err = h.Send(head, body)
	if o.sent != nil {
		o.sent()
	}
	if err == nil || isClosed(err) { // there may be an answer to half a request
		resp, err2 := h.Receive()
		if err2 == nil {
			return h, resp, mayBeRun, nil
		}
		if err == nil {
			err = err2
		}
	}
	reused := h.Reused
	o.hold.put(a.pool, h)
	if reused && isClosed(err) {
		return nil, nil, mayBeRun, errStale{err}
	}
	return nil, nil, mayBeRun, err
}

// errStale: a connection that had been idle was closed under the request. The
// server has almost certainly not looked at it, but may have.
type errStale struct{ error }

func (e errStale) Unwrap() error { return e.error }

func isStale(err error) bool {
	var stale errStale
	return errors.As(err, &stale)
}

// isClosed: the server closed the connection, or its machine did.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "forcibly closed") || strings.Contains(err.Error(), "connection was aborted") // Windows
}

// ownFault: no connection for want of something here, which says nothing of
// the address.
func ownFault(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, h1.ErrClosed) || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) ||
		errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.ENOBUFS) || errors.Is(err, syscall.ENOMEM)
}

// media is the type of a body, without parameters and in lower case.
func media(contentType string) string {
	if contentType == "application/json" || contentType == "text/event-stream" {
		return contentType
	}
	m, _, err := mime.ParseMediaType(contentType)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return ""
	}
	return m
}

// encoded tells whether a body is compressed, which it was asked not to be.
func encoded(resp *h1.Response) bool {
	return resp.ContentEncoding != "" && !strings.EqualFold(resp.ContentEncoding, "identity")
}

// readAll reads a body of at most limit bytes. What it allocates is bounded by
// what has come, not by what is announced.
func readAll(resp *h1.Response, limit int, buffers *buf.Pool) ([]byte, error) {
	if resp.Length > int64(limit) {
		return nil, errTooLarge
	}
	size := 4 << 10
	if resp.Length >= 0 {
		size = min(int(resp.Length), maxAhead)
	}
	b := buffers.Get(size)[:0]
	for int64(len(b)) != resp.Length {
		if len(b) == cap(b) {
			b = grow(b, resp.Length)
		}
		n, err := resp.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case len(b) > limit:
			return nil, errTooLarge
		case errors.Is(err, io.EOF):
			return b, nil
		case err != nil:
			return nil, err
		}
	}
	return b, nil
}

// maxAhead bounds the memory that a server gets by announcing a length.
const maxAhead = 4 << 20

// grow makes room: doubled while that is little, then a quarter more, or what
// is announced if that is not much more.
func grow(b []byte, announced int64) []byte {
	more := len(b)
	if more > 1<<20 {
		more /= 4
	}
	if rest := announced - int64(len(b)); rest > 0 && rest < int64(8*len(b)) {
		more = int(rest)
	}
	return append(make([]byte, 0, len(b)+max(more, 512)), b...)
}

var errBadToken = errors.New("the token cannot stand in a header")

var errTooLarge = errors.New("larger than the limit")

// discard reads a small rest of a body, so that the connection can be used
// again.
func discard(h *h1.Conn, resp *h1.Response) {
	h.SetReadDeadline(time.Now().Add(discardWait))
	scratch := scratches.Get().(*[4 << 10]byte)
	defer scratches.Put(scratch)
	for range discardReads {
		if _, err := resp.Body.Read(scratch[:]); err != nil {
			return
		}
	}
}

var scratches = sync.Pool{New: func() any { return new([4 << 10]byte) }}

const (
	discardWait  = time.Second
	discardReads = 16
)
