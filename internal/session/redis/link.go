package redis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// How often the watcher looks: while all is well, and while it is not.
const (
	watchPause = time.Second
	retryPause = 250 * time.Millisecond
)

// link is the client of rueidis, which has a connection to each server.
type link struct {
	client  rueidis.Client
	tracked bool // Redis tells when a key changes that was read
}

// connect makes a link: a tracked one if Redis lets it.
func (s *Store) connect() (*link, error) {
	for tracked := !s.untracked.Load(); ; tracked = false {
		o := s.cfg.options(s.target, s.invalidated)
		o.DisableCache = !tracked
		client, err := rueidis.NewClient(o)
		if err == nil {
			return &link{client: client, tracked: tracked}, nil
		}
		if client != nil {
			client.Close() // rueidis returns both where a single server is out of reach
		}
		if !tracked || !errors.Is(err, rueidis.ErrNoCache) {
			return nil, err
		}
		s.noTracking(err)
	}
}

// noTracking notes, and says once, that this Redis keeps no track of reads.
func (s *Store) noTracking(err error) {
	if !s.untracked.Swap(true) {
		s.cfg.Log.Warn("session store refuses CLIENT TRACKING: works without local copies, each lookup asks it",
			"address", s.target.String(), "err", s.text(err))
	}
}

// invalidated is called by the connections' readers: with keys that changed, or
// with nil when all did or a connection broke.
func (s *Store) invalidated(keys []rueidis.RedisMessage) {
	if keys == nil {
		s.cache.clear()
		return
	}
	for _, k := range keys {
		if name, err := k.ToString(); err == nil {
			s.cache.drop(name)
		}
	}
}

// watch connects, and sees once in a while whether Redis takes a write, until the
// Store is closed.
func (s *Store) watch() {
	for {
		err := s.probe()
		s.note(err)
		pause := watchPause
		if err != nil {
			pause = retryPause
		}
		select {
		case <-s.done:
			return
		case <-time.After(pause):
		}
	}
}

// probe connects where there is no link, and writes something.
func (s *Store) probe() error {
	l := s.link.Load()
	if l != nil && l.tracked && s.untracked.Load() { // another server than before
		s.link.Store(nil)
		l.client.Close()
		s.cache.clear()
		l = nil
	}
	if l == nil {
		var err error
		if l, err = s.connect(); err != nil {
			return err
		}
		if !s.install(l) {
			l.client.Close()
			return errClosed
		}
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), s.cfg.Timeout, errSilent)
	defer cancel()
	err := l.client.Do(ctx, l.client.B().Set().Key(s.cfg.Prefix+":probe").Value("1").Px(10*time.Second).Build()).Error()
	if errors.Is(err, rueidis.ErrNoCache) {
		s.noTracking(err)
	}
	return err
}

// install makes l the link, unless the Store is closed.
func (s *Store) install(l *link) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.link.Store(l)
	return true
}

// note keeps the state for Ready, and logs where it is another one.
func (s *Store) note(err error) {
	k := kindOf(err)
	s.mu.Lock()
	changed := !s.known || k != s.kind
	was := s.kind
	s.known, s.kind, s.lost = true, k, err
	closed := s.closed
	s.mu.Unlock()
	s.once.Do(func() { close(s.tried) })
	if closed {
		return
	}
	log := s.cfg.Log.With("address", s.target.String())
	switch {
	case err == nil:
		s.cfg.Metrics.up.Set(1)
		if changed {
			log.Info("session store is reached", "copies", !s.untracked.Load())
		}
		return
	case !changed, was == kindNetwork && k == kindTimeout, was == kindTimeout && k == kindNetwork:
		// one outage shows as either
	case k == kindAuth:
		log.Warn("session store: authentication failed: check user, password and permissions of --store", "err", s.text(err))
	default:
		log.Warn("session store is out of reach", "reason", string(k), "err", s.text(err))
	}
	s.cfg.Metrics.up.Set(0)
}

// Ready returns nil while Redis answers and takes writes, as seen within about the
// last three seconds; else why not, as a session.ErrUnavailable.
func (s *Store) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return s.unavailable(errClosed)
	case !s.known:
		return fmt.Errorf("%w: redis: not reached yet", session.ErrUnavailable)
	case s.lost != nil:
		return s.unavailable(s.lost)
	}
	return nil
}

// reach returns the link, for which it waits until Redis was tried once.
func (s *Store) reach(ctx context.Context) (*link, error) {
	if l := s.link.Load(); l != nil {
		return l, nil
	}
	select {
	case <-s.tried:
	case <-s.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l := s.link.Load(); l != nil {
		return l, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.lost == nil {
		return nil, errors.New("reconnecting")
	}
	return nil, s.lost
}
