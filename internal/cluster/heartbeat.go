package cluster

import (
	"context"
	"time"
)

// retries is how many times in a heartbeat's pause the store is tried while it
// is out of reach, so that this replica is registered again soon after.
const retries = 6

// run registers this replica and keeps it registered until the node leaves. It is a
// goroutine of the node.
func (m *members) run() {
	defer close(m.done)
	for {
		pause := m.heartbeat
		if !m.beat() {
			pause /= retries
		}
		select {
		case <-time.After(pause):
		case <-m.life.Done():
			return
		}
	}
}

// beat lists and registers. The list comes first, to see whether the own lease
// ran out. It tells whether the store took both.
func (m *members) beat() bool {
	listed, listErr := m.list()
	ctx, cancel := context.WithTimeout(m.life, storeTimeout)
	defer cancel()
	put := time.Now()
	err := m.registry.Put(ctx, m.self.id, m.value, m.lease)
	if err == nil {
		err = listErr
	}
	if err != nil {
		if m.life.Err() == nil {
			m.lost(err)
		}
		return false
	}
	// A process that was stopped for long sees no failure; what happened to its
	// lease meanwhile shows in the list, or by how long it may have been since the
	// last registration until this one.
	lapsed := !m.renewed.IsZero() && (!listed || time.Since(m.renewed) >= m.lease)
	m.found(lapsed)
	m.renewed = put
	return true
}

func (m *members) lost(err error) {
	m.metrics.failures.Inc()
	if !m.failed {
		m.log.Error("the store is out of reach for the registration of this replica; trying on", "err", err)
	}
	m.failed = true
	m.mu.Lock()
	m.out = true
	m.mu.Unlock()
}

// found notes that the store is in reach. lapsed: this replica was not
// registered for a while.
func (m *members) found(lapsed bool) {
	first, back := m.renewed.IsZero(), m.failed || lapsed
	now := time.Now()
	m.mu.Lock()
	m.out = false
	switch {
	case first:
		m.trust = now.Add(m.heartbeat)
	case back:
		m.trust = now.Add(m.lease)
	}
	m.mu.Unlock()
	m.failed = false
	if first || !back {
		return
	}
	m.log.Warn("this replica is registered again; sessions that were ended meanwhile elsewhere end here")
	select {
	case m.back <- struct{}{}:
	default: // the hook is due anyway
	}
}

// registered tells whether the last heartbeat succeeded.
func (m *members) registered() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.out
}
