package load

import (
	"fmt"
	"time"
)

// Held is a number of idle sessions.
type Held struct {
	sessions []*streamable // all on one connection
	streams  []*conn       // the open GET streams
}

// Hold opens n sessions over one connection that stays open, and with withStream a GET stream
// for each on a connection of its own.
func Hold(e Endpoint, n int, withStream bool) (*Held, error) {
	deadline := time.Now().Add(2 * time.Minute)
	c, err := dial(e.Addr, deadline)
	if err != nil {
		return nil, err
	}
	held := &Held{}
	for i := range n {
		s, err := openOn(c, e)
		if err != nil {
			c.close()
			held.Close()
			return nil, fmt.Errorf("session %d of %d: %w", i+1, n, err)
		}
		held.sessions = append(held.sessions, s)
		if !withStream {
			continue
		}
		stream, err := s.stream(deadline)
		if stream != nil {
			held.streams = append(held.streams, stream)
		}
		if err != nil {
			held.Close()
			return nil, fmt.Errorf("session %d of %d: %w", i+1, n, err)
		}
	}
	return held, nil
}

// Close drops the connections; the sessions are left to the server, which ends with the row.
func (h *Held) Close() {
	for _, s := range h.sessions {
		s.c.close()
	}
	for _, c := range h.streams {
		c.close()
	}
}
