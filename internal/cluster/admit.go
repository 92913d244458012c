package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// admit tells whether the certificate is of a registered replica, and of which.
// One that is unknown causes a List, at most one in listPause for all who ask;
// where the store is out of reach those known from before are admitted.
// Errors: ErrPeer for a stranger, session.ErrUnavailable.
func (m *members) admit(ctx context.Context, f fingerprint) (id string, err error) {
	came := time.Now()
	for {
		m.mu.Lock()
		id, listed := m.prints[f], m.listed
		m.mu.Unlock()
		switch {
		case id != "":
			return id, nil
		case listed.After(came): // a peer registers before it dials
			return "", ErrPeer
		}
		done := m.flight.DoChan("list", func() (any, error) { return nil, m.listSoon() })
		select {
		case r := <-done:
			if r.Err != nil {
				return "", r.Err
			}
		case <-ctx.Done():
			return "", unavailable(ctx.Err())
		}
	}
}

// listSoon lists, listPause after the last list at the earliest.
func (m *members) listSoon() error {
	m.mu.Lock()
	wait := time.Until(m.listed.Add(listPause))
	m.mu.Unlock()
	select {
	case <-time.After(wait):
	case <-m.life.Done():
		return fmt.Errorf("%w: this replica is leaving", session.ErrUnavailable)
	}
	_, err := m.list()
	return err
}
