package e2e

import (
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
)

// TestStoreIsWrongAtStart gives a replica a store that it cannot use: it is not ready and
// says why, and with --store-required it gives up after --start-timeout.
func TestStoreIsWrongAtStart(t *testing.T) {
	t.Parallel()
	cluster.Need(t, "redis-server")
	redis := cluster.StartRedis(t, "--requirepass", "right")
	for name, url := range map[string]string{
		"wrong password": "redis://:wrong-password@" + redis.Addr + "/0",
		"no password":    redis.URL(),
		"wrong address":  "redis://127.0.0.1:1/0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := cluster.StartReplica(t, append([]string{"--store", url, "--"}, fakeServer(t)...)...)
			cluster.Await(t, eventTime, "it answers", func() string {
				status, body := r.Ready()
				if status == 0 {
					return body
				}
				if status != http.StatusServiceUnavailable || !strings.Contains(body, "store") {
					t.Errorf("/readyz: %d %s", status, body)
				}
				return ""
			})
			r.AwaitLog(`level=(WARN|ERROR) .*store`)
			if r.Says("wrong-password") {
				t.Error("the password is in the log")
			}
			strict := cluster.StartReplica(t, append([]string{"--store", url, "--store-required", "--start-timeout", "1s", "--"}, fakeServer(t)...)...)
			if code := strict.Wait(eventTime); code != 1 {
				t.Errorf("exit code %d with --store-required, want 1", code)
			}
			strict.AwaitLog("--store-required")
		})
	}
}

// TestForgedReplica writes into Redis what looks like a replica, and knocks at the peers'
// listener without being one. Both are refused and counted.
func TestForgedReplica(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Replicas: 1})
	r := c.Replicas[0]
	keys := c.Redis.Registrations()
	if len(keys) != 1 {
		t.Fatalf("registrations: %q", keys)
	}
	c.Redis.Forge(keys[0])
	cluster.Await(t, eventTime, "the forged registration is counted", func() string {
		if r.Metric("signalbox_peer_refused_total", `reason="registration_`) == 0 {
			return "not counted"
		}
		return ""
	})
	if n := r.Metric("signalbox_peers", ""); n != 0 {
		t.Errorf("%v peers", n)
	}
	before := r.Metric("signalbox_peer_refused_total", "")
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: time.Second}, "tcp", c.Redis.PeerAddr(keys[0]), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err == nil {
		conn.SetDeadline(time.Now().Add(eventTime))
		_, err = conn.Read(make([]byte, 1)) // TLS 1.3 tells a client late that it is refused
		conn.Close()
	}
	if err == nil {
		t.Error("a stranger got an answer")
	}
	cluster.Await(t, eventTime, "the stranger is counted", func() string {
		if r.Metric("signalbox_peer_refused_total", "") <= before {
			return "not counted"
		}
		return ""
	})
	if s := cluster.Open(t, r.URL, cluster.Private); s.Echoed(s.Echo(r.URL)) != "" {
		t.Error("it does not serve any more")
	}
}

// TestRecordOfAnotherAddress has a replica whose configuration does not have the address
// that a session's record names: nothing goes there.
func TestRecordOfAnotherAddress(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Replicas: 1})
	s := cluster.Open(t, c.Replicas[0].URL, cluster.OnWeb)
	if wrong := s.Echoed(s.Echo(c.Replicas[0].URL)); wrong != "" {
		t.Fatal(wrong)
	}
	other := cluster.StartWeb(t)
	r := c.AddWithWeb(t, other)
	r.AwaitReady()
	a := s.Echo(r.URL)
	if a.Status != http.StatusNotFound {
		t.Errorf("the replica that does not have the address: %v", a)
	}
	if wrong := other.Wrong(); len(wrong) > 0 {
		t.Error(wrong)
	}
}
