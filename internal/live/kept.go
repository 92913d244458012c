package live

import "slices"

// retireLocked forgets a stream that is over, unless a client may resume it.
// Only so many, and so many bytes, are kept of one session; see shelf for the
// bytes of all.
func (s *Session) retireLocked(st *Stream) {
	if !st.keep || s.lone {
		s.forgetLocked(st)
		return
	}
	s.kept = append(without(s.kept, st), st) // read once more: it counts as new
	cfg := &s.m.cfg
	for len(s.kept) > 0 && (len(s.kept) > cfg.KeptStreams || s.logged > cfg.SessionLogBytes) {
		old := s.kept[0]
		if old == st && old.sent < old.last() {
			break // its client has not had the answer yet
		}
		s.kept = s.kept[1:]
		if old.reader != nil {
			continue // being read again; it comes back here
		}
		s.forgetLocked(old)
	}
}

func (s *Session) forgetLocked(st *Stream) {
	st.freeLocked()
	delete(s.streams, st.n)
}

// detachLocked notes that a call goes on without a client, and returns the
// oldest such stream where they are too many.
func (s *Session) detachLocked(st *Stream) (drop *Stream) {
	s.detached = append(without(s.detached, st), st)
	if len(s.detached) <= s.m.cfg.MaxDetached {
		return nil
	}
	drop, s.detached = s.detached[0], s.detached[1:]
	return drop
}

func without(list []*Stream, st *Stream) []*Stream {
	return slices.DeleteFunc(list, func(o *Stream) bool { return o == st })
}
