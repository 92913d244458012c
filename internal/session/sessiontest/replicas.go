package sessiontest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// runReplicas tests what two stores of the same records see of each other.
func runReplicas(t *testing.T, open func(t *testing.T) session.Store, opts Options) {
	if opts.Another == nil {
		return
	}
	tests := []struct {
		name string
		run  func(t *testing.T, one, two session.Store)
	}{
		{"SeesUpdate", testSeesUpdate},
		{"SeesDelete", testSeesDelete},
		{"TwoCreate", testTwoCreate},
		{"TwoUpdate", testTwoUpdate},
		{"TwoNeverRevive", testTwoNeverRevive},
	}
	for _, tt := range tests {
		t.Run("Replicas/"+tt.name, func(t *testing.T) {
			one := open(t)
			defer one.Close()
			two := opts.Another(t, one)
			defer two.Close()
			tt.run(t, one, two)
		})
	}
}

// soon ends the test unless ok holds within a second or so: what one replica
// writes reaches the others' copies on its own way.
func soon(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

func testSeesUpdate(t *testing.T, one, two session.Store) {
	r := newRecord()
	create(t, one, r)
	for i := range 20 {
		mustGet(t, two, r.Key())
		level := fmt.Sprint(i)
		if _, err := one.Update(t.Context(), r.Key(), func(r *session.Record) error {
			r.LogLevel = level
			return nil
		}); err != nil {
			t.Fatalf("Update: %v", err)
		}
		soon(t, "the other replica sees the update", func() bool { return mustGet(t, two, r.Key()).LogLevel == level })
	}
}

func testSeesDelete(t *testing.T, one, two session.Store) {
	r := newRecord()
	for range 20 {
		everyCallFails(t, two, r.Key(), session.ErrNotFound)
		create(t, one, r)
		soon(t, "the other replica sees the session", func() bool {
			_, err := two.Get(t.Context(), r.Key())
			return err == nil
		})
		if err := one.Delete(t.Context(), r.Key()); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		soon(t, "the other replica sees that it ended", func() bool {
			_, err := two.Get(t.Context(), r.Key())
			return errors.Is(err, session.ErrNotFound)
		})
	}
}

func testTwoCreate(t *testing.T, one, two session.Store) {
	r := newRecord()
	create(t, one, r)
	mustFail(t, "Create", two.Create(t.Context(), r, idle), session.ErrExists)
	if err := two.Delete(t.Context(), r.Key()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	mustFail(t, "Delete", one.Delete(t.Context(), r.Key()), session.ErrNotFound)
}

// No update of either is lost, though each holds what it read last.
func testTwoUpdate(t *testing.T, one, two session.Store) {
	const each = 30
	r := newRecord()
	r.Subscriptions = nil
	create(t, one, r)
	stores := []session.Store{one, two}
	together(4, func(i int) {
		s := stores[i%2]
		for range each {
			mustGetIn(t, s, r.Key())
			if _, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error {
				r.Subscriptions = append(r.Subscriptions, "x")
				return nil
			}); err != nil {
				t.Errorf("Update: %v", err)
				return
			}
		}
	})
	for _, s := range stores {
		soon(t, "all updates are there", func() bool { return len(mustGet(t, s, r.Key()).Subscriptions) == 4*each })
	}
}

// mustGetIn is mustGet for goroutines.
func mustGetIn(t *testing.T, s session.Store, k session.Key) {
	if _, err := s.Get(t.Context(), k); err != nil {
		t.Errorf("Get: %v", err)
	}
}

// What one deletes the other does not bring back, whatever it is about to write.
func testTwoNeverRevive(t *testing.T, one, two session.Store) {
	for range 10 {
		r := newRecord()
		create(t, one, r)
		together(4, func(i int) {
			if i == 0 {
				if err := one.Delete(t.Context(), r.Key()); err != nil {
					t.Errorf("Delete: %v", err)
				}
				return
			}
			var err error
			for err == nil {
				if i == 1 {
					err = two.Touch(t.Context(), r.Key(), time.Now())
				} else {
					_, err = two.Update(t.Context(), r.Key(), func(*session.Record) error { return nil })
				}
			}
			if !errors.Is(err, session.ErrNotFound) {
				t.Errorf("worker %d: error %v, want ErrNotFound", i, err)
			}
		})
		everyCallFails(t, one, r.Key(), session.ErrNotFound)
		mustFail(t, "Touch", two.Touch(t.Context(), r.Key(), time.Now()), session.ErrNotFound)
	}
}
