package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

const (
	maxPeers     = 1024            // registrations that are looked at
	freshFor     = time.Second     // how long "it lives" is believed without asking again
	listPause    = time.Second     // between two lists that strangers can cause
	storeTimeout = 2 * time.Second // a store that is silent for so long is out of reach
)

// members knows who is registered, and keeps this replica's own registration
// alive. It has no network of its own.
type members struct {
	// Static after construction. life ends when the node leaves.
	life             context.Context
	registry         Registry
	self             registration
	value            []byte // self, encoded
	key              []byte // of the MACs
	heartbeat, lease time.Duration
	log              *slog.Logger
	metrics          *Metrics
	back             chan struct{}      // cap 1: this replica has come back
	done             chan struct{}      // closed when run has ended
	listedHook       func()             // after each list that was answered
	flight           singleflight.Group // of lists and of gets, by id

	mu     sync.Mutex
	known  map[string]*member     // id → who is registered, self excluded; at most maxPeers
	prints map[fingerprint]string // of known → id
	bad    map[string]fingerprint // id → hash of the value that was refused under it
	listed time.Time              // when the newest list that was answered was asked for
	trust  time.Time              // from when on "not there" is believed; see trusted
	out    bool                   // the last heartbeat failed, or none has been made

	// Owned by run.
	renewed time.Time // before the last Put that succeeded; zero: none yet
	failed  bool      // a heartbeat has failed since one succeeded
}

type member struct {
	registration
	value []byte
	seen  time.Time // before the store was asked, so never later than it answered
}

func newMembers(life context.Context, cfg *Config, self registration, key []byte) *members {
	return &members{
		life:     life,
		registry: cfg.Registry, self: self, value: self.encode(key), key: key,
		heartbeat: cfg.Heartbeat, lease: cfg.Lease, log: cfg.Log, metrics: cfg.Metrics,
		back: make(chan struct{}, 1), done: make(chan struct{}), out: true,
		known: make(map[string]*member), prints: make(map[fingerprint]string), bad: make(map[string]fingerprint),
	}
}

// lookup returns the registration of id, at most freshFor old. Errors: ErrGone,
// ErrPeer (forged), session.ErrUnavailable. It blocks for storeTimeout at most.
func (m *members) lookup(id string) (registration, error) {
	m.mu.Lock()
	if p := m.known[id]; p != nil && time.Since(p.seen) < freshFor {
		m.mu.Unlock()
		return p.registration, nil
	}
	m.mu.Unlock()
	v, err, _ := m.flight.Do("id "+id, func() (any, error) { return m.ask(id) })
	if err != nil {
		return registration{}, err
	}
	return v.(registration), nil
}

// ask is lookup at the store. It has a context of its own, for several requests
// may wait for it.
func (m *members) ask(id string) (registration, error) {
	ctx, cancel := context.WithTimeout(m.life, storeTimeout)
	defer cancel()
	asked := time.Now()
	value, err := m.registry.Get(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		if !m.trusted() {
			return registration{}, fmt.Errorf("%w: it has been in reach too short to tell who is gone", session.ErrUnavailable)
		}
		m.forget(id, asked)
		return registration{}, ErrGone
	}
	if err != nil {
		return registration{}, unavailable(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p, err := m.takeLocked(id, value, asked)
	if err != nil {
		return registration{}, fmt.Errorf("%w: its registration is refused: %w", ErrPeer, err)
	}
	return p.registration, nil
}

// trusted tells whether "not registered" means dead. When the store was out of
// reach for longer than a lease, all leases are over when it is back, and those
// who live need a moment to register again. So a replica that saw an outage (by
// its own heartbeats) waits for one lease after it, as if all leases had begun
// anew; one that has just started waits for one heartbeat.
func (m *members) trusted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.out && !time.Now().Before(m.trust)
}

func unavailable(err error) error {
	if errors.Is(err, session.ErrUnavailable) {
		return err
	}
	return fmt.Errorf("%w: %w", session.ErrUnavailable, err)
}

// list asks for all registrations and tells whether its own is among them.
func (m *members) list() (self bool, err error) {
	ctx, cancel := context.WithTimeout(m.life, storeTimeout)
	defer cancel()
	asked := time.Now()
	all, err := m.registry.List(ctx)
	if err != nil {
		return false, unavailable(err)
	}
	m.merge(all, asked)
	if m.listedHook != nil {
		m.listedHook()
	}
	_, self = all[m.self.id]
	return self, nil
}

// merge makes known what is registered, and nothing else.
func (m *members) merge(all map[string][]byte, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if asked.After(m.listed) {
		m.listed = asked
	}
	for id, value := range all {
		if id != m.self.id {
			_, _ = m.takeLocked(id, value, asked) // a refusal is counted and logged there
		}
	}
	for id, p := range m.known {
		if all[id] == nil && !p.seen.After(asked) {
			m.forgetLocked(id)
		}
	}
	for id := range m.bad {
		if all[id] == nil {
			delete(m.bad, id)
		}
	}
	m.metrics.peers.Set(float64(len(m.known)))
}

// peers returns who is known.
func (m *members) peers() []Peer {
	m.mu.Lock()
	defer m.mu.Unlock()
	var peers []Peer
	for _, p := range m.known {
		peers = append(peers, Peer{ID: p.id, Address: p.address})
	}
	return peers
}

// left is what is left of the lease of id; 0: it is over. It blocks for
// storeTimeout at most.
func (m *members) left(ctx context.Context, id string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	left, err := m.registry.Left(ctx, id)
	if errors.Is(err, session.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, unavailable(err)
	}
	return left, nil
}

func (m *members) knows(id string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[id] != nil
}

// takeLocked checks what stands in the store under id. A refusal is counted and
// logged once for each value.
func (m *members) takeLocked(id string, value []byte, asked time.Time) (*member, error) {
	if p := m.known[id]; p != nil && bytes.Equal(p.value, value) {
		if asked.After(p.seen) {
			p.seen = asked
		}
		return p, nil
	}
	r, err := decodeRegistration(m.key, id, value)
	if err != nil {
		if sum := fingerprint(sha256.Sum256(value)); m.bad[id] != sum {
			m.metrics.refuse(err.Error())
			if _, logged := m.bad[id]; !logged && len(m.bad) < maxPeers {
				m.log.Warn("a registration of a replica is refused: it was not made with the peer secret of this one (--peer-secret-file), or by another version", "reason", err.Error(), "replica", shorten(id))
			}
			if _, ok := m.bad[id]; ok || len(m.bad) < maxPeers {
				m.bad[id] = sum
			}
		}
		return nil, err
	}
	p := &member{registration: r, value: bytes.Clone(value), seen: asked}
	if m.known[id] == nil && len(m.known) >= maxPeers {
		return p, nil // used this once, not kept
	}
	m.forgetLocked(id)
	m.known[id], m.prints[r.fingerprint] = p, id
	return p, nil
}

// forget drops id, unless it has been seen after asked.
func (m *members) forget(id string, asked time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := m.known[id]; p != nil && !p.seen.After(asked) {
		m.forgetLocked(id)
		m.metrics.peers.Set(float64(len(m.known)))
	}
}

func (m *members) forgetLocked(id string) {
	if p := m.known[id]; p != nil {
		delete(m.prints, p.fingerprint)
		delete(m.known, id)
	}
}

// shorten keeps what somebody else wrote into the store from filling the log.
func shorten(id string) string {
	if len(id) > 40 {
		return id[:40] + "..."
	}
	return id
}
