// Package buf keeps large byte slices for reuse, so that a stream of large
// messages is not a stream of large allocations.
//
// Only whoever owns all of a slice may Put it: nobody may hold any part of it
// from then on. Put refuses what did not come from Get as it was, so a part of
// a buffer cannot get in by mistake.
package buf

import (
	"bytes"
	"math/bits"
	"sync"
)

const (
	minBits = 14 // 16 KiB: below, an allocation is cheaper
	maxBits = 21 // 2 MiB: above, so rare that keeping them would only hold memory
	steps   = 4  // classes between two powers of two, so that little is wasted
)

// Pool hands out buffers of a few sizes. The zero value is ready, and a nil Pool
// keeps nothing. It may be used by several goroutines at once.
type Pool struct {
	// Poison overwrites what is put back, so that tests see who still reads it.
	Poison  bool
	classes [(maxBits-minBits)*steps + 1]sync.Pool
}

// classOf is the class of buffers for n bytes, and their size; n is more than
// half of the least size.
func classOf(n int) (class, size int) {
	if n <= 1<<minBits {
		return 0, 1 << minBits
	}
	low := bits.Len(uint(n-1)) - 1 // 2^low < n <= 2^(low+1)
	step := 1 << low / steps
	q := (n - 1<<low + step - 1) / step
	return (low-minBits)*steps + q, 1<<low + q*step
}

// Get returns a slice of length n with undefined content.
func (p *Pool) Get(n int) []byte {
	if p == nil || n <= 1<<(minBits-1) || n > 1<<maxBits {
		return make([]byte, n)
	}
	class, size := classOf(n)
	if b, ok := p.classes[class].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, size)
}

// Put takes a slice back that Get returned. Others are left to the collector.
func (p *Pool) Put(b []byte) {
	n := cap(b)
	if p == nil || n < 1<<minBits || n > 1<<maxBits {
		return
	}
	class, size := classOf(n)
	if n != size {
		return
	}
	if p.Poison {
		copy(b[:n], bytes.Repeat([]byte{0xDB}, n))
	}
	b = b[:0]
	p.classes[class].Put(&b)
}
