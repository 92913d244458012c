//go:build unix

package redis

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = bytes.Repeat([]byte("k"), 32)

// noTracking are the arguments of a server that refuses CLIENT TRACKING.
var noTracking = []string{"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-client|tracking"}

// open returns a Store that the test closes. The zero fields of cfg are filled in.
func open(t testing.TB, srv *redistest.Server, cfg Config) *Store {
	t.Helper()
	if cfg.URL == "" {
		cfg.URL = srv.URL()
	}
	if cfg.Key == nil {
		cfg.Key = testKey
	}
	s, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// plain returns a client of its own, without anything in between.
func plain(t testing.TB, addr string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// do runs a command of the plain client.
func do(t testing.TB, c rueidis.Client, args ...string) rueidis.RedisMessage {
	t.Helper()
	m, err := c.Do(context.Background(), c.B().Arbitrary(args...).Build()).ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%v: %v", args, err)
	}
	return m
}

// eventually ends the test unless ok holds within some seconds.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func newRecord() session.Record {
	now := time.Now()
	return session.Record{
		ID: session.NewID(), Server: "github", Principal: "oidc sub:1",
		Transport: session.Streamable, Revision: mcp.R20251125, Created: now,
		Initialize: []byte(`{"method":"initialize"}`), Home: "replica-1",
		Upstream: "https://mcp.example/mcp", UpstreamSession: "u-1", UpstreamRevision: mcp.R20250618,
		Subscriptions: []string{"file:///a", ""}, LogLevel: "warning", LastSeen: now, Listener: "replica-2", Used: true,
	}
}

// create stores r. It returns when Redis has told the Store of its own write: a
// Get that comes before leaves no copy.
func create(t testing.TB, s *Store, r session.Record) {
	t.Helper()
	if err := s.Create(t.Context(), r, time.Hour); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
}

// settle returns when s has read what Redis told it before.
func settle(t testing.TB, s *Store) {
	t.Helper()
	if _, err := s.Registry().List(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s *Store, k session.Key) session.Record {
	t.Helper()
	r, err := s.Get(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// logs collects what a Store logs.
type logs struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logs) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}
