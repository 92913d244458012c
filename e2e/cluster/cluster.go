package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// The servers that each replica offers, by name.
const (
	Private = "private" // a process for each session
	Shared  = "shared"  // a process for each replica
	OnWeb   = "web"     // an HTTP server
)

// Lease is how long a replica that is gone counts as alive, in seconds of Redis.
const Lease = 10

// Cluster is some replicas over one Redis.
type Cluster struct {
	Redis    *Redis
	Wire     *Wire // from the replicas to Redis
	Web      *Web
	Replicas []*Replica
	Secret   string // file with the secret of the peers

	config string
}

// Options of a cluster.
type Options struct {
	Replicas int // 0: three
	Flags    []string
}

// Start runs a cluster until the test ends, and waits until all replicas are ready.
func Start(t testing.TB, o Options) *Cluster {
	t.Helper()
	Need(t, "redis-server", "nginx")
	if o.Replicas == 0 {
		o.Replicas = 3
	}
	c := &Cluster{Redis: StartRedis(t), Web: StartWeb(t)}
	c.Wire = StartWire(t, c.Redis.Addr)
	c.configure(t)
	for range o.Replicas {
		c.Add(t, c.Wire, o.Flags...)
	}
	for _, r := range c.Replicas {
		r.AwaitReady()
	}
	return c
}

// Add starts one more replica, which reaches Redis by wire.
func (c *Cluster) Add(t testing.TB, wire *Wire, flags ...string) *Replica {
	t.Helper()
	args := append([]string{
		"--config", c.config, "--store", "redis://" + wire.Addr + "/0",
		"--peer-listen", "127.0.0.1:0", "--peer-secret-file", c.Secret,
		"--max-processes", "400",
	}, flags...)
	r := StartReplica(t, args...)
	c.Replicas = append(c.Replicas, r)
	return r
}

func (c *Cluster) configure(t testing.TB) {
	t.Helper()
	c.config = config(t, c.Web)
	c.Secret = filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(c.Secret, []byte(strings.Repeat("a secret of the peers ", 2)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// config writes a configuration with the three servers.
func config(t testing.TB, web *Web) string {
	t.Helper()
	server, err := box.FakeServer()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := fmt.Sprintf("mcpServers:\n  %s: {command: %q, isolation: session}\n  %s: {command: %q, isolation: shared}\n  %s: {url: %q}\n",
		Private, server, Shared, server, OnWeb, web.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// AddWithWeb is Add for a replica whose HTTP server is another.
func (c *Cluster) AddWithWeb(t testing.TB, web *Web) *Replica {
	t.Helper()
	all := c.config
	defer func() { c.config = all }()
	c.config = config(t, web)
	return c.Add(t, c.Wire)
}

// Addrs are the addresses of the replicas.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Replicas))
	for i, r := range c.Replicas {
		addrs[i] = r.Addr
	}
	return addrs
}

// Balanced starts nginx before the replicas.
func (c *Cluster) Balanced(t testing.TB) *Nginx {
	t.Helper()
	return StartNginx(t, c.Addrs()...)
}

// Path is where a server is offered, by /mcp or /sse.
func Path(server, transport string) string { return "/servers/" + server + "/" + transport }
