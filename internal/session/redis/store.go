package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

var _ session.Store = (*Store)(nil)

// Store keeps sessions in Redis. Make one by Open.
type Store struct {
	// Static.
	cfg    Config
	target target
	sealer *sealer
	cache  *cache
	done   chan struct{} // closed by Close
	tried  chan struct{} // closed when Redis was tried for the first time
	// turns lets the Updates of this replica to one session go one after the
	// other, so that they do not make each other begin again. By names.turn.
	turns [64]chan struct{}

	room      chan struct{}        // one for each call under way
	link      atomic.Pointer[link] // nil before it was reached
	untracked atomic.Bool          // CLIENT TRACKING was refused
	foreign   atomic.Bool          // a record of an unknown key was logged
	once      sync.Once            // closes tried
	watcher   sync.WaitGroup
	calls     sync.WaitGroup // added to under mu, while not closed

	mu     sync.Mutex
	closed bool
	known  bool  // the rest is as of the watcher's last look
	kind   kind  // of lost
	lost   error // nil while Redis answers
}

// Open returns a Store of the Redis that cfg names. It need not be there yet: the
// Store goes on connecting until Close. The error tells what is wrong with cfg.
func Open(cfg Config) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	t, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(cfg.Key, cfg.OldKeys)
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg, target: t, sealer: sealer, cache: newCache(cfg.CacheBytes),
		done: make(chan struct{}), tried: make(chan struct{}),
		room: make(chan struct{}, maxCalls),
	}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	s.watcher.Go(s.watch)
	return s, nil
}

// Create implements session.Store.
func (s *Store) Create(ctx context.Context, r session.Record, idle time.Duration) error {
	if idle <= 0 {
		return fmt.Errorf("redis: idle time is %v, must be positive", idle)
	}
	started := time.Now()
	ctx, cancel := s.bound(ctx)
	defer cancel()
	n := namesOf(s.cfg.Prefix, r.Key())
	args := []string{
		string(s.sealer.seal(n.record, appendRecord(nil, r, nil))),
		millis(idle) + " " + formatSeen(r.LastSeen),
		millis(idle), millis(2 * idle),
	}
	created, err := call(ctx, s, func(ctx context.Context) (bool, error) {
		defer s.cache.drop(n.record)
		return s.exec(ctx, createScript, n.both(), args).AsBool()
	})
	if err == nil && !created {
		err = session.ErrExists
	}
	return s.finish(opCreate, started, err)
}

// Get implements session.Store. What it returns may be a copy; another replica's
// Touch shows in it after a tenth of the idle time at the latest, everything else
// as soon as Redis has told of it.
func (s *Store) Get(ctx context.Context, k session.Key) (session.Record, error) {
	if err := s.usable(ctx); err != nil {
		return session.Record{}, s.unavailable(err)
	}
	n := namesOf(s.cfg.Prefix, k)
	started := time.Now()
	if r, ok := s.cache.get(n.record, started); ok {
		s.cfg.Metrics.lookups.WithLabelValues(resultHit).Inc()
		return r.Clone(), nil
	}
	s.cfg.Metrics.lookups.WithLabelValues(resultMiss).Inc()
	ctx, cancel := s.bound(ctx)
	defer cancel()
	r, err := s.fly(ctx, k, n)
	if err = s.finish(opGet, started, err); err != nil {
		return session.Record{}, err
	}
	return r.Clone(), nil
}

// Update implements session.Store.
func (s *Store) Update(ctx context.Context, k session.Key, change func(*session.Record) error) (session.Record, error) {
	started := time.Now()
	ctx, cancel := s.bound(ctx)
	defer cancel()
	r, err := s.update(ctx, k, change)
	if err = s.finish(opUpdate, started, err); err != nil {
		return session.Record{}, err
	}
	return r, nil
}

// Touch implements session.Store.
func (s *Store) Touch(ctx context.Context, k session.Key, seen time.Time) error {
	started := time.Now()
	ctx, cancel := s.bound(ctx)
	defer cancel()
	n := namesOf(s.cfg.Prefix, k)
	_, err := call(ctx, s, func(ctx context.Context) (struct{}, error) {
		sent := time.Now()
		idle, err := s.exec(ctx, touchScript, n.both(), []string{formatSeen(seen)}).AsInt64()
		if err != nil {
			s.cache.drop(n.record)
			return struct{}{}, notFound(err)
		}
		s.cache.touch(n.record, seen, sent.Add(time.Duration(idle)*time.Millisecond))
		return struct{}{}, nil
	})
	return s.finish(opTouch, started, err)
}

// Delete implements session.Store.
func (s *Store) Delete(ctx context.Context, k session.Key) error {
	started := time.Now()
	ctx, cancel := s.bound(ctx)
	defer cancel()
	n := namesOf(s.cfg.Prefix, k)
	deleted, err := call(ctx, s, func(ctx context.Context) (bool, error) {
		defer s.cache.drop(n.record)
		return s.exec(ctx, deleteScript, n.both(), nil).AsBool()
	})
	if err == nil && !deleted {
		err = session.ErrNotFound
	}
	return s.finish(opDelete, started, err)
}

// Close implements session.Store. It ends the connections and waits for what uses
// them, a few seconds at most where Redis does not answer.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if first {
		close(s.done)
		if l := s.link.Load(); l != nil {
			l.client.Close()
		}
	}
	s.watcher.Wait()
	s.calls.Wait()
	return nil
}

// usable returns why nothing may be answered, not even from a copy.
func (s *Store) usable(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-s.done:
		return errClosed
	default:
		return nil
	}
}

// notFound makes Redis's "nil" the session's ErrNotFound.
func notFound(err error) error {
	if rueidis.IsRedisNil(err) {
		return session.ErrNotFound
	}
	return err
}

// noteSealed logs, once, that this Store has not the key of a record.
func (s *Store) noteSealed(k session.Key, err error) {
	if errors.Is(err, errUnknownKey) && !s.foreign.Swap(true) {
		s.cfg.Log.Error("session store holds a record sealed with another key: replicas must share the state key", "session", k)
	}
}
