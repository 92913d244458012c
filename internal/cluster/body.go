package cluster

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// outBody is a request's body on its way to a peer. HTTP/2 reads it in a
// goroutine that may outlive the exchange, while the caller's body may not be
// touched after that: stop sees to it.
type outBody struct {
	length  int64       // -1: not known; 0: no body
	headers atomic.Bool // the request may have reached the peer

	r       io.Reader
	unblock func() // ends a Read that waits for the client; nil: none does

	mu      sync.Mutex
	begun   bool          // something has been read
	replied bool          // the peer has begun to answer
	closed  bool          // no Read may begin
	cut     bool          // unblock has been called
	reading chan struct{} // closed when the Read under way is over; nil: none is
	err     error         // what a Read gave, but for io.EOF
}

var errBodyClosed = errors.New("the exchange is over")

func newOutBody(w http.ResponseWriter, r *http.Request, body io.Reader) *outBody {
	if sized, ok := body.(interface{ Len() int }); ok {
		return &outBody{r: body, length: int64(sized.Len())}
	}
	if body == nil {
		body = r.Body
	}
	if r.ContentLength == 0 || body == nil || body == http.NoBody {
		return &outBody{}
	}
	control := http.NewResponseController(w)
	_ = control.EnableFullDuplex() // HTTP/1: the answer may begin before the body is all read
	return &outBody{r: body, length: r.ContentLength, unblock: func() { _ = control.SetReadDeadline(time.Now()) }}
}

// Read implements io.Reader, for one goroutine.
func (b *outBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return 0, errBodyClosed
	}
	over := make(chan struct{})
	b.begun, b.reading = true, over
	b.mu.Unlock()

	n, err := b.r.Read(p)

	b.mu.Lock()
	b.reading = nil
	if err != nil && err != io.EOF && !b.closed {
		b.err = err
	}
	b.mu.Unlock()
	close(over)
	return n, err
}

// Close implements io.Closer, for HTTP/2: it wants no more. Where that is
// because the connection broke, a Read that waits for a slow client is ended;
// the client's connection is not of use for a next request then. Where the peer
// has answered it goes on, so as not to disturb the answer.
func (b *outBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if !b.replied {
		b.cutLocked()
	}
	return nil
}

// stop returns when nobody reads the body, and nobody will.
func (b *outBody) stop() {
	b.mu.Lock()
	b.closed = true
	reading := b.reading
	b.cutLocked()
	b.mu.Unlock()
	if reading != nil {
		<-reading
	}
}

// cutLocked ends a Read that waits for the client.
func (b *outBody) cutLocked() {
	if b.reading != nil && b.unblock != nil {
		b.cut = true
		b.unblock()
	}
}

// gaveUp tells whether a Read of a client that is there has been ended.
func (b *outBody) gaveUp() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cut
}

// answered notes that the peer has begun to answer.
func (b *outBody) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replied = true
}

// failed returns what reading the body gave.
func (b *outBody) failed() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// reopen makes a body that nobody has read from good for another try.
func (b *outBody) reopen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		b.closed = false
	}
	return !b.begun
}
