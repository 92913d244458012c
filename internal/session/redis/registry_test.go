//go:build unix

package redis

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
)

func TestRegistry(t *testing.T) {
	server := redistest.Start(t)
	raw := plain(t, server.Addr)
	one, two := open(t, server, Config{}).Registry(), open(t, server, Config{}).Registry()
	ids := func() string {
		t.Helper()
		live, err := one.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(slices.Sorted(maps.Keys(live)), " ")
	}
	put := func(g Registry, id, value string, lease time.Duration) {
		t.Helper()
		if err := g.Put(t.Context(), id, []byte(value), lease); err != nil {
			t.Fatal(err)
		}
	}

	if got := ids(); got != "" {
		t.Errorf("at first: %q", got)
	}
	if _, err := one.Get(t.Context(), "a"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Get before Put: %v", err)
	}
	put(one, "a", "1", time.Hour)
	put(two, "b}{:", "\x00\xff", time.Hour)
	put(two, "c", "short", time.Hour)
	if got := ids(); got != "a b}{: c" {
		t.Errorf("ids: %q", got)
	}
	if v, err := one.Get(t.Context(), "b}{:"); err != nil || string(v) != "\x00\xff" {
		t.Errorf("Get: %q, %v", v, err)
	}
	put(one, "a", "2", time.Hour)
	if v, err := two.Get(t.Context(), "a"); err != nil || string(v) != "2" {
		t.Errorf("Get just after a Put elsewhere: %q, %v", v, err)
	}

	if left, err := two.Left(t.Context(), "b}{:"); err != nil || left <= 59*time.Minute || left > time.Hour {
		t.Errorf("Left: %v, %v", left, err)
	}
	if left, err := two.Left(t.Context(), "nobody"); !errors.Is(err, session.ErrNotFound) || left != 0 {
		t.Errorf("Left of nobody: %v, %v", left, err)
	}
	put(two, "c", "short", time.Millisecond)
	eventually(t, "the lease ends", func() bool {
		_, err := one.Get(t.Context(), "c")
		return errors.Is(err, session.ErrNotFound)
	})
	if got := ids(); got != "a b}{:" {
		t.Errorf("after the lease: %q", got)
	}
	m := do(t, raw, "SISMEMBER", "signalbox:replica:{replicas}", "c")
	if n, _ := m.AsInt64(); n != 0 {
		t.Error("the set keeps what ended")
	}
	put(two, "c", "back", time.Hour)
	if got := ids(); got != "a b}{: c" {
		t.Errorf("registered again: %q", got)
	}
	for range 2 {
		if err := one.Remove(t.Context(), "a"); err != nil {
			t.Errorf("Remove: %v", err)
		}
	}
	if got := ids(); got != "b}{: c" {
		t.Errorf("after Remove: %q", got)
	}
	if one.Put(t.Context(), "", nil, time.Second) == nil || one.Put(t.Context(), "x", nil, 0) == nil {
		t.Error("an empty id or lease is taken")
	}
	for _, k := range []string{"signalbox:replica:{replicas}", "signalbox:replica:{replicas}:c"} {
		m := do(t, raw, "PTTL", k)
		if left, _ := m.AsInt64(); left <= 0 {
			t.Errorf("%s stays for ever: %d", k, left)
		}
	}
}
