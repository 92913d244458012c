package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/cluster"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// What ends a parked call, and a hidden session that nobody uses, in the replicas of
// these tests.
const (
	parkedLimit = 45 * time.Second
	hiddenIdle  = 10 * time.Second
)

// eraReplicas are two replicas in front of a server of the handshake era.
type eraReplicas struct {
	t        *testing.T
	name     string // of the tool
	tag      string // of the processes
	replicas []*cluster.Replica
}

// startEraReplicas starts them over a real Redis, with principals from a file of keys.
func startEraReplicas(t *testing.T, keys *keyFile) *eraReplicas {
	t.Helper()
	cluster.Need(t, "redis-server")
	redis := cluster.StartRedis(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	c := &eraReplicas{t: t, name: randomName(), tag: rand.Text()}
	flags := []string{
		"--store", redis.URL(), "--peer-listen", "127.0.0.1:0", "--peer-secret-file", secret,
		"--auth-keys", keys.path, "--max-processes", "400", "--env", box.TagName + "=" + c.tag,
		"--question-timeout", parkedLimit.String(), "--session-idle", hiddenIdle.String(),
		"--",
	}
	for range 2 {
		c.replicas = append(c.replicas, cluster.StartReplica(t, append(flags, built(t, box.RandomNames, "-name", c.name)...)...))
	}
	for _, r := range c.replicas {
		r.AwaitReady()
	}
	return c
}

// endpoint of the replica with this number, counted round.
func (c *eraReplicas) endpoint(i int) string { return c.replicas[i%len(c.replicas)].URL + "/mcp" }

// metric sums a gauge over the replicas.
func (c *eraReplicas) metric(name string) (sum float64) {
	for _, r := range c.replicas {
		sum += r.Metric(name, "")
	}
	return sum
}

// await waits until the sum of a gauge is there.
func (c *eraReplicas) await(name string, want float64) {
	c.t.Helper()
	cluster.Await(c.t, parkedLimit+box.Patience, fmt.Sprintf("%s of all replicas is %v", name, want), func() string {
		if got := c.metric(name); got != want {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// awaitNothing waits until nothing of any call is left.
func (c *eraReplicas) awaitNothing() {
	c.t.Helper()
	for _, name := range []string{box.MetricParked, box.MetricCallsInFlight, box.MetricHiddenSessions, box.MetricSessions, box.MetricStreams, box.MetricProcesses} {
		c.await(name, 0)
	}
	if left := box.Tagged(c.tag); len(left) > 0 {
		c.t.Errorf("%d processes are left, such as %v", len(left), left[0])
	}
}

// stormCall is one of the calls of TestEraParkedStorm.
type stormCall struct {
	i     int
	owner *asker
	thief *asker
	tag   string
	in    rawclient.InputRequired
}

// TestEraParkedStorm parks 200 calls of 50 principals at two replicas at once. A third is
// never answered; a third is answered through the replica that does not have it, and then
// in turn; a third is first answered by another principal, who must be refused, and then
// by its own. All are right or refused, and in the end nothing is left.
func TestEraParkedStorm(t *testing.T) {
	box.NeedProc(t)
	const principals, calls = 50, 200
	const plan = "elicitation,sampling+roots,elicitation"
	keys := newKeyFile(t)
	askers := make([]*asker, principals)
	for i := range askers {
		who := fmt.Sprintf("p%02d", i)
		askers[i] = newAsker(t, who, keys.add(who))
	}
	c := startEraReplicas(t, keys)
	all := make([]stormCall, calls)
	for i := range all {
		all[i] = stormCall{i: i, owner: askers[i%principals], thief: askers[(i+1)%principals], tag: fmt.Sprintf("call%03d", i)}
	}
	atOnce := func(do func(*stormCall) error) {
		t.Helper()
		var wait sync.WaitGroup
		for i := range all {
			wait.Go(func() {
				if err := do(&all[i]); err != nil {
					t.Errorf("%s of %s: %v", all[i].tag, all[i].owner.who, err)
				}
			})
		}
		wait.Wait()
		if t.Failed() {
			t.FailNow()
		}
	}
	atOnce(func(s *stormCall) (err error) {
		s.in, err = s.owner.park(t.Context(), c.endpoint(s.i), toolParams(c.name, s.tag, plan))
		return err
	})
	if n := c.metric(box.MetricParked); n != calls {
		t.Errorf("%v calls are parked, want %d", n, calls)
	}
	atOnce(func(s *stormCall) error { return s.goOn(t.Context(), c, plan) })
	abandoned := 0
	for i := range all {
		if i%3 == 0 {
			abandoned++
		}
	}
	if n := c.metric(box.MetricParked); n != float64(abandoned) {
		t.Errorf("%v calls are parked, want the %d that nobody answered", n, abandoned)
	}
	c.awaitNothing()
	// Too late.
	s := all[0]
	reply, err := s.owner.retry(t.Context(), c.endpoint(0), toolParams(c.name, s.tag, plan), s.in)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Status != http.StatusBadRequest || reply.Code() != -32602 {
		t.Errorf("an answer after the limit: %v", reply)
	}
}

// goOn does with a parked call what its third does.
func (s *stormCall) goOn(ctx context.Context, c *eraReplicas, plan string) error {
	params := toolParams(c.name, s.tag, plan)
	here, there := c.endpoint(s.i), c.endpoint(s.i+1)
	endpoints := []string{there, here}
	switch s.i % 3 {
	case 0:
		return nil
	case 2:
		for _, endpoint := range []string{here, there} {
			reply, err := s.thief.retry(ctx, endpoint, params, s.in)
			if err != nil {
				return err
			}
			if reply.Status != http.StatusBadRequest || reply.Code() != -32602 || strings.Contains(reply.Body, s.owner.who) {
				return fmt.Errorf("%s was not refused: %v", s.thief.who, reply)
			}
		}
		endpoints = []string{here}
	}
	text, _, err := s.owner.finish(ctx, params, s.in, endpoints...)
	if err != nil {
		return err
	}
	if wrong := wrongPlanned(text, s.owner.who, c.name, s.tag, plan); wrong != "" {
		return fmt.Errorf("WRONG: %s", wrong)
	}
	return nil
}

// TestEraParkedElsewhere answers each round through the other replica, and has the
// replica that has the call end between two rounds.
func TestEraParkedElsewhere(t *testing.T) {
	keys := newKeyFile(t)
	ada := newAsker(t, "ada", keys.add("ada"))
	c := startEraReplicas(t, keys)
	const plan = "elicitation,sampling,roots"
	in := ada.mustPark(t, c.endpoint(0), toolParams(c.name, "t", plan))
	if rounds := ada.mustFinish(t, c.name, "t", plan, in, c.endpoint(1)); rounds != 3 {
		t.Errorf("%d rounds, want 3", rounds)
	}
	in = ada.mustPark(t, c.endpoint(0), toolParams(c.name, "lost", plan))
	c.replicas[0].Kill()
	cluster.Await(t, cluster.Lease*time.Second+box.Patience, "the replica that is gone has lost its calls", func() string {
		reply, err := ada.retry(t.Context(), c.endpoint(1), toolParams(c.name, "lost", plan), in)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Status == http.StatusServiceUnavailable {
			return reply.String() // its lease is not over
		}
		if reply.Response.Error == nil {
			t.Errorf("the call of a replica that is gone: %v", reply)
		}
		return ""
	})
	in = ada.mustPark(t, c.endpoint(1), toolParams(c.name, "next", plan))
	ada.mustFinish(t, c.name, "next", plan, in, c.endpoint(1))
}
