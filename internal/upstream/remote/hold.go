package remote

import (
	"errors"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/h1"
)

// hold is the connection that somebody waits for, so that others can break it
// off: but not when it is back in its pool and may serve somebody else. A nil
// hold is one that nobody breaks off.
type hold struct {
	gone chan struct{} // closed by abort

	mu   sync.Mutex
	h    *h1.Conn
	over bool
}

func newHold() *hold { return &hold{gone: make(chan struct{})} }

// took notes the connection in use; false: the owner has given up.
func (o *hold) took(h *h1.Conn) bool {
	if o == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.h = h
	return !o.over
}

// put gives a connection back to its pool, which drops one that was aborted.
func (o *hold) put(p *h1.Pool, h *h1.Conn) {
	if o != nil {
		o.mu.Lock()
		o.h = nil
		over := o.over
		o.mu.Unlock()
		if over {
			p.Drop(h)
			return
		}
	}
	p.Put(h)
}

// abort makes the owner give up, wherever it waits.
func (o *hold) abort() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return
	}
	o.over = true
	close(o.gone)
	if o.h != nil {
		o.h.Abort()
	}
}

func (o *hold) aborted() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.over
}

// deadlines bounds reads and writes. Only a read may be taken up again when its
// time is over (h1.Waiter): a request that is written late is written all the same.
func (o *hold) deadlines(read, write time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.h != nil {
		o.h.SetReadDeadline(read)
		o.h.SetWriteDeadline(write)
	}
}

var errGivenUp = errors.New("given up")
