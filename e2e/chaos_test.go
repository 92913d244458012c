package e2e

import (
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
)

const chaosSessions = 200

// TestChaos has 200 sessions of each kind of server and both transports call through a
// balancer that goes round robin, while replicas are killed, drained and started again and
// Redis restarts and falls silent. Nothing may reach a wrong session, everything has to
// end, and only those failures may come that docs/scaling.md lists.
//
// It runs for a quarter of a minute; with SIGNALBOX_E2E_CHAOS=long, as in make chaos, for
// a whole one.
func TestChaos(t *testing.T) {
	lasts := 15 * time.Second
	if long() {
		lasts = time.Minute
	}
	c := cluster.Start(t, cluster.Options{Flags: []string{"--drain", "5s"}})
	nginx := c.Balanced(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	storm := newStorm(t, nginx.URL)
	for n := range chaosSessions {
		storm.add(n, rand.New(rand.NewPCG(seed, uint64(n))))
	}
	storm.begun.Wait()
	disturb(t, c, storm, rand.New(rand.NewPCG(seed, chaosSessions)), time.Now().Add(lasts))
	storm.stop.Store(true)
	storm.load.Wait()
	storm.settle(c)
	storm.report(c)
}

// disturb does one bad thing after the other, each of them once at least.
func disturb(t *testing.T, c *cluster.Cluster, storm *storm, random *rand.Rand, until time.Time) {
	troubles := []func(){
		func() {
			r := c.Replicas[random.IntN(len(c.Replicas))]
			storm.happens("kill")
			r.Kill()
			r.Start()
			r.AwaitReady()
		},
		func() {
			r := c.Replicas[random.IntN(len(c.Replicas))]
			storm.happens("drain")
			r.Signal(syscall.SIGTERM)
			if code := r.Wait(time.Minute); code != 0 {
				t.Errorf("exit code %d", code)
			}
			storm.happens("drained")
			r.Start()
			r.AwaitReady()
		},
		func() {
			storm.happens("redis restarts")
			c.Redis.Kill()
			c.Redis.Restart()
		},
		func() {
			storm.happens("redis is silent")
			c.Redis.Pause()
			time.Sleep(3 * time.Second) // for longer than replicas wait for it
			c.Redis.Resume()
		},
	}
	for round := 0; round == 0 || time.Now().Before(until); round++ {
		for _, i := range random.Perm(len(troubles)) {
			if round > 0 && time.Now().After(until) {
				return
			}
			troubles[i]()
			time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
	}
}

// settle wants every session, now that all is well, to be there or to be over, and ends it.
func (s *storm) settle(c *cluster.Cluster) {
	for _, r := range c.Replicas {
		r.AwaitReady()
	}
	for _, w := range s.workers {
		s.load.Go(func() { w.last(c) })
	}
	s.load.Wait()
}

// report prints what happened, and fails the test for what must not have.
func (s *storm) report(c *cluster.Cluster) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.Logf("%v\n%s", s.times, s.table())
	for _, wrong := range append(c.Web.Wrong(), s.bad...) {
		s.t.Error(wrong)
	}
	if n := c.Web.Repeated(); n > 0 {
		s.t.Errorf("%d calls came to the HTTP server more than once", n)
	}
	for _, k := range kinds {
		if s.seen[k]["ok"] == 0 {
			s.t.Errorf("no call of %v succeeded", k)
		}
	}
}

// kind of a session.
type kind struct{ server, transport string }

func (k kind) String() string { return fmt.Sprintf("%s /%s", k.server, k.transport) }

var kinds = []kind{
	{cluster.Private, "mcp"}, {cluster.Shared, "mcp"}, {cluster.OnWeb, "mcp"},
	{cluster.Private, "sse"}, {cluster.Shared, "sse"}, {cluster.OnWeb, "sse"},
}

// moves tells whether sessions live on without the replica that opened them.
func (k kind) moves() bool { return k == kind{cluster.OnWeb, "mcp"} }
