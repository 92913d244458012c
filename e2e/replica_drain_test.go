package e2e

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// long tells whether the tests of replicas may take their time, as for make chaos.
func long() bool { return os.Getenv("SIGNALBOX_E2E_CHAOS") == "long" }

// TestReplicaDrains ends a replica by SIGTERM. It takes no new sessions, lets calls
// finish and tells listeners to come again; its own sessions end cleanly, and those of
// HTTP servers live on at the others.
func TestReplicaDrains(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{Replicas: 2})
	home, other := c.Replicas[0], c.Replicas[1].URL
	private, web := cluster.Open(t, home.URL, cluster.Private), cluster.Open(t, home.URL, cluster.OnWeb)
	streams := []*cluster.Events{
		private.Stream(http.MethodGet, home.URL, cluster.Tag(), "", ""),
		private.Stream(http.MethodGet, other, cluster.Tag(), "", ""), // takes over
		web.Stream(http.MethodGet, home.URL, cluster.Tag(), "", ""),
	}
	type call struct {
		s *cluster.Client
		a cluster.Answer
	}
	calls := make(chan call)
	for _, at := range []struct {
		s               *cluster.Client
		base            string
		tool, arguments string
	}{
		{private, home.URL, "delay", `"ms":2000`}, {private, other, "delay", `"ms":2000`},
		{web, home.URL, "hold", `"key":"k"`}, {web, home.URL, "hold", `"key":"k"`},
	} {
		go func() { calls <- call{at.s, at.s.Call(at.base, at.tool, at.arguments)} }()
	}
	home.AwaitMetric("signalbox_calls_in_flight", "", 4)

	home.Signal(syscall.SIGTERM)
	cluster.Await(t, eventTime, "not ready", func() string {
		if status, body := home.Ready(); status != http.StatusServiceUnavailable {
			return body
		}
		return ""
	})
	if a := web.Initialize(home.URL); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("initialize: %v", a)
	}
	for i, stream := range streams[1:] {
		retry := ""
		for {
			e, err := stream.Next(eventTime)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("stream %d: %v", i+1, err)
			}
			retry += e.Retry
		}
		if retry == "" {
			t.Errorf("stream %d ended without a retry hint", i+1)
		}
	}
	for _, base := range []string{home.URL, other} {
		if a := private.Echo(base); a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
			t.Errorf("a new call, while its home drains: %v", a)
		}
	}
	if a := web.Call(other, "release", `"key":"k"`); a.Status != http.StatusOK {
		t.Error(a)
	}
	for range 4 {
		c := <-calls
		if wrong := c.s.Echoed(c.a); wrong != "" {
			t.Errorf("a call in flight of %s: %s", c.s.Server, wrong)
		}
	}
	if code := home.Wait(eventTime); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if a := private.Echo(other); a.Status != http.StatusNotFound {
		t.Errorf("the session that was at home: %v", a)
	}
	if wrong := web.Echoed(web.Echo(other)); wrong != "" {
		t.Errorf("the session of the HTTP server: %s", wrong)
	}
}

// TestRollingRestart restarts three replicas one after the other under load, each taken
// out of the balancer first, as an orchestrator does. No call on a session of an HTTP
// server fails; of the others those alone whose home was restarted, by one 404.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	c := cluster.Start(t, cluster.Options{})
	nginx := c.Balanced(t)
	var stop atomic.Bool
	var load, begun sync.WaitGroup
	counts := make([]rolled, 24)
	for n := range counts {
		server := []string{cluster.OnWeb, cluster.OnWeb, cluster.Private, cluster.Shared}[n%4]
		begun.Add(1)
		load.Go(func() { counts[n] = roll(t, nginx.URL, server, begun.Done, &stop) })
	}
	begun.Wait()
	for _, r := range c.Replicas {
		nginx.Without(r.Addr)
		r.Signal(syscall.SIGTERM)
		if code := r.Wait(eventTime); code != 0 {
			t.Errorf("exit code %d", code)
		}
		r.Start()
		r.AwaitReady()
		nginx.Without()
	}
	stop.Store(true)
	load.Wait()
	for n, got := range counts {
		t.Logf("client %d: %+v", n, got)
		if got.Calls == 0 || got.Lost > len(c.Replicas) {
			t.Errorf("client %d: %+v", n, got)
		}
	}
	for _, wrong := range c.Web.Wrong() {
		t.Error(wrong)
	}
	if n := c.Web.Repeated(); n > 0 {
		t.Errorf("%d calls ran more than once", n)
	}
}

// rolled is what one client saw.
type rolled struct {
	Calls   int // that were answered
	Refused int // by 503, to be tried again
	Lost    int // sessions, each by one 404
}

// roll calls until it is told to stop. Sessions of an HTTP server must not fail.
func roll(t *testing.T, base, server string, begun func(), stop *atomic.Bool) (got rolled) {
	s, err := cluster.TryOpen(t, base, server)
	begun()
	if err != nil {
		t.Error(err)
		return got
	}
	for !stop.Load() {
		if s == nil {
			if s, err = cluster.TryOpen(t, base, server); err != nil {
				var status *rawclient.StatusError
				if !errors.As(err, &status) || status.Status != http.StatusNotFound && status.Status != http.StatusServiceUnavailable {
					t.Errorf("%s: %v", server, err)
					return got
				}
				continue // its home stopped just then
			}
		}
		a := s.Call(base, "progress", `"n":2,"ms":20`)
		wrong := s.Echoed(a)
		switch {
		case wrong == "":
			got.Calls++
		case server != cluster.OnWeb && a.Status == http.StatusServiceUnavailable && a.Header.Get("Retry-After") != "":
			got.Refused++
		case server != cluster.OnWeb && a.Status == http.StatusNotFound:
			got.Lost++
			s = nil
		default:
			t.Errorf("%s: %s", server, wrong)
			return got
		}
	}
	return got
}
