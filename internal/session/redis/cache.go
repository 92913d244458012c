package redis

import (
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// cache holds copies of records by the names of their keys, and the reads that
// are under way. A read that began before its key changed must leave no copy and
// answer nobody who asks after the change: so it is entered before it is sent, and
// taken out by whatever makes it old. Times here are durations which Redis gave,
// counted from before the question was sent.
type cache struct {
	max int // bytes

	mu      sync.RWMutex
	size    int
	copies  map[string]*copied
	flights map[string]*flight
}

// copied is a record as Redis had it. It is replaced, never written.
type copied struct {
	record session.Record
	size   int
	ends   time.Time // of the record; a Touch moves it
	stale  time.Time // of the copy; nothing moves it
}

// flight is a read for all who ask meanwhile.
type flight struct {
	landed chan struct{} // closed when the rest is set
	record session.Record
	err    error
}

func newCache(limit int) *cache {
	return &cache{max: limit, copies: make(map[string]*copied), flights: make(map[string]*flight)}
}

// get returns the copy of name; the caller must not write to it.
func (c *cache) get(name string, now time.Time) (session.Record, bool) {
	c.mu.RLock()
	e := c.copies[name]
	c.mu.RUnlock()
	if e == nil || !now.Before(e.ends) || !now.Before(e.stale) {
		return session.Record{}, false
	}
	return e.record, true
}

// join returns the read of name that is under way, or a new one, which is the
// caller's to carry out and to land.
func (c *cache) join(name string) (f *flight, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[name]; f != nil {
		return f, false
	}
	f = &flight{landed: make(chan struct{})}
	c.flights[name] = f
	return f, true
}

// land ends f with r or err. keep, where not nil, becomes the copy unless something
// made f old.
func (c *cache) land(name string, f *flight, r session.Record, keep *copied, err error) {
	c.mu.Lock()
	if c.flights[name] == f {
		delete(c.flights, name)
		if keep != nil {
			c.putLocked(name, keep)
		}
	}
	c.mu.Unlock()
	f.record, f.err = r, err
	close(f.landed)
}

func (c *cache) putLocked(name string, e *copied) {
	c.removeLocked(name)
	if e.size > c.max {
		return
	}
	for other := range c.copies { // any of them: a map gives them in no order
		if c.size+e.size <= c.max {
			break
		}
		c.removeLocked(other)
	}
	c.copies[name] = e
	c.size += e.size
}

func (c *cache) removeLocked(name string) {
	if e := c.copies[name]; e != nil {
		c.size -= e.size
		delete(c.copies, name)
	}
}

// drop forgets name: it has changed, or may have.
func (c *cache) drop(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(name)
	delete(c.flights, name)
}

// touch notes that this Store set LastSeen, and so when the record ends. The copy
// stays what it is otherwise.
func (c *cache) touch(name string, seen, ends time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.flights, name)
	if e := c.copies[name]; e != nil {
		n := *e
		n.record.LastSeen, n.ends = seen, ends
		c.copies[name] = &n
	}
}

// clear forgets everything: a connection broke, and with it what Redis would have
// told of changes.
func (c *cache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size = 0
	clear(c.copies)
	clear(c.flights)
}
