package observe

import (
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// BucketWidth is the time that one Bucket is for.
	BucketWidth = 10 * time.Second
	// Buckets is how many of them a series has: 15 minutes.
	Buckets = 90
)

// Bucket is what happened in one BucketWidth.
type Bucket struct {
	Start    time.Time
	Calls    int           // that ended
	Measured int           // answers whose added time is known
	Median   time.Duration // added by Signalbox; 0 where nothing was measured
	P99      time.Duration // the same
	Max      time.Duration // the same, exact; the two above are known to a quarter
}

// series is a ring of buckets. Only the first to come in a bucket's time takes
// its mutex.
type series struct {
	mu   sync.Mutex // for starting a bucket anew
	ring [Buckets + 1]bucket
}

type bucket struct {
	slot     atomic.Int64 // time since 1970 in BucketWidth
	calls    atomic.Int64
	max      atomic.Int64 // nanoseconds
	measured [classes]atomic.Uint32
}

// classes are the steps of a time from 1 µs on: four for each doubling, up to a
// minute and more.
const (
	classBits = 2
	classes   = 27 << classBits
)

// classOf is the class of a time; see upper.
func classOf(d time.Duration) int {
	us := max(uint64(max(d, 0)/time.Microsecond), 1)
	exp := bits.Len64(us) - 1
	step := int(us<<classBits>>exp) & (1<<classBits - 1)
	return min(exp<<classBits|step, classes-1)
}

// upper is the end of a class: all times in it are less.
func upper(class int) time.Duration {
	exp, step := class>>classBits, class&(1<<classBits-1)
	return time.Duration((uint64(1<<classBits+step+1) << exp) >> classBits * uint64(time.Microsecond))
}

// at is the bucket of now.
func (s *series) at(now time.Time) *bucket {
	slot := now.UnixNano() / int64(BucketWidth)
	b := &s.ring[slot%int64(len(s.ring))]
	if b.slot.Load() != slot {
		s.renew(b, slot)
	}
	return b
}

func (s *series) renew(b *bucket, slot int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.slot.Load() >= slot {
		return
	}
	b.calls.Store(0)
	b.max.Store(0)
	for i := range b.measured {
		b.measured[i].Store(0)
	}
	b.slot.Store(slot)
}

func (b *bucket) add(d time.Duration) {
	b.measured[classOf(d)].Add(1)
	for {
		high := b.max.Load()
		if int64(d) <= high || b.max.CompareAndSwap(high, int64(d)) {
			return
		}
	}
}

func (s *series) last(now time.Time) []Bucket {
	slot := now.UnixNano() / int64(BucketWidth)
	list := make([]Bucket, Buckets)
	for i := range list {
		at := slot - int64(Buckets-1-i)
		list[i].Start = time.Unix(0, at*int64(BucketWidth)).UTC()
		if b := &s.ring[at%int64(len(s.ring))]; b.slot.Load() == at {
			b.read(&list[i])
		}
	}
	return list
}

func (b *bucket) read(into *Bucket) {
	into.Calls, into.Max = int(b.calls.Load()), time.Duration(b.max.Load())
	var counts [classes]int
	for i := range counts {
		counts[i] = int(b.measured[i].Load())
		into.Measured += counts[i]
	}
	into.Median, into.P99 = quantile(&counts, into.Measured, 50), quantile(&counts, into.Measured, 99)
	into.Median, into.P99 = min(into.Median, into.Max), min(into.P99, into.Max)
}

// quantile is the time that percent of n are not above.
func quantile(counts *[classes]int, n, percent int) time.Duration {
	if n == 0 {
		return 0
	}
	rank := (n*percent + 99) / 100
	for class, c := range counts {
		if rank -= c; rank <= 0 {
			return upper(class)
		}
	}
	return upper(classes - 1)
}
