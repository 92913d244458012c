package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// Registry keeps one small value for each replica, under a lease. All its methods
// ask Redis; they fail by session.ErrUnavailable. Values are stored as they are:
// who writes them signs them.
type Registry interface {
	// Put sets the value of id for as long as lease, > 0, by the clock of Redis.
	Put(ctx context.Context, id string, value []byte, lease time.Duration) error
	// Get returns the value of id; session.ErrNotFound when its lease is over.
	Get(ctx context.Context, id string) ([]byte, error)
	// List returns the values of all ids whose lease is not over.
	List(ctx context.Context) (map[string][]byte, error)
	// Left returns how much is left of the lease of id; session.ErrNotFound as Get.
	Left(ctx context.Context, id string) (time.Duration, error)
	// Remove ends the lease of id, if there is one.
	Remove(ctx context.Context, id string) error
}

// Registry returns the registry beside the sessions of this Redis and prefix. It
// is closed with the Store.
func (s *Store) Registry() Registry {
	return registry{s: s, set: s.cfg.Prefix + ":replica:{replicas}"}
}

type registry struct {
	s   *Store
	set string // name of the set of ids
}

// key returns the name of the key of id. The id comes last, so it may be any.
func (g registry) key(id string) string { return g.set + ":" + id }

func (g registry) keys(id string) []string { return []string{g.set, g.key(id)} }

// Put implements Registry.
func (g registry) Put(ctx context.Context, id string, value []byte, lease time.Duration) error {
	if id == "" || lease <= 0 {
		return errors.New("redis: registry: id must not be empty, lease must be positive")
	}
	return g.exec(ctx, opRegistryPut, registerScript, id, string(value), millis(lease))
}

// Remove implements Registry.
func (g registry) Remove(ctx context.Context, id string) error {
	return g.exec(ctx, opRegistryRemove, removeScript, id)
}

func (g registry) exec(ctx context.Context, op string, script *rueidis.Lua, args ...string) error {
	started := time.Now()
	ctx, cancel := g.s.bound(ctx)
	defer cancel()
	_, err := call(ctx, g.s, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, g.s.exec(ctx, script, g.keys(args[0]), args).Error()
	})
	return g.s.finish(op, started, err)
}

// Get implements Registry.
func (g registry) Get(ctx context.Context, id string) ([]byte, error) {
	started := time.Now()
	ctx, cancel := g.s.bound(ctx)
	defer cancel()
	v, err := call(ctx, g.s, func(ctx context.Context) ([]byte, error) {
		v, err := g.get(ctx, id).AsBytes()
		return v, notFound(err)
	})
	return v, g.s.finish(opRegistryGet, started, err)
}

// Left implements Registry.
func (g registry) Left(ctx context.Context, id string) (time.Duration, error) {
	started := time.Now()
	ctx, cancel := g.s.bound(ctx)
	defer cancel()
	left, err := call(ctx, g.s, func(ctx context.Context) (time.Duration, error) {
		ms, err := g.s.ask(ctx, func(l *link) rueidis.RedisResult {
			return l.client.Do(ctx, l.client.B().Pttl().Key(g.key(id)).Build())
		}).AsInt64()
		if err == nil && ms < 0 {
			return 0, session.ErrNotFound
		}
		return time.Duration(ms) * time.Millisecond, err
	})
	return left, g.s.finish(opRegistryLeft, started, err)
}

// List implements Registry. It takes ids whose lease is over from the set.
func (g registry) List(ctx context.Context) (map[string][]byte, error) {
	started := time.Now()
	ctx, cancel := g.s.bound(ctx)
	defer cancel()
	live, err := call(ctx, g.s, g.list)
	if err = g.s.finish(opRegistryList, started, err); err != nil {
		return nil, err
	}
	return live, nil
}

// list asks for the values one by one: there are few replicas, and few who ask.
func (g registry) list(ctx context.Context) (map[string][]byte, error) {
	ids, err := g.s.ask(ctx, func(l *link) rueidis.RedisResult {
		return l.client.Do(ctx, l.client.B().Smembers().Key(g.set).Build())
	}).AsStrSlice()
	if err != nil {
		return nil, err
	}
	live := make(map[string][]byte, len(ids))
	for _, id := range ids {
		v, err := g.get(ctx, id).AsBytes()
		if rueidis.IsRedisNil(err) {
			err = g.s.exec(ctx, forgetScript, g.keys(id), []string{id}).Error()
		} else if err == nil {
			live[id] = v
		}
		if err != nil {
			return nil, err
		}
	}
	return live, nil
}

// get asks for the value of id, within call.
func (g registry) get(ctx context.Context, id string) rueidis.RedisResult {
	return g.s.ask(ctx, func(l *link) rueidis.RedisResult {
		return l.client.Do(ctx, l.client.B().Get().Key(g.key(id)).Build())
	})
}
