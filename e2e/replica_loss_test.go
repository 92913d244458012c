package e2e

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
)

// leaseEnd is when the lease of a replica that is gone is over for all others, with what
// a slow machine adds.
const leaseEnd = cluster.Lease*time.Second + 8*time.Second

// TestHomeIsKilled kills the replica that has a session's process. What waited for it
// through another replica gets an error, the session is a 404 once the lease is over,
// and what can go on elsewhere does, at once.
func TestHomeIsKilled(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	home, other := c.Replicas[0], c.Replicas[1].URL
	private := cluster.Open(t, home.URL, cluster.Private)
	web := cluster.Open(t, home.URL, cluster.OnWeb)
	own := web.Stream(http.MethodGet, home.URL, cluster.Tag(), "", "")
	defer own.Close()

	waiting := make(chan cluster.Answer)
	for range 5 {
		go func() { waiting <- private.Call(other, "hold", `"key":"never"`) }()
	}
	home.AwaitMetric("signalbox_calls_in_flight", "", 5)
	home.Kill()
	for range 5 {
		a := <-waiting
		if a.Status != http.StatusOK || a.Reason() != "replica_lost" || a.Err != nil || a.Elapsed > leaseEnd {
			t.Errorf("a call that was in flight: %v", a)
		}
	}
	fresh := cluster.Open(t, other, cluster.Private) // at once
	if wrong := fresh.Echoed(fresh.Echo(other)); wrong != "" {
		t.Error(wrong)
	}
	if wrong := web.Echoed(web.Echo(other)); wrong != "" {
		t.Errorf("a session of an HTTP server: %s", wrong)
	}
	ends404(t, private, other)
	if a := private.Echo(c.Replicas[2].URL); a.Status != http.StatusNotFound {
		t.Errorf("at the third replica: %v", a)
	}

	// The stream of the other session was at the dead replica; a new one opens here.
	cluster.Await(t, leaseEnd, "a new stream", func() string {
		a := web.Get(other)
		if a.Status != http.StatusOK && a.Status != http.StatusServiceUnavailable {
			t.Fatalf("GET: %v", a)
		}
		if a.Status != http.StatusOK {
			return a.String()
		}
		return ""
	})
}

// ends404 wants 503 with Retry-After until the lease is over, and 404 from then on.
func ends404(t *testing.T, s *cluster.Client, base string) {
	t.Helper()
	begun := time.Now()
	cluster.Await(t, leaseEnd, "the session is gone", func() string {
		a := s.Echo(base)
		switch {
		case a.Status == http.StatusNotFound:
			if !strings.Contains(a.Body, `"id":"`+a.Tag+`"`) || !strings.Contains(a.Body, "-32001") {
				t.Errorf("the 404 is %v", a)
			}
			return ""
		case a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "":
			t.Errorf("while the lease goes on: %v", a)
		}
		return a.String()
	})
	t.Logf("404 after %v", time.Since(begun).Round(100*time.Millisecond))
}

// TestRedisIsAway takes Redis away in each way that there is, and gives it back. Nobody
// gets a 404, what is at home goes on, and afterwards every session is there.
func TestRedisIsAway(t *testing.T) {
	for _, outage := range []struct {
		name       string
		lasts      time.Duration // at least
		begin, end func(*testing.T, *cluster.Cluster)
	}{
		{"killed", outageTime(), func(_ *testing.T, c *cluster.Cluster) { c.Redis.Kill() }, func(_ *testing.T, c *cluster.Cluster) { c.Redis.Restart() }},
		{"silent", 0, func(_ *testing.T, c *cluster.Cluster) { c.Redis.Pause() }, func(_ *testing.T, c *cluster.Cluster) { c.Redis.Resume() }},
		{"cut off", 0, func(_ *testing.T, c *cluster.Cluster) { c.Wire.Cut() }, func(t *testing.T, c *cluster.Cluster) { c.Wire.Mend(t) }},
		{"slow", 0, func(_ *testing.T, c *cluster.Cluster) { c.Wire.Slow(3 * time.Second) }, func(_ *testing.T, c *cluster.Cluster) { c.Wire.Slow(0) }},
	} {
		t.Run(outage.name, func(t *testing.T) {
			t.Parallel()
			c := cluster.Start(t, cluster.Options{Replicas: 2})
			var sessions []*cluster.Client
			for _, server := range []string{cluster.Private, cluster.Shared, cluster.OnWeb} {
				for range 5 {
					sessions = append(sessions, cluster.Open(t, c.Replicas[0].URL, server))
				}
			}
			outage.begin(t, c)
			begun := time.Now()
			for again := true; again; again = time.Since(begun) < outage.lasts {
				away(t, c, sessions)
			}
			outage.end(t, c)
			for _, r := range c.Replicas {
				r.AwaitReady()
			}
			for _, s := range sessions {
				for _, r := range c.Replicas {
					cluster.Await(t, leaseEnd, s.Server+" is back", func() string {
						a := s.Echo(r.URL)
						if a.Status == http.StatusNotFound {
							t.Errorf("lost: %v", a)
							return ""
						}
						return s.Echoed(a)
					})
				}
			}
		})
	}
}

