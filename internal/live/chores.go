package live

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// chores are the writes to the store that nobody waits for. They are kept by
// key, so that at most one waits for each session, and done by one goroutine.
type chores struct {
	store session.Store
	log   *slog.Logger
	wake  chan struct{}
	done  chan struct{}
	ctx   context.Context // over when close has waited long enough
	stop  context.CancelFunc

	mu     sync.Mutex
	closed bool
	todo   map[session.Key]chore
}

// chore is what is to be done to one record.
type chore struct {
	delete  bool      // and nothing else
	seen    time.Time // last use; zero: not to be told
	updates []func(*session.Record) error
}

// storeTimeout bounds one write to the store.
const storeTimeout = 2 * time.Second

func newChores(store session.Store, log *slog.Logger) *chores {
	c := &chores{store: store, log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), todo: make(map[session.Key]chore)}
	c.ctx, c.stop = context.WithCancel(context.Background())
	go c.run()
	return c
}

func (c *chores) touch(k session.Key, seen time.Time) {
	c.add(k, func(todo *chore) { todo.seen = seen })
}

// update has the record changed, after the updates that wait.
func (c *chores) update(k session.Key, change func(*session.Record) error) {
	c.add(k, func(todo *chore) { todo.updates = append(todo.updates, change) })
}

func (c *chores) delete(k session.Key) {
	c.add(k, func(todo *chore) { *todo = chore{delete: true} })
}

func (c *chores) add(k session.Key, to func(*chore)) {
	c.mu.Lock()
	if todo := c.todo[k]; !todo.delete {
		to(&todo)
		c.todo[k] = todo
	}
	c.mu.Unlock()
	c.signal()
}

func (c *chores) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// close does what is left and waits for it, but not longer than for one write:
// what a store out of reach does not hear of, expires there.
func (c *chores) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	limit := time.AfterFunc(storeTimeout, c.stop)
	<-c.done
	limit.Stop()
	c.stop()
}

func (c *chores) run() {
	defer close(c.done)
	for {
		c.mu.Lock()
		todo, closed := c.todo, c.closed
		c.todo = make(map[session.Key]chore)
		c.mu.Unlock()
		for k, work := range todo {
			if c.ctx.Err() != nil {
				c.log.Warn("session records not written: the store is out of reach", "count", len(todo))
				return
			}
			c.do(k, work)
		}
		if len(todo) > 0 {
			continue
		}
		if closed {
			return
		}
		<-c.wake
	}
}

func (c *chores) do(k session.Key, work chore) {
	ctx, cancel := context.WithTimeout(c.ctx, storeTimeout)
	defer cancel()
	var err error
	switch {
	case work.delete:
		err = c.store.Delete(ctx, k)
	case len(work.updates) > 0:
		_, err = c.store.Update(ctx, k, func(rec *session.Record) error {
			for _, change := range work.updates {
				if err := change(rec); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err == nil && !work.seen.IsZero() {
		err = c.store.Touch(ctx, k, work.seen)
	}
	if err != nil && !errors.Is(err, session.ErrNotFound) {
		c.log.Warn("session record not written", "session", session.ShortHash(k.ID), "server", k.Server, "err", err)
	}
}
