//go:build unix

package redis

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
)

// Fifty at once, of two replicas: none is lost, and none applied twice.
func TestManyUpdates(t *testing.T) {
	server := redistest.Start(t)
	stores := []*Store{
		open(t, server, Config{Timeout: time.Minute}), // the machine may be slow, this is of no time
		open(t, server, Config{Timeout: time.Minute}),
	}
	r := newRecord()
	r.Subscriptions = nil
	create(t, stores[0], r)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 4 {
				if _, err := stores[i%2].Update(t.Context(), r.Key(), func(r *session.Record) error {
					r.Subscriptions = append(r.Subscriptions, "x")
					return nil
				}); err != nil {
					t.Errorf("Update: %v", err)
				}
			}
		})
	}
	wg.Wait()
	settle(t, stores[0])
	if got := get(t, stores[0], r.Key()); len(got.Subscriptions) != 200 || got.Version != 200 {
		t.Errorf("%d subscriptions, version %d after 200 updates", len(got.Subscriptions), got.Version)
	}
}

// An Update that began before the session ended, and another took its key, does
// not write into the new one.
func TestUpdateOfAnEarlierLife(t *testing.T) {
	server := redistest.Start(t)
	s, other := open(t, server, Config{}), open(t, server, Config{})
	r := newRecord()
	create(t, s, r)
	rounds := 0
	got, err := s.Update(t.Context(), r.Key(), func(rec *session.Record) error {
		if rounds++; rounds == 1 {
			if err := other.Delete(t.Context(), r.Key()); err != nil {
				t.Error(err)
			}
			second := r.Clone()
			second.Principal = "second life"
			create(t, other, second)
		}
		rec.LogLevel = "debug"
		return nil
	})
	if err != nil || rounds != 2 || got.Principal != "second life" {
		t.Errorf("record of %q after %d rounds, error %v", got.Principal, rounds, err)
	}
}

func TestCacheIsBounded(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server, Config{CacheBytes: 64 << 10})
	for range 200 {
		r := newRecord()
		create(t, s, r)
		get(t, s, r.Key())
	}
	big := newRecord()
	big.Initialize = make([]byte, 128<<10)
	create(t, s, big)
	get(t, s, big.Key())
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	sum := 0
	for _, e := range s.cache.copies {
		sum += e.size
	}
	if n := len(s.cache.copies); n < 10 || sum != s.cache.size || sum > 64<<10 || len(s.cache.flights) != 0 {
		t.Errorf("%d copies of %d bytes, counted %d, %d flights", n, sum, s.cache.size, len(s.cache.flights))
	}
}

// A read that began before a change leaves no copy, and nobody joins it after.
func TestFlightMadeOld(t *testing.T) {
	for name, change := range map[string]func(*cache){
		"drop":  func(c *cache) { c.drop("k") },
		"clear": func(c *cache) { c.clear() },
		"touch": func(c *cache) { c.touch("k", time.Now(), time.Now().Add(time.Hour)) },
	} {
		c := newCache(1 << 20)
		soon := time.Now().Add(time.Hour)
		old, mine := c.join("k")
		if again, second := c.join("k"); !mine || second || again != old {
			t.Fatalf("%s: a second read while one is under way", name)
		}
		change(c)
		next, mine := c.join("k")
		if !mine {
			t.Errorf("%s: joined a read that began before", name)
		}
		keep := func(level string) *copied {
			return &copied{record: session.Record{LogLevel: level}, size: 1, ends: soon, stale: soon}
		}
		c.land("k", next, session.Record{}, keep("new"), nil)
		c.land("k", old, session.Record{}, keep("old"), nil)
		if r, ok := c.get("k", time.Now()); !ok || r.LogLevel != "new" {
			t.Errorf("%s: the copy is %q, %t", name, r.LogLevel, ok)
		}
	}
}

// Who reads for others may give up before the read begins: the others go on.
func TestReaderGivesUp(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server, Config{Timeout: 20 * time.Second})
	r := newRecord()
	create(t, s, r)
	for range maxCalls {
		s.room <- struct{}{}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := s.Get(ctx, r.Key()); !errors.Is(err, context.Canceled) {
			t.Errorf("the reader: %v", err)
		}
	})
	name := namesOf(DefaultPrefix, r.Key()).record
	eventually(t, "the read is entered", func() bool {
		s.cache.mu.RLock()
		defer s.cache.mu.RUnlock()
		return s.cache.flights[name] != nil
	})
	for range 5 {
		wg.Go(func() {
			if _, err := s.Get(t.Context(), r.Key()); err != nil {
				t.Errorf("another: %v", err)
			}
		})
	}
	cancel()
	for range maxCalls {
		<-s.room
	}
	wg.Wait()
}
