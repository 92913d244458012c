package sessiontest

import (
	"errors"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

func testRoundTrip(t *testing.T, s session.Store) {
	full := newRecord()
	create(t, s, full)
	mustBe(t, mustGet(t, s, full.Key()), full)

	bare := session.Record{
		ID: session.NewID(), Server: "bare", Transport: session.LegacySSE,
		Created: full.Created, LastSeen: full.Created,
	}
	create(t, s, bare)
	mustBe(t, mustGet(t, s, bare.Key()), bare)
	mustBe(t, mustGet(t, s, full.Key()), full)
}

func testCreateExists(t *testing.T, s session.Store) {
	r := newRecord()
	create(t, s, r)
	other := r.Clone()
	other.Principal, other.Subscriptions = "other", nil
	mustFail(t, "Create", s.Create(t.Context(), other, idle), session.ErrExists)
	mustBe(t, mustGet(t, s, r.Key()), r)
}

func testCreateIdle(t *testing.T, s session.Store) {
	for _, d := range []time.Duration{0, -time.Second} {
		r := newRecord()
		if err := s.Create(t.Context(), r, d); err == nil {
			t.Errorf("Create with idle time %v succeeds", d)
		}
		everyCallFails(t, s, r.Key(), session.ErrNotFound)
	}
}

func testNotFound(t *testing.T, s session.Store) {
	everyCallFails(t, s, newRecord().Key(), session.ErrNotFound)
	everyCallFails(t, s, session.Key{}, session.ErrNotFound)
}

func testUpdate(t *testing.T, s session.Store) {
	want := newRecord()
	create(t, s, want)
	version := mustGet(t, s, want.Key()).Version

	steps := []func(r *session.Record) error{
		func(r *session.Record) error { r.LogLevel = "debug"; return nil },
		func(r *session.Record) error { r.Subscriptions = append(r.Subscriptions, "c"); return nil },
		func(r *session.Record) error { r.Subscriptions = nil; return nil },
		func(r *session.Record) error { r.Upstream, r.UpstreamSession, r.Home = "", "", ""; return nil },
		func(r *session.Record) error { r.LastSeen = r.LastSeen.Add(time.Minute); return nil },
		func(r *session.Record) error { r.Version = 0; return nil },
		func(r *session.Record) error { return nil },
	}
	for i, change := range steps {
		var before session.Record
		got, err := s.Update(t.Context(), want.Key(), func(r *session.Record) error {
			before = r.Clone()
			return change(r)
		})
		if err != nil {
			t.Fatalf("step %d: Update: %v", i, err)
		}
		mustBe(t, before, want)
		if err := change(&want); err != nil {
			t.Fatal(err)
		}
		mustBe(t, got, want)
		stored := mustGet(t, s, want.Key())
		mustBe(t, stored, want)
		if got.Version <= version || stored.Version != got.Version || before.Version != version {
			t.Fatalf("step %d: version %d, then %d and %d stored, was %d",
				i, before.Version, got.Version, stored.Version, version)
		}
		version = got.Version
	}
}

func testUpdateFails(t *testing.T, s session.Store) {
	r := newRecord()
	create(t, s, r)
	no := errors.New("no")
	_, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error {
		r.LogLevel, r.Initialize[0], r.Subscriptions[0] = "lost", 'X', "X"
		return no
	})
	if !errors.Is(err, no) {
		t.Errorf("Update: error %v, want that of change", err)
	}
	mustFail(t, "Update", err, nil)
	mustBe(t, mustGet(t, s, r.Key()), r)
}

func testUpdateKey(t *testing.T, s session.Store) {
	r := newRecord()
	create(t, s, r)
	id, server := session.NewID(), "other"
	_, err := s.Update(t.Context(), r.Key(), func(r *session.Record) error { r.ID = id; return nil })
	if err == nil {
		t.Error("Update may change the id")
	}
	_, err = s.Update(t.Context(), r.Key(), func(r *session.Record) error { r.Server = server; return nil })
	if err == nil {
		t.Error("Update may change the server")
	}
	mustBe(t, mustGet(t, s, r.Key()), r)
	everyCallFails(t, s, session.Key{Server: r.Server, ID: id}, session.ErrNotFound)
	everyCallFails(t, s, session.Key{Server: server, ID: r.ID}, session.ErrNotFound)
}

func testTouch(t *testing.T, s session.Store) {
	want := newRecord()
	create(t, s, want)
	version := mustGet(t, s, want.Key()).Version
	want.LastSeen = want.LastSeen.Add(42*time.Minute + 123*time.Millisecond)
	if err := s.Touch(t.Context(), want.Key(), want.LastSeen); err != nil {
		t.Fatalf("Touch: %v", err)
	}
	got := mustGet(t, s, want.Key())
	mustBe(t, got, want)
	if got.Version != version {
		t.Errorf("Touch changes the version from %d to %d", version, got.Version)
	}
}

