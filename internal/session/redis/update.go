package redis

import (
	"context"
	"errors"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

var errKeyChanged = changeError{errors.New("redis: an update must not change the key")}

// update reads, changes and swaps until nobody else was quicker. What is swapped
// is never asked for twice: after a broken connection it may have taken place, and
// change would be applied again.
func (s *Store) update(ctx context.Context, k session.Key, change func(*session.Record) error) (session.Record, error) {
	n := namesOf(s.cfg.Prefix, k)
	if err := s.usable(ctx); err != nil {
		return session.Record{}, err
	}
	turn := s.turns[n.turn(len(s.turns))]
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return session.Record{}, ended(ctx)
	}
	st, err := call(ctx, s, func(ctx context.Context) (stored, error) {
		return s.read(ctx, k, n)
	})
	for err == nil {
		r := st.record.Clone()
		if err := change(&r); err != nil {
			return session.Record{}, changeError{err}
		}
		if r.Key() != k {
			return session.Record{}, errKeyChanged
		}
		r.Version = st.record.Version + 1
		var done bool
		if st, done, err = s.swap(ctx, n, st, r); done && err == nil {
			r.LastSeen = st.record.LastSeen
			return r, nil
		}
	}
	return session.Record{}, err
}

// swap puts r in the place of old. done, and the time seen as it is now; or what
// another made of the record meanwhile.
func (s *Store) swap(ctx context.Context, n names, old stored, r session.Record) (now stored, done bool, err error) {
	args := []string{old.tag, string(s.sealer.seal(n.record, appendRecord(nil, r, old.unknown))), ""}
	if !r.LastSeen.Equal(old.record.LastSeen) {
		args[2] = formatSeen(r.LastSeen)
	}
	now, err = call(ctx, s, func(ctx context.Context) (stored, error) {
		defer s.cache.drop(n.record)
		m, err := s.exec(ctx, swapScript, n.both(), args).ToMessage()
		if err != nil {
			return stored{}, notFound(err)
		}
		if parts, err := m.ToArray(); err == nil {
			return s.unpack(r.Key(), n, parts)
		}
		seen, err := m.ToString()
		if err != nil {
			return stored{}, err
		}
		_, r.LastSeen, err = parseSeen(seen)
		return stored{record: r}, err
	})
	return now, now.tag == "", err
}
