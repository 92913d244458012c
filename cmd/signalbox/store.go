package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis"
)

// storeFlags say where sessions are kept, and how replicas that share them
// reach each other.
type storeFlags struct {
	Store          string `default:"memory:" placeholder:"URL" help:"Where sessions are kept: memory:, redis://HOST:PORT/DB, rediss://, redis+sentinel://, redis+cluster://."`
	StoreRequired  bool   `help:"Exit with code 1 where the store cannot be reached within --start-timeout."`
	PeerListen     string `placeholder:"ADDR" help:"Address for other replicas; off if empty."`
	Advertise      string `placeholder:"HOST:PORT" help:"What other replicas dial; the peer listener's address if empty."`
	PeerSecretFile string `type:"path" placeholder:"FILE" help:"File with the secret that all replicas share, at least 32 bytes."`
}

func (f *storeFlags) inMemory() bool { return f.Store == "memory:" || f.Store == "memory" }

func (f *storeFlags) check() error {
	peers := f.PeerListen != "" || f.Advertise != "" || f.PeerSecretFile != ""
	switch {
	case f.inMemory() && (peers || f.StoreRequired):
		return errors.New("--peer-listen, --advertise, --peer-secret-file and --store-required need a store that replicas share; set --store redis://HOST:PORT")
	case f.inMemory():
		return nil
	case (f.PeerListen == "") != (f.PeerSecretFile == ""):
		return errors.New("--peer-listen and --peer-secret-file belong together")
	case f.PeerListen == "" && f.Advertise != "":
		return errors.New("--advertise means nothing without --peer-listen")
	}
	if f.PeerListen != "" {
		if _, _, err := net.SplitHostPort(f.PeerListen); err != nil {
			return fmt.Errorf("--peer-listen: %q is no HOST:PORT", f.PeerListen)
		}
	}
	return nil
}

// secrets are the keys of this process.
type secrets struct {
	state  []byte // signs event ids and seals records
	peers  []byte // proves that a replica is one
	old    []byte // state before it was changed; nil: none
	random bool   // state is of this start only
	admin  string // token of the admin listener; "": none
}

// secrets reads or makes the keys. Without a key file that of the state is
// derived from the peers' secret, and the other way round.
func (c *serveCmd) secrets() (s secrets, err error) {
	if c.StateKeyFile != "" {
		if s.state, err = readSecret("--state-key-file", c.StateKeyFile); err != nil {
			return s, err
		}
	}
	if c.OldStateKeyFile != "" {
		if s.old, err = readSecret("--old-state-key-file", c.OldStateKeyFile); err != nil {
			return s, err
		}
	}
	if c.PeerSecretFile != "" {
		if s.peers, err = readSecret("--peer-secret-file", c.PeerSecretFile); err != nil {
			return s, err
		}
	}
	switch {
	case s.state == nil && s.peers != nil:
		s.state = cluster.StateKey(s.peers)
	case s.state == nil:
		s.state, s.random = make([]byte, 32), true
		rand.Read(s.state) // never fails (crypto/rand, Go 1.24)
	}
	if s.peers == nil {
		s.peers = s.state
	}
	if c.AdminTokenFile != "" {
		s.admin, err = readToken(c.AdminTokenFile)
	}
	return s, err
}

func readSecret(flag, path string) ([]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	key := []byte(strings.TrimSpace(string(b)))
	if len(key) < cluster.MinSecret {
		return nil, fmt.Errorf("%s: %s has %d bytes, at least %d are needed", flag, path, len(key), cluster.MinSecret)
	}
	return key, nil
}

// shared is what a process has that shares its sessions with others.
type shared struct {
	store *redis.Store
	node  *cluster.Node
}

// share opens the store that replicas share, and joins them. handler serves
// what they forward.
func (c *serveCmd) share(keys secrets, reg *prometheus.Registry, handler http.Handler, log *slog.Logger) (*shared, error) {
	stores, peers := redis.NewMetrics(), cluster.NewMetrics()
	reg.MustRegister(stores, peers)
	store, err := redis.Open(redis.Config{URL: c.Store, Key: keys.state, Log: log, Metrics: stores})
	if err != nil {
		return nil, usageError{fmt.Errorf("--store: %w", err)}
	}
	// Without a listener for peers there is one that nobody reaches: being
	// registered says that the sessions here are not lost.
	listener, err := net.Listen("tcp", orDefault(c.PeerListen, "127.0.0.1:0"))
	if err != nil {
		_ = store.Close()
		return nil, fmt.Errorf("--peer-listen: %w", err)
	}
	node, err := cluster.Join(cluster.Config{
		Registry: store.Registry(), Secret: keys.peers, Listener: listener, Advertise: c.Advertise,
		Handler: handler, Log: log, Metrics: peers,
	})
	if err != nil {
		_ = listener.Close()
		_ = store.Close()
		return nil, usageError{err}
	}
	if keys.random {
		log.Warn("sessions in the store cannot be read after a restart: the key that seals them is random; set --state-key-file")
	}
	return &shared{store, node}, nil
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// ready tells why no session may begin: one that the store does not know, or
// whose home others take for dead, would be lost at once.
func (s *shared) ready() error {
	if err := s.store.Ready(); err != nil {
		return err
	}
	if !s.node.Registered() {
		return fmt.Errorf("%w: this replica is not registered yet", session.ErrUnavailable)
	}
	return nil
}

// await waits until the store is there, for as long as limit.
func (s *shared) await(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ready()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return err
		}
	}
}

// lonely is a store whose key nobody else has: a record that it cannot open is
// of a session that is lost.
type lonely struct{ session.Store }

func (s lonely) Get(ctx context.Context, k session.Key) (session.Record, error) {
	rec, err := s.Store.Get(ctx, k)
	if errors.Is(err, redis.ErrSealed) {
		return session.Record{}, session.ErrNotFound
	}
	return rec, err
}

// storeWait is how long the start waits for a store that is not required.
const storeWait = 3 * time.Second

// awaitStore waits for the store at start. One that is required and not there
// is an error; without any other that is not there, Signalbox is not ready.
func (a *app) awaitStore(ctx context.Context, c *serveCmd) error {
	if a.shared == nil {
		return nil
	}
	limit := storeWait
	if c.StoreRequired {
		limit = c.StartTimeout
	}
	err := a.shared.await(ctx, limit)
	switch {
	case err == nil || ctx.Err() != nil:
		return nil
	case c.StoreRequired:
		return fmt.Errorf("--store-required: the session store was not reached in %s: %w", limit, err)
	}
	a.log.Error("not ready: the session store cannot be reached; trying on", "err", err)
	return nil
}
