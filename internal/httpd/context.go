package httpd

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// requestContext is over when the handler has returned or the client is gone.
// Whoever asks it for that makes the connection be watched.
type requestContext struct {
	c      *conn
	wanted atomic.Bool // somebody waits for the end

	mu    sync.Mutex
	err   error
	done  chan struct{} // made when it is asked for
	after []*func()     // to be called at the end
}

var closed = func() chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}()

func (x *requestContext) Deadline() (time.Time, bool) { return time.Time{}, false }

func (x *requestContext) Done() <-chan struct{} {
	x.want()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.done == nil {
		if x.err != nil {
			return closed
		}
		x.done = make(chan struct{})
	}
	return x.done
}

func (x *requestContext) Err() error {
	x.want()
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err
}

func (x *requestContext) Value(key any) any {
	if key == http.LocalAddrContextKey {
		return x.c.local
	}
	return nil
}

// AfterFunc is how package context ties its own contexts to others without a
// goroutine for each (context.AfterFunc). f must not wait for anything.
func (x *requestContext) AfterFunc(f func()) (stop func() bool) {
	x.want()
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err != nil {
		go f() // the caller may hold what f needs
		return func() bool { return false }
	}
	entry := &f
	x.after = append(x.after, entry)
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		i := slices.Index(x.after, entry)
		if i >= 0 {
			x.after = slices.Delete(x.after, i, i+1)
		}
		return i >= 0
	}
}

func (x *requestContext) want() {
	if !x.wanted.Load() {
		x.wanted.Store(true)
		x.c.list()
	}
}

// cancel ends the context. Only the first call counts.
func (x *requestContext) cancel() {
	x.mu.Lock()
	if x.err != nil {
		x.mu.Unlock()
		return
	}
	x.err = context.Canceled
	if x.done != nil {
		close(x.done)
	}
	after := x.after
	x.after = nil
	x.mu.Unlock()
	for _, f := range after {
		(*f)()
	}
}
