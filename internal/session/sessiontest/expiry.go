package sessiontest

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// late is what a store may be late by, and some.
const late = 2 * time.Second

// sleeper moves the time.
type sleeper func(d time.Duration)

func runExpiry(t *testing.T, open func(t *testing.T) session.Store, opts Options) {
	tests := []struct {
		name string
		run  func(t *testing.T, s session.Store, sleep sleeper)
	}{
		{"Expires", testExpires},
		{"TouchProlongs", testTouchProlongs},
		{"UpdateDoesNotProlong", testUpdateDoesNotProlong},
		{"ExpiresInTurn", testExpiresInTurn},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			switch {
			case opts.FakeTime:
				synctest.Test(t, func(t *testing.T) {
					s := open(t)
					defer s.Close()
					tt.run(t, s, time.Sleep)
				})
			case opts.Advance != nil:
				s := open(t)
				defer s.Close()
				tt.run(t, s, func(d time.Duration) { opts.Advance(t, s, d) })
			default:
				t.Skip("the time of this store cannot be moved")
			}
		})
	}
}

func testExpires(t *testing.T, s session.Store, sleep sleeper) {
	r := newRecord()
	create(t, s, r)
	sleep(idle - time.Minute)
	mustBe(t, mustGet(t, s, r.Key()), r)
	sleep(time.Minute + late)
	everyCallFails(t, s, r.Key(), session.ErrNotFound)

	r.Principal = "another life"
	create(t, s, r)
	sleep(idle - time.Minute)
	mustBe(t, mustGet(t, s, r.Key()), r)
}

func testTouchProlongs(t *testing.T, s session.Store, sleep sleeper) {
	r := newRecord()
	create(t, s, r)
	for range 5 {
		sleep(idle - time.Minute)
		r.LastSeen = r.LastSeen.Add(time.Minute) // far behind: only a note
		if err := s.Touch(t.Context(), r.Key(), r.LastSeen); err != nil {
			t.Fatalf("Touch: %v", err)
		}
	}
	sleep(idle - time.Minute)
	mustBe(t, mustGet(t, s, r.Key()), r)
	sleep(time.Minute + late)
	everyCallFails(t, s, r.Key(), session.ErrNotFound)
}

func testUpdateDoesNotProlong(t *testing.T, s session.Store, sleep sleeper) {
	r := newRecord()
	create(t, s, r)
	for range 3 {
		sleep(idle/3 - time.Minute)
		_, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error {
			r.LastSeen = r.LastSeen.Add(idle)
			return nil
		})
		if err != nil {
			t.Fatalf("Update: %v", err)
		}
		mustGet(t, s, r.Key()) // nor does Get
	}
	sleep(3*time.Minute + late)
	everyCallFails(t, s, r.Key(), session.ErrNotFound)
}

// Records with idle times of their own, not created in the order of their ends.
func testExpiresInTurn(t *testing.T, s session.Store, sleep sleeper) {
	hours := []int{3, 1, 4, 2, 5}
	keys := make(map[int]session.Key)
	for _, h := range hours {
		r := newRecord()
		keys[h] = r.Key()
		if err := s.Create(t.Context(), r, time.Duration(h)*time.Hour); err != nil {
			t.Fatalf("Create: %v", err)
		}
	}
	sleep(30 * time.Minute)
	for passed := range len(hours) {
		for _, h := range hours {
			if h <= passed {
				everyCallFails(t, s, keys[h], session.ErrNotFound)
			} else {
				mustGet(t, s, keys[h])
			}
		}
		sleep(time.Hour)
	}
}