func testDelete(t *testing.T, s session.Store) {
	r, other := newRecord(), newRecord()
	create(t, s, r)
	create(t, s, other)
	if err := s.Delete(t.Context(), r.Key()); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	everyCallFails(t, s, r.Key(), session.ErrNotFound)
	mustBe(t, mustGet(t, s, other.Key()), other)

	r.Principal = "another life"
	create(t, s, r)
	mustBe(t, mustGet(t, s, r.Key()), r)
}

// Two keys never meet, whatever stands in their parts.
func testKeysApart(t *testing.T, s session.Store) {
	suffix := session.NewID() // for stores that keep records of an earlier run
	pairs := [][2]session.Key{
		{{Server: "a", ID: "b:c"}, {Server: "a:b", ID: "c"}},
		{{Server: "a", ID: "b/c"}, {Server: "a/b", ID: "c"}},
		{{Server: "a", ID: "b\x00c"}, {Server: "a\x00b", ID: "c"}},
		{{Server: "a", ID: "|b"}, {Server: "a|", ID: "b"}},
		{{Server: "a:", ID: "b"}, {Server: "a", ID: ":b"}},
		{{Server: "1:a", ID: "b"}, {Server: "1", ID: "a:b"}},
		{{Server: "a}", ID: "b"}, {Server: "a", ID: "}b"}},
		{{Server: "", ID: "ab"}, {Server: "ab", ID: ""}},
		{{Server: "a%3A", ID: "b"}, {Server: "a:", ID: "b%"}},
		{{Server: "x", ID: "Id"}, {Server: "x", ID: "iD"}},
	}
	for _, p := range pairs {
		one, two := newRecord(), newRecord()
		// At both ends, so that the parts of each pair still join to the same.
		one.Server, one.ID = suffix+p[0].Server, p[0].ID+suffix
		two.Server, two.ID = suffix+p[1].Server, p[1].ID+suffix
		one.LogLevel, two.LogLevel = "one", "two"
		create(t, s, one)
		everyCallFails(t, s, two.Key(), session.ErrNotFound)
		create(t, s, two)
		mustBe(t, mustGet(t, s, one.Key()), one)
		mustBe(t, mustGet(t, s, two.Key()), two)
		if err := s.Delete(t.Context(), one.Key()); err != nil {
			t.Fatalf("Delete: %v", err)
		}
		mustBe(t, mustGet(t, s, two.Key()), two)
	}
}

func testCopiesIn(t *testing.T, s session.Store) {
	r := newRecord()
	want := r.Clone()
	create(t, s, r)
	r.Initialize[0], r.Subscriptions[0] = 'X', "X"
	mustBe(t, mustGet(t, s, want.Key()), want)

	body, subs := []byte("body"), []string{"x", "y"}
	want.Initialize, want.Subscriptions = []byte("body"), []string{"x", "y"}
	_, err := s.Update(t.Context(), want.Key(), func(r *session.Record) error {
		r.Initialize, r.Subscriptions = body, subs
		return nil
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	body[0], subs[0] = 'X', "X"
	mustBe(t, mustGet(t, s, want.Key()), want)
}

func testCopiesOut(t *testing.T, s session.Store) {
	want := newRecord()
	create(t, s, want)
	spoil := func(r session.Record) {
		r.Initialize[0], r.Subscriptions[0] = 'X', "X"
		_, _ = append(r.Initialize[:1], "XX"...), append(r.Subscriptions[:1], "X")
	}
	spoil(mustGet(t, s, want.Key()))
	mustBe(t, mustGet(t, s, want.Key()), want)

	var inside session.Record
	got, err := s.Update(t.Context(), want.Key(), func(r *session.Record) error {
		inside = *r
		return nil
	})
	if err != nil {
		t.Fatalf("Update: %v", err)
	}
	spoil(got)
	mustBe(t, mustGet(t, s, want.Key()), want)
	spoil(inside)
	mustBe(t, mustGet(t, s, want.Key()), want)
}

func testClosed(t *testing.T, s session.Store) {
	r := newRecord()
	create(t, s, r)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		mustFail(t, "Create", s.Create(t.Context(), newRecord(), idle), session.ErrUnavailable)
		everyCallFails(t, s, r.Key(), session.ErrUnavailable)
		everyCallFails(t, s, newRecord().Key(), session.ErrUnavailable)
	}
}
