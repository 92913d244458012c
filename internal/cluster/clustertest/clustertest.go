// Package clustertest holds the test that every cluster.Registry must pass.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/session"
)

// Part is one part of the test, of an empty registry. wait lets that much time
// pass by the clock of its store, and no less.
type Part func(t *testing.T, r cluster.Registry, wait func(time.Duration))

// Run tests a Registry: in calls the part that it is given, with a registry.
func Run(t *testing.T, in func(t *testing.T, part Part)) {
	for name, part := range map[string]Part{
		"Values": values, "Leases": leases, "Remove": remove, "Context": ended, "AtOnce": atOnce,
	} {
		t.Run(name, func(t *testing.T) { in(t, part) })
	}
}

func put(t *testing.T, r cluster.Registry, id, value string, lease time.Duration) {
	t.Helper()
	if err := r.Put(t.Context(), id, []byte(value), lease); err != nil {
		t.Fatalf("Put %q: %v", id, err)
	}
}

// want checks what Get and List say of id; "" is not there.
func want(t *testing.T, r cluster.Registry, id, value string) {
	t.Helper()
	got, err := r.Get(t.Context(), id)
	if string(got) != value || (value == "" && !errors.Is(err, session.ErrNotFound)) || (value != "" && err != nil) {
		t.Errorf("Get %q: %q, %v, want %q", id, got, err, value)
	}
	all, err := r.List(t.Context())
	if got, ok := all[id]; err != nil || ok != (value != "") || string(got) != value {
		t.Errorf("List has %q, %v for %q (%v), want %q", got, ok, id, err, value)
	}
	if left, err := r.Left(t.Context(), id); (value == "") != errors.Is(err, session.ErrNotFound) || (value != "") != (err == nil && left > 0) {
		t.Errorf("Left %q: %v, %v", id, left, err)
	}
}

func values(t *testing.T, r cluster.Registry, _ func(time.Duration)) {
	want(t, r, "a", "")
	bytes := string([]byte{0, 1, '\n', '|', 0xff, 0xfe})
	put(t, r, "a", bytes, time.Hour)
	put(t, r, "a:b*?[", "2", time.Hour)
	want(t, r, "a", bytes)
	want(t, r, "a:b*?[", "2")
	want(t, r, "a:b", "")
	put(t, r, "a", "new", time.Hour)
	want(t, r, "a", "new")
	value := []byte("mine")
	if err := r.Put(t.Context(), "c", value, time.Hour); err != nil {
		t.Fatal(err)
	}
	value[0] = 'X'
	want(t, r, "c", "mine")
	if all, err := r.List(t.Context()); len(all) != 3 || err != nil {
		t.Errorf("List has %d ids, %v, want 3", len(all), err)
	}
}

func leases(t *testing.T, r cluster.Registry, wait func(time.Duration)) {
	const lease = 2 * time.Second
	put(t, r, "dies", "1", lease)
	put(t, r, "renewed", "1", lease)
	if left, err := r.Left(t.Context(), "dies"); err != nil || left > lease {
		t.Errorf("Left of a lease of %v: %v, %v", lease, left, err)
	}
	wait(lease / 2)
	want(t, r, "dies", "1")
	put(t, r, "renewed", "2", lease)
	wait(lease/2 + time.Second) // a store may be late by a second
	want(t, r, "dies", "")
	put(t, r, "dies", "again", lease)
	want(t, r, "dies", "again")
	put(t, r, "renewed", "3", time.Hour)
	wait(2 * lease)
	want(t, r, "renewed", "3")
	if err := r.Put(t.Context(), "x", nil, 0); err == nil {
		t.Error("a lease of 0 is taken")
	}
}

func remove(t *testing.T, r cluster.Registry, _ func(time.Duration)) {
	put(t, r, "a", "1", time.Hour)
	put(t, r, "b", "1", time.Hour)
	for range 2 {
		if err := r.Remove(t.Context(), "a"); err != nil {
			t.Errorf("Remove: %v", err)
		}
	}
	want(t, r, "a", "")
	want(t, r, "b", "1")
}

func ended(t *testing.T, r cluster.Registry, _ func(time.Duration)) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := r.Get(ctx, "a")
	_, listErr := r.List(ctx)
	_, leftErr := r.Left(ctx, "a")
	for name, err := range map[string]error{"Put": r.Put(ctx, "a", nil, time.Hour), "Get": getErr, "List": listErr, "Left": leftErr, "Remove": r.Remove(ctx, "a")} {
		if !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("%s after the context ended: %v, want session.ErrUnavailable", name, err)
		}
	}
}

func atOnce(t *testing.T, r cluster.Registry, _ func(time.Duration)) {
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			id := fmt.Sprint("r", i)
			for range 10 {
				if err := r.Put(t.Context(), id, []byte(id), time.Hour); err != nil {
					t.Errorf("%s: %v", id, err)
				}
				if got, err := r.Get(t.Context(), id); string(got) != id || err != nil {
					t.Errorf("%s: %q, %v", id, got, err)
				}
				_, _ = r.List(t.Context())
			}
		})
	}
	wg.Wait()
	if all, err := r.List(t.Context()); len(all) != 20 || err != nil {
		t.Errorf("%d ids, %v, want 20", len(all), err)
	}
}
