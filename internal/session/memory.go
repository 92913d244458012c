package session

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// sweepPause is the least time between two sweeps: records that expire shortly
// after each other go in one. It delays only when memory is freed; a record that
// expired is not found from that moment on.
const sweepPause = time.Second

var _ Store = (*Memory)(nil)

// Memory is the Store of one process: records are gone when it ends. Make one by
// NewMemory.
type Memory struct {
	sweeps sync.WaitGroup // timers that will run or are running

	mu      sync.Mutex
	closed  bool
	records map[Key]*entry // every entry is in queue, too
	queue   expiryQueue    // entries, the next to expire first
	timer   *time.Timer    // runs sweep; there if armed
	armed   bool
	fires   time.Time // when timer does, if armed
}

// entry is a record and when it ends. Guarded by Memory.mu.
type entry struct {
	record  Record
	idle    time.Duration
	expires time.Time
	index   int // in the queue
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{records: make(map[Key]*entry)}
}

// Create implements Store.
func (m *Memory) Create(ctx context.Context, r Record, idle time.Duration) error {
	if idle <= 0 {
		return fmt.Errorf("session: idle time is %v, must be positive", idle)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.findLocked(ctx, r.Key())
	if err == nil {
		return ErrExists
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	e := &entry{record: r.Clone(), idle: idle, expires: time.Now().Add(idle)}
	m.records[r.Key()] = e
	heap.Push(&m.queue, e)
	m.armLocked()
	return nil
}

// Get implements Store.
func (m *Memory) Get(ctx context.Context, k Key) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.findLocked(ctx, k)
	if err != nil {
		return Record{}, err
	}
	return e.record.Clone(), nil
}

// Update implements Store. It calls change once, and holds up all other calls
// meanwhile.
func (m *Memory) Update(ctx context.Context, k Key, change func(*Record) error) (Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.findLocked(ctx, k)
	if err != nil {
		return Record{}, err
	}
	r := e.record.Clone()
	if err := change(&r); err != nil {
		return Record{}, err
	}
	if r.Key() != k {
		return Record{}, errors.New("session: an update must not change the key")
	}
	r.Version = e.record.Version + 1
	e.record = r.Clone() // change may have kept the slices of r
	return r, nil
}

// Touch implements Store.
func (m *Memory) Touch(ctx context.Context, k Key, seen time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.findLocked(ctx, k)
	if err != nil {
		return err
	}
	e.record.LastSeen = seen
	e.expires = time.Now().Add(e.idle)
	heap.Fix(&m.queue, e.index)
	return nil // the timer may fire too early now, finds nothing and is set again
}

// Delete implements Store.
func (m *Memory) Delete(ctx context.Context, k Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.findLocked(ctx, k)
	if err != nil {
		return err
	}
	m.removeLocked(e)
	return nil
}

// Close implements Store. It drops all records, waits for a sweep that is under
// way and returns nil.
func (m *Memory) Close() error {
	m.mu.Lock()
	m.closed = true
	m.records, m.queue = nil, nil
	if m.armed && m.timer.Stop() {
		m.sweeps.Done()
	}
	m.armed = false
	m.mu.Unlock()
	m.sweeps.Wait()
	return nil
}

// Len returns how many records are held, those included that expired within
// about the last second.
func (m *Memory) Len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.records)
}

// findLocked returns the entry of k if it is there at this moment; one that
// expired is removed.
func (m *Memory) findLocked(ctx context.Context, k Key) (*entry, error) {
	if m.closed {
		return nil, fmt.Errorf("%w: closed", ErrUnavailable)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	e := m.records[k]
	if e == nil {
		return nil, ErrNotFound
	}
	if e.expired(time.Now()) {
		m.removeLocked(e)
		return nil, ErrNotFound
	}
	return e, nil
}

func (m *Memory) removeLocked(e *entry) {
	delete(m.records, e.record.Key())
	heap.Remove(&m.queue, e.index)
}

// armLocked sees to it that the timer fires when the first record of the queue
// expires, or a little later.
func (m *Memory) armLocked() {
	if m.closed || len(m.queue) == 0 {
		return
	}
	now := time.Now()
	wait := max(m.queue[0].expires.Sub(now), sweepPause)
	if m.armed {
		if !now.Add(wait).Before(m.fires) || !m.timer.Stop() {
			return // soon enough; or running, and then it arms again
		}
	} else {
		m.sweeps.Add(1)
	}
	m.armed, m.fires = true, now.Add(wait)
	m.timer = time.AfterFunc(wait, m.sweep)
}

// sweep removes what expired. It is the timer's goroutine.
func (m *Memory) sweep() {
	defer m.sweeps.Done()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.armed = false
	for now := time.Now(); len(m.queue) > 0 && m.queue[0].expired(now); {
		m.removeLocked(m.queue[0])
	}
	m.armLocked()
}

func (e *entry) expired(now time.Time) bool {
	return !now.Before(e.expires)
}

// expiryQueue is a container/heap of entries, the first to expire on top; an
// entry knows its place.
type expiryQueue []*entry

func (q expiryQueue) Len() int           { return len(q) }
func (q expiryQueue) Less(i, j int) bool { return q[i].expires.Before(q[j].expires) }
func (q expiryQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push implements heap.Interface.
func (q *expiryQueue) Push(x any) {
	e := x.(*entry)
	e.index = len(*q)
	*q = append(*q, e)
}

// Pop implements heap.Interface.
func (q *expiryQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return e
}
