package live

import (
	"container/list"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// Takes says which bodies a client accepts as the answer to a POST.
type Takes uint8

const (
	TakesBoth Takes = iota // JSON or an event stream, as the answer comes
	TakesJSON              // JSON only
	TakesSSE               // an event stream only
)

// Event is one message of a stream.
type Event struct {
	Seq  uint64 // position in its stream, from 1
	Data []byte // one JSON-RPC message; not to be changed

	buffer []byte // see Frame
	Reply  bool   // the response of a call
}

// kind tells what becomes of an event whose reader is too far behind.
type kind uint8

const (
	loose     kind = iota // its reader is cut off, and can come back
	droppable             // it is dropped: it only tells how something goes on
	reply                 // see Reader.admitLocked
	kinds
)

func kindOf(f *upstream.Frame) kind {
	switch {
	case f.Relation == upstream.Reply:
		return reply
	case f.Method == mcp.NotifProgress, f.Method == mcp.NotifMessage:
		return droppable
	}
	return loose
}

// Stream is the answer to one POST, or a session's own stream (number 0): a
// bounded log of events which a Reader follows. Guarded by Session.mu.
type Stream struct {
	s          *Session
	n          uint64
	takes      Takes
	own        bool // the session's own stream: lives as long as the session
	log        []Event
	dropped    uint64 // events no longer held: log[0] has position dropped+1
	size       int    // bytes in log
	sent       uint64 // the last position that a Reader was handed; one that leaves gives back what it had not written
	sinks      []*callSink
	ended      bool
	keep       bool   // a client got an event id of it, so it can be resumed
	opened     bool   // a client got an event id of it, even if the session has ended since
	retryAfter string // of the server's refusal to the call, if it had one
	lost       int    // error replies in log because the server has lost the session
	reader     *Reader
	lag        lag                // of the last reply that a reader has to write
	rank       rank               // changed under shelf.mu, too
	place      *list.Element      // in the shelf; guarded by shelf.mu
	queued     map[mcp.Method]int // list changes that wait for a reader, coalesced
}

func (st *Stream) last() uint64 { return st.dropped + uint64(len(st.log)) }

// appendLocked adds an event and wakes the reader. For one that is too far
// behind, what is droppable is dropped. Anything else cuts it off: its client
// can come back for what the log still holds.
func (st *Stream) appendLocked(data []byte, k kind) (cut bool) {
	return st.appendInLocked(data, nil, k)
}

// appendInLocked is appendLocked for data that lies in a buffer of a pool.
func (st *Stream) appendInLocked(data, buffer []byte, k kind) (cut bool) {
	if st.ended {
		return false
	}
	r := st.reader
	behind := r != nil && !r.admitLocked(k, len(data))
	if behind && k == droppable {
		st.s.m.cfg.Metrics.drops.Inc()
		st.s.droppedLocked("slow_reader")
		return false
	}
	st.log = append(st.log, Event{Seq: st.last() + 1, Data: data, buffer: buffer, Reply: k == reply})
	st.addSize(len(data))
	switch {
	case behind:
		st.s.m.cfg.Metrics.slow.Inc()
		st.s.droppedLocked("stream_cut_off")
		st.keep = true // its client hears where to come back to
		r.cutLocked(ErrTooSlow)
	case r != nil:
		r.wakeUp()
	}
	st.trimLocked()
	return behind
}

func (st *Stream) unsentBytes(pos uint64) int {
	n := 0
	for _, e := range st.log[pos-st.dropped:] {
		n += len(e.Data)
	}
	return n
}

func (st *Stream) addSize(n int) {
	st.size += n
	st.s.logged += n
	st.s.m.cfg.Metrics.logged.Add(int64(n))
	st.rankLocked()
}

// trimLocked drops the oldest events until the log is within its bounds. What
// no client has had yet stays (it has bounds of its own), and so does the
// newest event where there is no reader: a client may come back for it.
func (st *Stream) trimLocked() {
	cfg := &st.s.m.cfg
	limit := cfg.LogBytes
	if st.s.transport == legacy || st.s.logged > cfg.SessionLogBytes || cfg.Metrics.logged.Load() > cfg.AllLogBytes {
		limit = 0
	}
	floor := min(st.sent, max(st.last(), 1)-1)
	if st.reader != nil {
		floor = st.reader.pos
	}
	n := 0
	size := st.size
	for n < len(st.log) && st.dropped+uint64(n) < floor && (size > limit || len(st.log)-n > cfg.LogEvents) {
		size -= len(st.log[n].Data)
		n++
	}
	if n == 0 {
		return
	}
	clear(st.log[:n])
	st.log = st.log[n:]
	st.dropped += uint64(n)
	st.addSize(size - st.size)
}

// freeLocked gives the log back.
func (st *Stream) freeLocked() {
	st.addSize(-st.size)
	st.dropped = st.last()
	st.log = nil
}

// lostLocked: the stream is over, and says nothing but that the server has lost
// the session, to a client that has seen nothing of it yet.
func (st *Stream) lostLocked() bool {
	return st.ended && st.lost > 0 && uint64(st.lost) == st.last() && !st.own && !st.opened
}

// endLocked: nothing will follow. The reader still gets what is there.
func (st *Stream) endLocked() {
	st.ended = true
	if st.reader != nil {
		st.reader.wakeUp()
	}
}

// roomLocked tells whether an event that waits for a reader may be kept.
func (st *Stream) roomLocked(n int) bool {
	waiting := st.last() - max(st.sent, st.dropped)
	return waiting < uint64(st.s.m.cfg.WaitingEvents) && (waiting == 0 || st.unsentBytes(max(st.sent, st.dropped))+n <= st.s.m.cfg.WaitingBytes)
}

// eventsSink takes what the server sends unasked, for the session's own
// stream. It is of one initialize, for that of a legacy session may be repeated.
type eventsSink struct {
	s    *Session
	init *callSink
}

func (e eventsSink) Deliver(f upstream.Frame) upstream.Verdict {
	s := e.s
	s.mu.Lock()
	verdict, cut := e.deliverLocked(f)
	s.mu.Unlock()
	s.delivered(cut)
	return verdict
}

func (e eventsSink) deliverLocked(f upstream.Frame) (verdict upstream.Verdict, cut bool) {
	s := e.s
	st := s.own
	switch {
	case st.ended || s.opener != e.init:
		return upstream.Closed, false
	case st.reader != nil:
	case f.Relation != upstream.Waiting:
		return upstream.NoTaker, false
	case f.Method.IsListChanged() && st.queued[f.Method] > 0:
		return upstream.Taken, false // one that waits says the same
	case !st.roomLocked(len(f.Data)):
		return upstream.NoTaker, false
	case f.Method.IsListChanged():
		if st.queued == nil {
			st.queued = make(map[mcp.Method]int)
		}
		st.queued[f.Method]++
	}
	cut = st.appendLocked(f.Data, kindOf(&f))
	s.sentLocked(&f, nil)
	return upstream.Taken, cut
}

// End ends the session, unless it was its initialize that failed.
func (e eventsSink) End(reason error) {
	e.s.mu.Lock()
	current := e.s.opener == e.init
	e.s.mu.Unlock()
	if current {
		e.s.end(reason)
	}
}