// outageTime is longer than any lease, so that afterwards no replica is registered.
func outageTime() time.Duration {
	if long() {
		return 30 * time.Second
	}
	return (cluster.Lease + 2) * time.Second
}

// away looks at two replicas while Redis is out of reach: sessions are at home at the first.
func away(t *testing.T, c *cluster.Cluster, sessions []*cluster.Client) {
	t.Helper()
	home, other := c.Replicas[0], c.Replicas[1]
	for _, r := range c.Replicas {
		cluster.Await(t, leaseEnd, "the outage is noticed", func() string {
			if status, body := r.Ready(); status != http.StatusServiceUnavailable {
				return body
			}
			return ""
		})
	}
	const bound = 8 * time.Second // two looks at a store that is silent for 2 s, and a slow machine
	var asked sync.WaitGroup
	for _, s := range sessions {
		asked.Go(func() {
			a := s.Echo(home.URL)
			if wrong := s.Echoed(a); wrong != "" && s.Server != cluster.OnWeb {
				t.Errorf("%s at home: %s", s.Server, wrong)
			}
			for _, a := range []cluster.Answer{a, s.Echo(other.URL)} {
				refused := a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != ""
				if wrong := s.Echoed(a); wrong != "" && !refused || a.Elapsed > bound {
					t.Errorf("%s: %s, %v", s.Server, wrong, a)
				}
			}
		})
	}
	asked.Wait()
	if a := sessions[0].Initialize(other.URL); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || a.Elapsed > bound {
		t.Errorf("initialize: %v", a)
	}
}

// TestReplicaCutOff cuts one replica off from Redis and leaves it alive. It goes on with
// what it is home of, and ends on its return what the others have given up.
func TestReplicaCutOff(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Replicas: 1})
	wire := cluster.StartWire(t, c.Redis.Addr)
	home, other := c.Add(t, wire), c.Replicas[0]
	home.AwaitReady()
	lost, kept := cluster.Open(t, home.URL, cluster.Private), cluster.Open(t, home.URL, cluster.Private)
	for _, s := range []*cluster.Client{lost, kept} {
		if wrong := s.Echoed(s.Echo(other.URL)); wrong != "" {
			t.Fatal(wrong)
		}
	}
	wire.Cut()
	cluster.Await(t, leaseEnd, "the others give the session up", func() string {
		if wrong := lost.Echoed(lost.Echo(home.URL)); wrong != "" {
			t.Errorf("at home: %s", wrong)
		}
		a := lost.Echo(other.URL)
		switch a.Status {
		case http.StatusNotFound:
			return ""
		case http.StatusOK, http.StatusServiceUnavailable:
			return a.String()
		}
		t.Fatal(a)
		return ""
	})
	for _, s := range []*cluster.Client{lost, kept} {
		if wrong := s.Echoed(s.Echo(home.URL)); wrong != "" {
			t.Errorf("still cut off, at home: %s", wrong)
		}
	}
	wire.Mend(t)
	home.AwaitReady()
	cluster.Await(t, leaseEnd, "what was given up has ended", func() string {
		if a := lost.Echo(home.URL); a.Status != http.StatusNotFound {
			return a.String()
		}
		return ""
	})
	home.AwaitMetric("signalbox_processes", "", 1)
	for _, r := range c.Replicas {
		cluster.Await(t, leaseEnd, "the other session is there", func() string { return kept.Echoed(kept.Echo(r.URL)) })
	}
}

// TestRedisForgets empties Redis under sessions of each kind: all are over, by a 404
// after an error of what was in flight, nothing of them stays behind, and new ones begin.
func TestRedisForgets(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Replicas: 2})
	home, other := c.Replicas[0], c.Replicas[1].URL
	sessions := []*cluster.Client{cluster.Open(t, home.URL, cluster.Private), cluster.Open(t, home.URL, cluster.OnWeb)}
	for _, s := range sessions {
		if wrong := s.Echoed(s.Echo(other)); wrong != "" {
			t.Fatal(wrong)
		}
	}
	c.Redis.Do("FLUSHALL")
	for _, s := range sessions {
		for _, base := range []string{home.URL, other} {
			cluster.Await(t, leaseEnd, s.Server+" is over", func() string {
				a := s.Echo(base)
				if a.Status == http.StatusNotFound {
					return ""
				}
				if wrong := s.Echoed(a); wrong != "" && a.Status != http.StatusServiceUnavailable && a.Reason() != "session_ended" {
					t.Errorf("%s: %s", s.Server, wrong)
				}
				return a.String()
			})
		}
	}
	home.AwaitMetric("signalbox_processes", "", 0)
	home.AwaitMetric("signalbox_sessions", "", 0)
	for _, r := range c.Replicas {
		r.AwaitReady()
		if s := cluster.Open(t, r.URL, cluster.Private); s.Echoed(s.Echo(r.URL)) != "" {
			t.Error("a new session does not work")
		}
	}
}
