package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

const workers = 8

// together runs do in n goroutines at the same time and waits for them.
func together(n int, do func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	wg.Wait()
}

func testConcurrentCreate(t *testing.T, s session.Store) {
	r := newRecord()
	var created atomic.Int32
	together(workers, func(int) {
		switch err := s.Create(t.Context(), r, idle); {
		case err == nil:
			created.Add(1)
		case !errors.Is(err, session.ErrExists):
			t.Errorf("Create: error %v, want ErrExists", err)
		}
	})
	if n := created.Load(); n != 1 {
		t.Errorf("%d of %d Creates of one key succeed, want 1", n, workers)
	}
}

// No Update is lost, and no two of them make the same version.
func testConcurrentUpdate(t *testing.T, s session.Store) {
	const each = 20
	r := newRecord()
	r.Subscriptions = nil
	create(t, s, r)

	var mu sync.Mutex
	versions := make(map[uint64]bool)
	together(workers, func(i int) {
		for j := range each {
			got, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error {
				r.Subscriptions = append(r.Subscriptions, fmt.Sprint(i, ":", j))
				return nil
			})
			if err != nil {
				t.Errorf("Update: %v", err)
				return
			}
			mu.Lock()
			versions[got.Version] = true
			mu.Unlock()
		}
	})

	got := mustGet(t, s, r.Key()).Subscriptions
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != workers*each || len(got) != n {
		t.Errorf("%d different values in %d after %d updates", n, len(got), workers*each)
	}
	if len(versions) != workers*each {
		t.Errorf("%d different versions after %d updates", len(versions), workers*each)
	}
}

// Neither does an Update undo a Touch nor a Touch an Update.
func testConcurrentTouch(t *testing.T, s session.Store) {
	const each = 50
	want := newRecord()
	create(t, s, want)
	var updates atomic.Int64
	together(4, func(i int) {
		for j := range each {
			var err error
			if i == 0 {
				err = s.Touch(t.Context(), want.Key(), want.LastSeen.Add(time.Duration(j+1)*time.Second))
			} else {
				_, err = s.Update(t.Context(), want.Key(), func(r *session.Record) error {
					r.Subscriptions = append(r.Subscriptions, "x")
					return nil
				})
				updates.Add(1)
			}
			if err != nil {
				t.Errorf("worker %d: %v", i, err)
				return
			}
		}
	})
	want.LastSeen = want.LastSeen.Add(each * time.Second)
	for range updates.Load() {
		want.Subscriptions = append(want.Subscriptions, "x")
	}
	mustBe(t, mustGet(t, s, want.Key()), want)
}

func testConcurrentDelete(t *testing.T, s session.Store) {
	r := newRecord()
	create(t, s, r)
	var deleted atomic.Int32
	together(workers, func(int) {
		switch err := s.Delete(t.Context(), r.Key()); {
		case err == nil:
			deleted.Add(1)
		case !errors.Is(err, session.ErrNotFound):
			t.Errorf("Delete: error %v, want ErrNotFound", err)
		}
	})
	if n := deleted.Load(); n != 1 {
		t.Errorf("%d of %d Deletes succeed, want 1", n, workers)
	}
}

// What was deleted stays away, however many Updates and Touches were under way.
func testNeverRevived(t *testing.T, s session.Store) {
	for range 20 {
		r := newRecord()
		create(t, s, r)
		together(5, func(i int) {
			var err error
			switch i {
			case 0:
				err = s.Delete(t.Context(), r.Key())
				if err != nil {
					t.Errorf("Delete: %v", err)
				}
				return
			case 1, 2:
				for err == nil {
					err = s.Touch(t.Context(), r.Key(), time.Now())
				}
			default:
				for err == nil {
					_, err = s.Update(t.Context(), r.Key(), func(r *session.Record) error {
						r.LogLevel += "x"
						return nil
					})
				}
			}
			if !errors.Is(err, session.ErrNotFound) {
				t.Errorf("worker %d: error %v, want ErrNotFound", i, err)
			}
		})
		everyCallFails(t, s, r.Key(), session.ErrNotFound)
	}
}

// A Get never goes back: what a worker has seen, or written, stays seen.
func testConcurrentGet(t *testing.T, s session.Store) {
	r := newRecord()
	create(t, s, r)
	first := mustGet(t, s, r.Key()).Version
	var written atomic.Uint64
	written.Store(first)
	together(workers, func(i int) {
		for range 50 {
			if i == 0 {
				got, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error { return nil })
				if err != nil {
					t.Errorf("Update: %v", err)
					return
				}
				written.Store(got.Version)
				continue
			}
			least := written.Load()
			got, err := s.Get(t.Context(), r.Key())
			if err != nil || got.Version < least {
				t.Errorf("Get: version %d after an Update to %d, error %v", got.Version, least, err)
				return
			}
		}
	})
}
