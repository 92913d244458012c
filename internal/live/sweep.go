package live

import (
	"context"
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// sweepEvery is how soon what was ended elsewhere ends here.
const sweepEvery = 2 * time.Second

// sweep ends, here, sessions of which the record is gone: deleted through
// another replica, or while this one was cut off from the store. The store
// answers from memory what has not changed.
func (m *Manager) sweep() {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-tick.C:
		}
		m.mu.Lock()
		list := make([]*Session, 0, len(m.sessions))
		for _, s := range m.sessions {
			list = append(list, s)
		}
		m.mu.Unlock()
		for _, s := range list {
			if !m.stillThere(s) {
				break // the store is out of reach
			}
		}
	}
}

// stillThere looks one session up; false: the store cannot tell.
func (m *Manager) stillThere(s *Session) bool {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	rec, err := m.cfg.Store.Get(ctx, session.Key{Server: s.backend.Name, ID: s.id})
	switch {
	case err == nil:
		s.follow(&rec)
	case errors.Is(err, session.ErrNotFound):
		s.leave(errEndedElsewhere)
	default:
		return false
	}
	return true
}

// HomeGone deletes the record of a session whose home is no more.
func (m *Manager) HomeGone(b *Backend, id string) {
	m.chores.delete(session.Key{Server: b.Name, ID: id})
}
