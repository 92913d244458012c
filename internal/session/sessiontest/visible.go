package sessiontest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// What a store wrote it reads from then on, whatever it holds to answer quickly:
// that a record is there, that it is not, and what is in it.
func testOwnWrites(t *testing.T, s session.Store) {
	want := newRecord()
	for range 50 {
		everyCallFails(t, s, want.Key(), session.ErrNotFound)
		create(t, s, want)
		mustBe(t, mustGet(t, s, want.Key()), want)
		mustGet(t, s, want.Key()) // what came second may have been kept
		got, err := s.Update(t.Context(), want.Key(), func(r *session.Record) error {
			r.LogLevel += "x"
			return nil
		})
		if err != nil {
			t.Fatalf("Update: %v", err)
		}
		want.LogLevel += "x"
		mustBe(t, mustGet(t, s, want.Key()), want)
		want.LastSeen = want.LastSeen.Add(time.Second)
		if err := s.Touch(t.Context(), want.Key(), want.LastSeen); err != nil {
			t.Fatalf("Touch: %v", err)
		}
		again := mustGet(t, s, want.Key())
		mustBe(t, again, want)
		if again.Version != got.Version {
			t.Fatalf("version %d, was %d after the Update", again.Version, got.Version)
		}
		if err := s.Delete(t.Context(), want.Key()); err != nil {
			t.Fatalf("Delete: %v", err)
		}
	}
	everyCallFails(t, s, want.Key(), session.ErrNotFound)
}

func testLarge(t *testing.T, s session.Store) {
	want := newRecord()
	want.Initialize = bytes.Repeat([]byte("0123456789abcde\x00"), 1<<16)
	want.Subscriptions = nil
	for i := range 2000 {
		want.Subscriptions = append(want.Subscriptions, fmt.Sprintf("file:///%d", i))
	}
	create(t, s, want)
	for range 2 {
		mustBe(t, mustGet(t, s, want.Key()), want)
	}
}

// A context that ended before the call gives ErrUnavailable with its own error,
// for a record that is there, was just read or is not there; nothing is done.
func testContextEnded(t *testing.T, s session.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, fresh := newRecord(), newRecord()
	create(t, s, r)
	mustGet(t, s, r.Key())
	check := func(call string, err error) {
		t.Helper()
		mustFail(t, call, err, session.ErrUnavailable)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v, want that of the context in it", call, err)
		}
	}
	for _, k := range []session.Key{r.Key(), fresh.Key()} {
		_, err := s.Get(ctx, k)
		check("Get", err)
		_, err = s.Update(ctx, k, func(*session.Record) error {
			t.Error("Update calls change")
			return nil
		})
		check("Update", err)
		check("Touch", s.Touch(ctx, k, time.Now()))
		check("Delete", s.Delete(ctx, k))
	}
	check("Create", s.Create(ctx, fresh, idle))
	mustBe(t, mustGet(t, s, r.Key()), r)
	everyCallFails(t, s, fresh.Key(), session.ErrNotFound)
}

// An error of change comes back as it is, also where it is one of this package's.
func testChangeErrors(t *testing.T, s session.Store) {
	r := newRecord()
	create(t, s, r)
	for _, want := range []error{session.ErrNotFound, session.ErrExists, session.ErrUnavailable, context.DeadlineExceeded} {
		_, err := s.Update(t.Context(), r.Key(), func(*session.Record) error { return want })
		if err != want {
			t.Errorf("error %v, want %v itself", err, want)
		}
	}
	mustBe(t, mustGet(t, s, r.Key()), r)
}
