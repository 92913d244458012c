//go:build unix

package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
	"github.com/signalbox-mcp/signalbox/internal/session/sessiontest"
)

// A cluster of one node: keys have slots, and scripts must stay within one.
func TestCluster(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--cluster-enabled", "yes")
	raw := plain(t, server.Addr)
	do(t, raw, "CLUSTER", "ADDSLOTSRANGE", "0", "16383")
	eventually(t, "the cluster is up", func() bool {
		m := do(t, raw, "CLUSTER", "INFO")
		info, _ := m.ToString()
		return strings.Contains(info, "cluster_state:ok")
	})
	cfg := Config{URL: "redis+cluster://" + server.Addr}
	sessiontest.Run(t, func(t *testing.T) session.Store { return open(t, server, cfg) }, sessiontest.Options{
		Another: func(t *testing.T, _ session.Store) session.Store { return open(t, server, cfg) },
	})
	g := open(t, server, cfg).Registry()
	if err := g.Put(t.Context(), "a", []byte("1"), time.Hour); err != nil {
		t.Error(err)
	}
	if live, err := g.List(t.Context()); err != nil || string(live["a"]) != "1" {
		t.Errorf("List: %q, %v", live, err)
	}
}

// The master ends and Sentinel makes another: what it had been told stays.
func TestSentinelFailover(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	_, port, _ := net.SplitHostPort(master.Addr)
	replica := redistest.Start(t, "--replicaof", "127.0.0.1 "+port)
	raw := plain(t, master.Addr)
	eventually(t, "the replica follows", func() bool {
		m := do(t, raw, "INFO", "replication")
		info, _ := m.ToString()
		return strings.Contains(info, "state=online")
	})
	guard := redistest.StartSentinel(t, master)
	watch := plain(t, guard.Addr)
	eventually(t, "Sentinel knows the replica", func() bool {
		m := do(t, watch, "SENTINEL", "REPLICAS", "main")
		list, _ := m.ToArray()
		return len(list) == 1
	})

	s := open(t, nil, Config{URL: "redis+sentinel://" + guard.Addr + "/main"})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	m := do(t, raw, "WAIT", "1", "5000")
	if n, _ := m.AsInt64(); n != 1 {
		t.Fatal("the replica does not have it")
	}
	raw.Close()
	master.Kill()
	eventually(t, "the other one takes writes", func() bool {
		err := s.Touch(t.Context(), r.Key(), time.Now())
		if errors.Is(err, session.ErrNotFound) {
			t.Fatal("an outage shows as a session that is not there")
		}
		return err == nil
	})
	get(t, s, r.Key())
	do(t, plain(t, replica.Addr), "GET", "x")
}

func TestTLS(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	front := httptest.NewUnstartedServer(nil) // for its certificate
	front.StartTLS()
	defer front.Close()
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: front.TLS.Certificates})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { splice(c, server.Addr) })
		}
	})
	defer wg.Wait()
	defer l.Close()

	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	url := "rediss://" + l.Addr().String()
	s := open(t, nil, Config{URL: url, TLS: &tls.Config{RootCAs: roots}})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	stranger := open(t, nil, Config{URL: url})
	if _, err := stranger.Get(t.Context(), r.Key()); !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("an unknown certificate: %v", err)
	}
	s.Close()
	stranger.Close()
}

// splice copies between c and addr until either ends.
func splice(c net.Conn, addr string) {
	defer c.Close()
	up, err := new(net.Dialer).DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return
	}
	defer up.Close()
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(up, c); up.Close() })
	wg.Go(func() { io.Copy(c, up); c.Close() })
	wg.Wait()
}
