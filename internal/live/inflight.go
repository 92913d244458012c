package live

import (
	"sync"
	"sync/atomic"
)

// inFlight bounds the calls that wait for their answer: those of this process,
// and those of each principal. A place is taken before anything is sent to a
// server and given back with the answer, so that a client which has it may send
// the next call at once. Its mutex is taken under Session.mu.
type inFlight struct {
	max, maxOf int // of a principal; 0: no limit
	used       atomic.Int64

	mu sync.Mutex
	of map[string]int // by principal; unused without a limit
}

func newInFlight(l *Limits) *inFlight {
	return &inFlight{max: l.AllCalls, maxOf: l.PrincipalCalls, of: make(map[string]int)}
}

// take takes n places, or none and returns ErrPrincipalCalls or ErrAllCalls.
func (f *inFlight) take(principal string, n int) error {
	if !f.takeOf(principal, n) {
		return ErrPrincipalCalls
	}
	for {
		used := f.used.Load()
		if f.max > 0 && used+int64(n) > int64(f.max) {
			f.giveOf(principal, n)
			return ErrAllCalls
		}
		if f.used.CompareAndSwap(used, used+int64(n)) {
			return nil
		}
	}
}

// give gives one place back.
func (f *inFlight) give(principal string) {
	f.used.Add(-1)
	f.giveOf(principal, 1)
}

func (f *inFlight) takeOf(principal string, n int) bool {
	if f.maxOf == 0 || n == 0 {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[principal]+n > f.maxOf {
		return false
	}
	f.of[principal] += n
	return true
}

func (f *inFlight) giveOf(principal string, n int) {
	if f.maxOf == 0 || n == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of[principal] -= n; f.of[principal] == 0 {
		delete(f.of, principal)
	}
}
