package cluster

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

var _ Registry = (*Memory)(nil)

// Memory is a Registry for replicas in one process: for tests. The zero value
// is ready.
type Memory struct {
	mu     sync.Mutex
	fault  func(ctx context.Context, op string) error
	leases map[string]leased // id → value; those that are over are dropped by List
}

type leased struct {
	value []byte
	until time.Time
}

// Fault makes each following call ask f first: op is "put", "get", "list", "left"
// or "remove". An error of f is returned as session.ErrUnavailable and nothing is
// done; f may block. nil ends the faults.
func (m *Memory) Fault(f func(ctx context.Context, op string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = f
}

func (m *Memory) check(ctx context.Context, op string) error {
	m.mu.Lock()
	fault := m.fault
	m.mu.Unlock()
	err := ctx.Err()
	if err == nil && fault != nil {
		err = fault(ctx, op)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", session.ErrUnavailable, err)
	}
	return nil
}

// Put implements Registry.
func (m *Memory) Put(ctx context.Context, id string, value []byte, lease time.Duration) error {
	if lease <= 0 {
		return fmt.Errorf("cluster: lease is %v, must be positive", lease)
	}
	if err := m.check(ctx, "put"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.leases == nil {
		m.leases = make(map[string]leased)
	}
	m.leases[id] = leased{bytes.Clone(value), time.Now().Add(lease)}
	return nil
}

// Get implements Registry.
func (m *Memory) Get(ctx context.Context, id string) ([]byte, error) {
	if err := m.check(ctx, "get"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.leases[id]
	if !ok || !time.Now().Before(l.until) {
		return nil, session.ErrNotFound
	}
	return bytes.Clone(l.value), nil
}

// List implements Registry.
func (m *Memory) List(ctx context.Context) (map[string][]byte, error) {
	if err := m.check(ctx, "list"); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string][]byte, len(m.leases))
	for id, l := range m.leases {
		if time.Now().Before(l.until) {
			all[id] = bytes.Clone(l.value)
		} else {
			delete(m.leases, id)
		}
	}
	return all, nil
}

// Left implements Registry.
func (m *Memory) Left(ctx context.Context, id string) (time.Duration, error) {
	if err := m.check(ctx, "left"); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	left := time.Until(m.leases[id].until)
	if left <= 0 {
		return 0, session.ErrNotFound
	}
	return left, nil
}

// Remove implements Registry.
func (m *Memory) Remove(ctx context.Context, id string) error {
	if err := m.check(ctx, "remove"); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.leases, id)
	return nil
}
