package live

import (
	"errors"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/observe"
	"github.com/signalbox-mcp/signalbox/internal/session"
)

// errOperator is why a session ended that an operator has ended.
var errOperator = errors.New("an operator ended the session")

// ErrAmbiguous: several sessions have the same short hash.
var ErrAmbiguous = errors.New("several sessions have this hash")

// View is what operators may see of a session.
type View struct {
	Hash          string // short; the id itself is nobody's business
	Server        string
	Principal     string // as in logs; "" where no message has told this process
	Transport     session.Transport
	Revision      mcp.Revision // negotiated; "" before that
	Client        string       // as it calls itself; "" where another process has seen its initialize
	ClientVersion string
	Created       time.Time // here, where another process has opened it
	LastSeen      time.Time
	Calls         int // in flight
	Streams       int // open
	Accepted      bool
}

func (s *Session) viewLocked() View {
	return View{
		Hash: s.Hash(), Server: s.backend.Name, Principal: nameOf(s.who), Transport: s.transport, Revision: s.revision,
		Client: s.seen.client, ClientVersion: s.seen.clientVersion, Created: s.created, LastSeen: s.lastUse,
		Calls: s.calls, Streams: s.readers, Accepted: s.accepted,
	}
}

// Views returns the sessions of this process, those that are just beginning
// included, oldest first.
func (m *Manager) Views() []View {
	m.mu.Lock()
	list := m.listLocked()
	m.mu.Unlock()
	views := make([]View, 0, len(list))
	for _, s := range list {
		s.mu.Lock()
		if !s.ended {
			views = append(views, s.viewLocked())
		}
		s.mu.Unlock()
	}
	slices.SortFunc(views, func(a, b View) int { return a.Created.Compare(b.Created) })
	return views
}

// byHash finds a session of this process. ErrNotFound, ErrAmbiguous.
func (m *Manager) byHash(hash string) (*Session, error) {
	m.mu.Lock()
	list := m.listLocked()
	m.mu.Unlock()
	list = slices.DeleteFunc(list, func(s *Session) bool { return s.Hash() != hash })
	switch len(list) {
	case 0:
		return nil, ErrNotFound
	case 1:
		return list[0], nil
	}
	return nil, ErrAmbiguous
}

// Inspect returns one session of this process and its last messages, oldest
// first. ErrNotFound, ErrAmbiguous.
func (m *Manager) Inspect(hash string) (View, []observe.Message, error) {
	s, err := m.byHash(hash)
	if err != nil {
		return View{}, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.viewLocked(), s.seen.tape.Messages(), nil
}

// EndByHash ends a session of this process, on all replicas. ErrNotFound,
// ErrAmbiguous.
func (m *Manager) EndByHash(hash string) error {
	s, err := m.byHash(hash)
	if err != nil {
		return err
	}
	s.end(errOperator)
	return nil
}
