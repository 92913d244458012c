package bridge

import (
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Member is one of several servers that do the same for different clients.
type Member interface {
	upstream.Asker
	Close()
}

// Fleet is a server of the per-request era with a process for each of those who
// must not share one. It implements upstream.Asker.
type Fleet struct {
	key  func(upstream.Request) string
	make func(upstream.Request) Member
	idle time.Duration

	mu      sync.Mutex
	closed  bool
	members map[string]*berth
}

// berth is the place of a member, with what it is used for.
type berth struct {
	member Member
	open   int         // requests
	timer  *time.Timer // closes it; nil while it is in use
}

// NewFleet makes the fleet. key says who may share a process; make makes it, for
// the first request of such; one that nobody has used for the time idle is closed.
func NewFleet(key func(upstream.Request) string, make_ func(upstream.Request) Member, idle time.Duration) *Fleet {
	return &Fleet{key: key, make: make_, idle: idle, members: make(map[string]*berth)}
}

// Ask sends a request to the process of its like.
func (f *Fleet) Ask(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	key := f.key(req)
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil, upstream.ErrShutdown
	}
	b := f.members[key]
	if b == nil {
		b = &berth{member: f.make(req)}
		f.members[key] = b
	}
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.open++
	f.mu.Unlock()
	call, err := b.member.Ask(req, &aboard{sink, f, key, b})
	if err != nil {
		f.left(key, b)
	}
	return call, err
}

// aboard notices the end of a request.
type aboard struct {
	upstream.Sink
	f   *Fleet
	key string
	b   *berth
}

func (a *aboard) End(reason error) {
	a.f.left(a.key, a.b)
	a.Sink.End(reason)
}

func (f *Fleet) left(key string, b *berth) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if b.open--; b.open > 0 || f.closed {
		return
	}
	b.timer = time.AfterFunc(f.idle, func() { f.retire(key, b) })
}

func (f *Fleet) retire(key string, b *berth) {
	f.mu.Lock()
	idle := b.timer != nil && b.open == 0 && f.members[key] == b
	if idle {
		delete(f.members, key)
	}
	f.mu.Unlock()
	if idle {
		b.member.Close()
	}
}

// Close ends all.
func (f *Fleet) Close() {
	f.mu.Lock()
	f.closed = true
	members := f.members
	f.members = nil
	f.mu.Unlock()
	for _, b := range members {
		if b.timer != nil {
			b.timer.Stop()
		}
		b.member.Close()
	}
}
