// Package sessiontest is the conformance test of session.Store: what the
// interface's documentation promises, for each implementation to pass.
package sessiontest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
)

// Options tell how the time of a store is moved. With the zero value the tests
// of expiry are skipped; all others run.
type Options struct {
	// FakeTime: the store uses package time in this process only. Its expiry is
	// then tested in a bubble of testing/synctest, in which open is called.
	FakeTime bool
	// Advance, where not nil, moves the time of the store that open returned by
	// d, which may take as long as it needs. Not with FakeTime.
	Advance func(t *testing.T, store session.Store, d time.Duration)
	// Another, where not nil, returns one more store over the same records as the
	// given one, which open returned: another replica's.
	Another func(t *testing.T, store session.Store) session.Store
}

// Run tests the implementation whose empty or shared store open returns. open is
// called once for each test; it closes the store by t.Cleanup where Close after
// Close is not enough. The tests use keys of their own and may share what is
// behind the store.
func Run(t *testing.T, open func(t *testing.T) session.Store, opts Options) {
	tests := []struct {
		name string
		run  func(t *testing.T, s session.Store)
	}{
		{"RoundTrip", testRoundTrip},
		{"CreateExists", testCreateExists},
		{"CreateIdle", testCreateIdle},
		{"NotFound", testNotFound},
		{"Update", testUpdate},
		{"UpdateFails", testUpdateFails},
		{"UpdateKey", testUpdateKey},
		{"Touch", testTouch},
		{"Delete", testDelete},
		{"KeysApart", testKeysApart},
		{"CopiesIn", testCopiesIn},
		{"CopiesOut", testCopiesOut},
		{"OwnWrites", testOwnWrites},
		{"Large", testLarge},
		{"ContextEnded", testContextEnded},
		{"ChangeErrors", testChangeErrors},
		{"ConcurrentCreate", testConcurrentCreate},
		{"ConcurrentUpdate", testConcurrentUpdate},
		{"ConcurrentTouch", testConcurrentTouch},
		{"ConcurrentDelete", testConcurrentDelete},
		{"ConcurrentGet", testConcurrentGet},
		{"NeverRevived", testNeverRevived},
		{"Closed", testClosed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { s.Close() })
			tt.run(t, s)
		})
	}
	runExpiry(t, open, opts)
	runReplicas(t, open, opts)
}

// idle is an idle time that no test reaches without moving the time.
const idle = time.Hour

// newRecord returns a record with every field set and a new id.
func newRecord() session.Record {
	// Milliseconds, which every store keeps.
	created := time.Now().Truncate(time.Millisecond)
	return session.Record{
		ID:               session.NewID(),
		Server:           "github",
		Principal:        "oidc\x00https://issuer.example\x00sub:1",
		Transport:        session.Streamable,
		Revision:         mcp.R20251125,
		Created:          created,
		Initialize:       []byte("{\"id\":9007199254740993,\r\n\"x\":\"\xff\x00\u2028\\ud83d\"}"),
		Home:             "replica-1",
		Upstream:         "https://mcp.example/mcp?a=b&c=d",
		UpstreamSession:  "u-1 ~!",
		UpstreamRevision: mcp.R20250618,
		Subscriptions:    []string{"file:///a", "file:///b c,d", ""},
		LogLevel:         "warning",
		LastSeen:         created.Add(1500 * time.Millisecond),
	}
}

// create stores r or ends the test.
func create(t *testing.T, s session.Store, r session.Record) {
	t.Helper()
	if err := s.Create(t.Context(), r, idle); err != nil {
		t.Fatalf("Create: %v", err)
	}
}

// mustGet returns the record of k or ends the test.
func mustGet(t *testing.T, s session.Store, k session.Key) session.Record {
	t.Helper()
	r, err := s.Get(t.Context(), k)
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	return r
}

// mustBe ends the test where got is not want, Version aside.
func mustBe(t *testing.T, got, want session.Record) {
	t.Helper()
	var diff []string
	check := func(field string, same bool) {
		if !same {
			diff = append(diff, field)
		}
	}
	check("ID", got.ID == want.ID)
	check("Server", got.Server == want.Server)
	check("Principal", got.Principal == want.Principal)
	check("Transport", got.Transport == want.Transport)
	check("Revision", got.Revision == want.Revision)
	check("Created", got.Created.Equal(want.Created))
	check("Initialize", bytes.Equal(got.Initialize, want.Initialize))
	check("Home", got.Home == want.Home)
	check("Upstream", got.Upstream == want.Upstream)
	check("UpstreamSession", got.UpstreamSession == want.UpstreamSession)
	check("UpstreamRevision", got.UpstreamRevision == want.UpstreamRevision)
	check("Subscriptions", slices.Equal(got.Subscriptions, want.Subscriptions))
	check("LogLevel", got.LogLevel == want.LogLevel)
	check("LastSeen", got.LastSeen.Equal(want.LastSeen))
	if diff != nil {
		t.Fatalf("record differs in %v\n got %#v\nwant %#v", diff, got, want)
	}
}

// mustFail ends the test where err is not want, or is another sentinel too.
func mustFail(t *testing.T, call string, err, want error) {
	t.Helper()
	for _, e := range []error{session.ErrNotFound, session.ErrExists, session.ErrUnavailable} {
		if errors.Is(err, e) != (e == want) {
			t.Fatalf("%s: error %v, want %v", call, err, want)
		}
	}
}

// everyCallFails ends the test where a call with k does not fail by want.
func everyCallFails(t *testing.T, s session.Store, k session.Key, want error) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	_, err := s.Get(ctx, k)
	mustFail(t, "Get", err, want)
	_, err = s.Update(ctx, k, func(*session.Record) error {
		t.Error("Update calls change without a record")
		return nil
	})
	mustFail(t, "Update", err, want)
	mustFail(t, "Touch", s.Touch(ctx, k, time.Now()), want)
	mustFail(t, "Delete", s.Delete(ctx, k), want)
}
