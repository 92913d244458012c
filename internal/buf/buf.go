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
	minClass = 14 // 16 KiB: below, an allocation is cheaper
	maxClass = 21 // 2 MiB: above, so rare that keeping them would only hold memory
)

// Pool hands out buffers by powers of two. The zero value is ready, and a
// nil Pool keeps nothing. It may be used by several goroutines at once.
type Pool struct {
	// Poison overwrites what is put back, so that tests see who still reads it.
	Poison  bool
	classes [maxClass - minClass + 1]sync.Pool
}

// Get returns a slice of length n with undefined content.
func (p *Pool) Get(n int) []byte {
	if p == nil || n <= 1<<(minClass-1) || n > 1<<maxClass {
		return make([]byte, n)
	}
	class := max(bits.Len(uint(n-1)), minClass)
	if b, ok := p.classes[class-minClass].Get().(*[]byte); ok {
		return (*b)[:n]
	}
	return make([]byte, n, 1<<class)
}

// Put takes a slice back that Get returned. Others are left to the collector.
func (p *Pool) Put(b []byte) {
	n := cap(b)
	if p == nil || n < 1<<minClass || n > 1<<maxClass || n&(n-1) != 0 {
		return
	}
	if p.Poison {
		copy(b[:n], bytes.Repeat([]byte{0xDB}, n))
	}
	b = b[:0]
	p.classes[bits.Len(uint(n))-1-minClass].Put(&b)
}
