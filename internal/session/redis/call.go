package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// maxCalls bounds the calls under way. Beyond the 1024 that fit into a connection's
// queue rueidis waits for room, whatever the context says.
const maxCalls = 512

type answer[T any] struct {
	value T
	err   error
}

// call runs f, which asks Redis, and waits for it as long as ctx allows; ctx is
// bounded. f goes on alone where that is too short, with a context of its own:
// rueidis shares what it waits for (a dial by one caller is everybody's) and waits
// in places for what no context ends.
func call[T any](ctx context.Context, s *Store, f func(context.Context) (T, error)) (T, error) {
	out, err := begin(ctx, s, f)
	if err != nil {
		var zero T
		return zero, err
	}
	return await(ctx, out)
}

// begin starts f, unless ctx ends before there is room, or the Store is closed.
func begin[T any](ctx context.Context, s *Store, f func(context.Context) (T, error)) (<-chan answer[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return nil, ended(ctx)
	}
	out := make(chan answer[T], 1)
	err := s.enter(func() {
		defer func() { <-s.room }()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
		defer cancel()
		var a answer[T]
		a.value, a.err = f(ctx)
		out <- a
	})
	if err != nil {
		<-s.room
		return nil, err
	}
	return out, nil
}

// await returns what comes from begin, if it comes before ctx ends.
func await[T any](ctx context.Context, out <-chan answer[T]) (T, error) {
	var a answer[T]
	select {
	case a = <-out:
		return a.value, a.err
	case <-ctx.Done():
		return a.value, ended(ctx)
	}
}

// exec runs a script within call.
func (s *Store) exec(ctx context.Context, script *rueidis.Lua, keys, args []string) rueidis.RedisResult {
	return s.ask(ctx, func(l *link) rueidis.RedisResult { return script.Exec(ctx, l.client, keys, args) })
}

// ask asks f of the link there is, within call.
func (s *Store) ask(ctx context.Context, f func(*link) rueidis.RedisResult) rueidis.RedisResult {
	l, err := s.reach(ctx)
	var res rueidis.RedisResult
	if err == nil {
		res = f(l)
		err = res.NonRedisError()
	}
	switch {
	case err == nil:
		return res
	case errors.Is(err, rueidis.ErrNoCache):
		s.noTracking(err) // the watcher connects anew
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		err = errSilent // no caller's context comes this far
	}
	return rueidis.NewErrorResult(err)
}

// enter starts work unless the Store is closed; Close waits for it.
func (s *Store) enter(work func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	s.calls.Go(work)
	return nil
}

// bound returns ctx with the Store's timeout.
func (s *Store) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.cfg.Timeout, errSilent)
}

// finish counts an operation, and makes err what the interface promises: errors
// of Redis and of contexts become ErrUnavailable.
func (s *Store) finish(op string, started time.Time, err error) error {
	var own changeError
	if errors.As(err, &own) {
		s.cfg.Metrics.ended(op, started, nil)
		return own.error
	}
	s.cfg.Metrics.ended(op, started, err)
	if err == nil || errors.Is(err, session.ErrNotFound) || errors.Is(err, session.ErrExists) {
		return err
	}
	return s.unavailable(err)
}

// changeError is an error of the caller's own function, which passes unchanged.
type changeError struct{ error }
