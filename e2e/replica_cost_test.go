package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
)

// TestWarmRequestsAskRedisNothing counts Redis' commands while sessions that every replica
// knows are used through all of them, and takes off what Redis is asked by the clock and not
// by the request: heartbeats, and whether the homes of others live.
func TestWarmRequestsAskRedisNothing(t *testing.T) {
	const sessions, requests = 24, 6_000
	c := cluster.Start(t, cluster.Options{})
	var all []*cluster.Client
	for n := range sessions {
		all = append(all, cluster.Open(t, c.Replicas[n%3].URL, []string{cluster.Private, cluster.Shared, cluster.OnWeb}[n/3%3]))
	}
	for _, s := range all {
		s.KeepAlive()
	}
	// What is new of a session is written down in the background, and makes others look again.
	cluster.Await(t, time.Minute, "all sessions are warm everywhere", func() string {
		calls := commands(c, func() {
			for _, s := range all {
				for _, r := range c.Replicas {
					if wrong := s.Echoed(s.Echo(r.URL)); wrong != "" {
						t.Fatal(wrong)
					}
				}
			}
			time.Sleep(time.Second)
		})
		if calls["evalsha"] > 0 {
			return fmt.Sprint(calls)
		}
		return ""
	})
	begun := time.Now()
	busy := commands(c, func() {
		var load sync.WaitGroup
		for n, s := range all {
			load.Go(func() {
				for i := range requests / sessions {
					if wrong := s.Echoed(s.Echo(c.Replicas[(n+i)%3].URL)); wrong != "" {
						t.Error(wrong)
						return
					}
				}
			})
		}
		load.Wait()
	})
	took := time.Since(begun)
	const idle = 5 * time.Second // a heartbeat of each replica at least
	quiet := commands(c, func() { time.Sleep(idle) })
	// Each heartbeat asks once for the list of replicas.
	beat := float64(sum(quiet)) / float64(quiet["smembers"])
	// A replica that forwards asks each second whether the home lives, for each of the two.
	alive := float64(3*2) * (took.Seconds() + 1)
	own := max(0, float64(sum(busy))-beat*float64(busy["smembers"])-alive)
	t.Logf("%d requests in %v: %v", requests, took.Round(10*time.Millisecond), busy)
	t.Logf("at rest, in %v: %v, %.1f for each heartbeat", idle, quiet, beat)
	t.Logf("%.2f commands for each thousand requests, %.1f with what the clock asks", own*1000/requests, float64(sum(busy))*1000/requests)
	if own*1000/requests >= 5 {
		t.Errorf("%.1f commands for each thousand requests, want less than 5", own*1000/requests)
	}
}

// commands counts what Redis is asked during f, by name.
func commands(c *cluster.Cluster, f func()) map[string]int {
	before := c.Redis.Calls()
	f()
	calls := c.Redis.Calls()
	for name, n := range before {
		if calls[name] -= n; calls[name] == 0 {
			delete(calls, name)
		}
	}
	return calls
}

func sum(calls map[string]int) (n int) {
	for _, count := range calls {
		n += count
	}
	return n
}
