package remote

import (
	"iter"
	"time"
)

// A call may begin in the goroutine of the exchange that waits for it. It is a
// coroutine then: it gives control back before it waits for more after it has
// delivered something, and for good when it has waited for long.

// inlineMost is the largest request that is sent so: a larger one may have to
// wait for the server while it is written.
const inlineMost = 8 << 10

// inline is the state of a call that is run by whoever waits for it.
type inline struct {
	next  func() (alone, more bool) // nil: the call has a goroutine of its own
	yield func(alone bool) bool     // nil: it no longer gives control back
	dirty bool                      // something was delivered since it last did
}

// prepare makes the coroutine.
func (k *call) prepare() {
	k.inline.next, _ = iter.Pull(func(yield func(bool) bool) {
		k.inline.yield = yield
		k.run()
	})
}

// Run makes it an upstream.Runner.
func (k *call) Run(until time.Time) bool {
	if k.inline.next == nil {
		return false
	}
	k.c.mu.Lock()
	k.until = until
	k.c.mu.Unlock()
	alone, more := k.inline.next()
	if more && alone {
		k.Go()
		return false
	}
	return more
}

// Go lets the call go on in a goroutine of its own.
func (k *call) Go() {
	if k.inline.next == nil {
		return
	}
	go func() {
		for more := true; more; {
			_, more = k.inline.next()
		}
	}()
}

// delivered notes that whoever waits has something to look at.
func (k *call) delivered() { k.inline.dirty = true }

// Reading gives control back, if there is a reason, before the call waits.
func (k *call) Reading() {
	if k.inline.yield != nil && k.inline.dirty {
		k.inline.dirty = false
		k.inline.yield(false)
	}
}

// Late moves the call to a goroutine of its own when it has waited for long,
// from where on it has all the time that it may take.
func (k *call) Late() bool {
	if k.inline.yield == nil {
		return false
	}
	k.alone()
	k.arm()
	return true
}

// alone gives control back for good, if it was not before.
func (k *call) alone() {
	yield := k.inline.yield
	if yield == nil {
		return
	}
	k.inline.yield = nil
	k.c.mu.Lock()
	k.until = time.Time{}
	k.c.mu.Unlock()
	yield(true)
}
