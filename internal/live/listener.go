package live

import "github.com/signalbox-mcp/signalbox/internal/upstream"

// A server may send what it sends unasked only while the session's own stream
// has a reader. A legacy session has one from its first moment on, and asks
// once the client has finished the handshake.

// Listen attaches a reader to the session's own stream, after what any reader
// has fetched before. ErrDraining: signalbox is shutting down.
func (s *Session) Listen() (*Reader, error) {
	r, err := s.listen()
	s.tellListener()
	return r, err
}

func (s *Session) listen() (*Reader, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended:
		return nil, s.over()
	case s.m.Draining():
		return nil, ErrDraining
	}
	s.touchLocked()
	return s.own.attachLocked(max(s.own.sent, s.own.dropped)), nil
}

// Resume attaches a reader to the stream that the event id names, after that
// event. ErrPosition: the id is not one of this session, or the log no longer
// reaches back so far. ErrDraining: it is the session's own stream, and
// signalbox is shutting down.
func (s *Session) Resume(lastEventID string) (*Reader, error) {
	r, err := s.resume(lastEventID)
	if err == nil && r.st.own {
		s.tellListener()
	}
	return r, err
}

func (s *Session) resume(lastEventID string) (*Reader, error) {
	p, ok := s.m.parseEventID(s.backend.Name, s.id, lastEventID)
	n, seq := p.stream, p.seq
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, s.over()
	}
	st := s.streams[n]
	if n == 0 {
		st = s.own
	}
	if !ok || p.replica != s.m.cfg.Replica || st == nil || seq < st.dropped || seq > st.last() {
		return nil, ErrPosition
	}
	if st.own && s.m.Draining() {
		return nil, ErrDraining
	}
	s.touchLocked()
	s.detached = without(s.detached, st)
	return st.attachLocked(seq), nil
}

// tellListener brings the connection up to date. It is called without the
// mutex, after everything that could have given the own stream a reader or taken
// it away. One goroutine at a time talks to the connection and looks again
// afterwards, so that what the connection hears last is true.
func (s *Session) tellListener() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.telling {
		on := s.own.reader != nil && !s.ended && (s.transport != legacy || s.greeted)
		conn, ok := s.conn.(upstream.Listener)
		if !ok || on == s.told {
			return
		}
		s.told, s.telling = on, true
		s.mu.Unlock()
		conn.Listen(on)
		s.tellRecord(on)
		s.mu.Lock()
		s.telling = false
	}
}

// greet notes that the client has finished the handshake which opener began.
func (s *Session) greet(opener *callSink) {
	s.mu.Lock()
	if s.opener == opener {
		s.greeted = true
	}
	s.mu.Unlock()
	s.tellListener()
}
