package process

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// checkingSink fails the test when the contract of upstream.Sink is broken: a
// second End, a Reply after End or a second Reply, End(nil) without a Reply, an
// error after one. It takes the hub's lock each time, so that a call under that
// lock hangs, and looks at the tables.
type checkingSink struct {
	t    testing.TB
	name string
	hub  func() *hub                       // nil result: not known yet
	note func(name, what string, b []byte) // may be nil

	mu      sync.Mutex
	isCall  bool
	reads   bool // a client reads here at this moment: takes what is loose, and what is its own
	keeps   bool // takes what has to wait for a reader
	replied bool
	ends    int
	err     error
	reply   []byte
}

func newCallSink(t testing.TB, name string, h func() *hub) *checkingSink {
	return &checkingSink{t: t, name: name, hub: h, isCall: true, reads: true}
}

func newEventsSink(t testing.TB, name string, h func() *hub) *checkingSink {
	return &checkingSink{t: t, name: name, hub: h, keeps: true}
}

func (s *checkingSink) Deliver(f upstream.Frame) upstream.Verdict {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	what := map[upstream.Relation]string{upstream.Reply: "reply", upstream.Own: "own", upstream.Loose: "loose", upstream.Waiting: "later"}[f.Relation]
	switch {
	case what == "":
		s.t.Errorf("%s: relation %d", s.name, f.Relation)
	case f.Relation == upstream.Reply:
		if s.ends > 0 || s.replied || !s.isCall {
			s.t.Errorf("%s: reply %s after %d ends, replied before: %v", s.name, f.Data, s.ends, s.replied)
		}
		s.replied = true
		s.reply = append([]byte(nil), f.Data...)
	case s.ends > 0:
		return upstream.Closed
	case f.Relation == upstream.Waiting && !s.keeps, f.Relation != upstream.Waiting && !s.reads:
		return upstream.NoTaker
	}
	if s.note != nil {
		s.note(s.name, what, append([]byte(nil), f.Data...))
	}
	for i := range f.Data { // they are the sink's now
		f.Data[i] = 'X'
	}
	return upstream.Taken
}

func (s *checkingSink) End(err error) {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends++
	s.err = err
	switch {
	case s.ends > 1:
		s.t.Errorf("%s: ended %d times, now with %v", s.name, s.ends, err)
	case s.isCall && s.replied != (err == nil):
		s.t.Errorf("%s: ended with %v, replied: %v", s.name, err, s.replied)
	}
	if err != nil && s.note != nil {
		e := upstream.RPCError(err)
		s.note(s.name, "error", []byte(e.Reason+": "+e.Message))
	}
}

// look takes the lock that nobody may hold who calls a sink.
func (s *checkingSink) look() {
	if h := s.hub(); h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		if n := looks.Add(1); len(h.conns) < 6 || n%32 == 0 {
			h.checkLocked(s.t)
		}
	}
}

// looks counts, so that large tables are compared only now and then.
var looks atomic.Uint32

func (s *checkingSink) state() (ends int, reply string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ends, string(s.reply), s.err
}

func (s *checkingSink) set(reads bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads = reads
}
