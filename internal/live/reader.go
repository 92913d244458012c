package live

// Reader is one HTTP exchange that follows a stream. A stream has at most one;
// a new one takes over. Its methods are called by one goroutine.
type Reader struct {
	st   *Stream
	wake chan struct{}

	// guarded by Session.mu
	pos uint64 // the last position handed out
	err error  // why it was cut off
}

func (st *Stream) attachLocked(pos uint64) *Reader {
	if st.reader != nil {
		st.reader.cutLocked(ErrTakenOver)
	}
	r := &Reader{st: st, wake: make(chan struct{}, 1), pos: pos}
	st.reader = r
	st.s.readers++
	r.wakeUp() // there may be something to fetch
	return r
}

func (r *Reader) wakeUp() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *Reader) cutLocked(reason error) {
	r.err = reason
	r.detachLocked()
	r.wakeUp()
}

func (r *Reader) detachLocked() {
	if r.st.reader == r {
		r.st.reader = nil
		r.st.s.readers--
		r.st.s.usedLocked()
	}
}

// Wake gets a value when Take may have something new.
func (r *Reader) Wake() <-chan struct{} { return r.wake }

// Take appends to buf what came since the last Take. over: the stream has
// ended and nothing follows. err tells why the reader was cut off.
func (r *Reader) Take(buf []Event) (events []Event, over bool, err error) {
	st := r.st
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if r.err != nil {
		return buf, false, r.err
	}
	if r.pos < st.last() {
		events = append(buf, st.log[r.pos-st.dropped:]...)
		r.pos = st.last()
		st.sent = max(st.sent, r.pos)
		clear(st.queued)
	} else {
		events = buf
	}
	return events, st.ended, nil
}

// Close leaves the stream. Calls that are still open go on without a reader
// (leaving is no cancel in the handshake era), but only so many of a session.
func (r *Reader) Close() {
	s := r.st.s
	s.mu.Lock()
	attached := r.st.reader == r
	r.detachLocked()
	var drop *Stream
	switch {
	case !attached || r.st.own:
	case r.st.ended:
		s.retireLocked(r.st)
	default:
		s.detached = append(s.detached, r.st)
		if len(s.detached) > s.m.cfg.MaxDetached {
			drop = s.detached[0]
			s.detached = s.detached[1:]
		}
	}
	s.mu.Unlock()
	if drop != nil {
		s.cancelAll(drop, errAbandoned)
	}
}

// Keep makes the stream resumable: its client is about to get an event id.
func (r *Reader) Keep() {
	r.st.s.mu.Lock()
	r.st.keep = true
	r.st.s.mu.Unlock()
}

// Position is the last position handed out: where a new stream begins.
func (r *Reader) Position() uint64 { return r.pos }

// EventID is the id under which the client can ask for what follows seq.
func (r *Reader) EventID(seq uint64) string { return r.st.s.eventID(r.st, seq) }

// Calls is the number of calls of the stream that are still open.
func (r *Reader) Calls() int {
	r.st.s.mu.Lock()
	defer r.st.s.mu.Unlock()
	return len(r.st.sinks)
}
