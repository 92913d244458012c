package live

import (
	"container/list"
	"sync"
)

// rank says which streams give way when all logs together hold too much.
type rank uint8

const (
	stays rank = iota // being read, a session's own, or empty
	had               // first: its client has had all of it
	owed              // then: what no client has had
	ranks
)

// shelf holds the streams that may give way, by rank, and in each the one first
// that has stood there longest. Its mutex is taken under Session.mu, never the
// other way round.
type shelf struct {
	mu   sync.Mutex
	rows [ranks]list.List // of *Stream; that of stays is empty
}

func (h *shelf) move(st *Stream, to rank) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if st.place != nil {
		h.rows[st.rank].Remove(st.place)
	}
	st.rank, st.place = to, nil
	if to != stays {
		st.place = h.rows[to].PushBack(st)
	}
}

// first is the stream to give way next; nil: there is none.
func (h *shelf) first() *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.rows {
		if e := h.rows[i].Front(); e != nil {
			return e.Value.(*Stream)
		}
	}
	return nil
}

// rankLocked puts the stream where it belongs. It is called after everything
// that could change that.
func (st *Stream) rankLocked() {
	to := stays
	switch {
	case st.own || st.reader != nil || st.size == 0:
	case st.sent >= st.last():
		to = had
	default:
		to = owed
	}
	if to != st.rank {
		st.s.m.shelf.move(st, to)
	}
}

// makeRoom lets streams give way until all logs together are within their
// bound, or what is left is being read. It is called without any Session.mu,
// after everything that could have made them larger.
func (m *Manager) makeRoom() {
	for m.cfg.Metrics.logged.Load() > m.cfg.AllLogBytes {
		st := m.shelf.first()
		if st == nil {
			return
		}
		st.s.giveWay(st)
	}
}

// giveWay frees what a stream holds. Its client gets ErrPosition if it asks for
// any of it.
func (s *Session) giveWay(st *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch st.rank {
	case stays: // by now: it is being read again, or gone
		return
	case owed:
		s.m.cfg.Metrics.givenUp.Inc()
	}
	if st.ended {
		s.kept = without(s.kept, st)
		s.forgetLocked(st)
	} else {
		st.freeLocked()
	}
}
