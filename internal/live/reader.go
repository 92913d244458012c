package live

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Reader is one HTTP exchange that follows a stream. A stream has at most one;
// a new one takes over. Its methods are called by one goroutine.
type Reader struct {
	st   *Stream
	wake chan struct{}
	call upstream.Runner // that the goroutine which reads runs itself; nil: none, or no more
	mac  string          // part of its event ids; made when first needed, by the goroutine that calls

	// guarded by Session.mu
	pos     uint64 // the last position handed out
	written uint64 // up to where the client has it, as far as is known
	behind  [kinds]backlog
	err     error // why it was cut off
}

// backlog is what of one kind was not fetched yet.
type backlog struct{ events, bytes int }

// replyRoom is how much more than QueueBytes the replies may have that wait on
// the one stream of a legacy session.
const replyRoom = 16

func (st *Stream) attachLocked(pos uint64) *Reader {
	if st.reader != nil {
		st.reader.cutLocked(ErrTakenOver)
	}
	r := &Reader{st: st, wake: make(chan struct{}, 1), pos: pos, written: pos}
	st.reader = r
	st.s.readers++
	st.rankLocked()
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
	if r.st.reader != r {
		return
	}
	r.st.reader = nil
	r.st.s.readers--
	r.st.s.usedLocked()
	r.st.writtenLocked(r.written, r.st.s.lastUse)
	r.st.lag = lag{}
	if !r.st.own { // its events are for one stream only, delivered or lost with it
		r.st.sent = min(r.st.sent, r.written)
	}
	r.st.rankLocked()
}

// admitLocked counts an event of n bytes that will wait to be fetched; false:
// the reader is too far behind for it. Each kind has its own room. The reply to
// a POST is what its client waits for, and never too much.
func (r *Reader) admitLocked(k kind, n int) bool {
	cfg := &r.st.s.m.cfg
	b, room := &r.behind[k], cfg.QueueBytes
	if k == reply {
		room *= replyRoom
	}
	full := b.events >= cfg.QueueEvents || b.events > 0 && b.bytes+n > room
	if full && (k != reply || r.st.own) {
		return false
	}
	b.events++
	b.bytes += n
	return true
}

// Wake gets a value when Take may have something new.
func (r *Reader) Wake() <-chan struct{} { return r.wake }

// Take appends to buf what came since the last Take, whose events count as
// written to the client now. over: the stream has ended and nothing follows.
// err tells why the reader was cut off, or, as long as nothing was delivered
// and Keep not called, that the server has lost the session (ErrNotFound).
func (r *Reader) Take(buf []Event) (events []Event, over bool, err error) {
	st := r.st
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	if r.err != nil {
		return buf, false, r.err
	}
	if r.pos == 0 && st.lostLocked() {
		return buf, false, errLost
	}
	r.written = r.pos
	r.behind = [kinds]backlog{}
	if st.lag.seq > 0 {
		st.writtenLocked(r.written, time.Now())
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

// RetryAfter is what the server asked a refused call to wait, as its header of
// that name says it; "" if it did not.
func (r *Reader) RetryAfter() string {
	r.st.s.mu.Lock()
	defer r.st.s.mu.Unlock()
	return r.st.retryAfter
}

// Run goes on with the call that the reader waits for, where that is to be done
// here, until there may be something to Take, or until a point in time. false:
// there is nothing to be done here but to wait for Wake.
func (r *Reader) Run(until time.Time) bool {
	if r.call == nil {
		return false
	}
	if !r.call.Run(until) {
		r.call = nil
	}
	return true
}

// Spent returns the buffer of the one reply of a stream that is over, for a
// pool, if nobody can want it again. It is called when the reply is written;
// only Close follows.
func (r *Reader) Spent() []byte {
	st := r.st
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	r.written = r.pos
	if !st.ended || st.keep || st.own || st.reader != r || len(st.log) != 1 {
		return nil
	}
	buffer := st.log[0].buffer
	st.freeLocked()
	return buffer
}

// Close leaves the stream. Calls that are still open go on without a reader
// (leaving is no cancel in the handshake era), but only so many of a session.
func (r *Reader) Close() {
	if r.call != nil {
		r.call.Go()
		r.call = nil
	}
	st, s := r.st, r.st.s
	s.mu.Lock()
	attached := st.reader == r
	r.detachLocked()
	var drop *Stream
	reason := error(errAbandoned)
	switch {
	case st.reader != nil: // another one took over
	case s.lone:
		st.freeLocked() // nobody can come back
		drop, reason = st, upstream.ErrCancelled
	case s.ended:
		st.freeLocked() // nobody can come back
	case st.own:
	case !st.ended:
		drop = s.detachLocked(st)
	case attached:
		s.retireLocked(st)
	}
	s.mu.Unlock()
	if drop != nil {
		s.cancelAll(drop, reason)
	}
	if st.own {
		s.tellListener()
	}
	s.m.makeRoom()
}

// Keep makes the stream resumable, for as long as the session lives: its client
// is about to get an event id.
func (r *Reader) Keep() {
	r.st.s.mu.Lock()
	r.st.keep = !r.st.s.ended && !r.st.s.lone
	r.st.opened = true
	r.st.s.mu.Unlock()
}

// Position is the last position handed out: where a new stream begins.
func (r *Reader) Position() uint64 { return r.pos }
