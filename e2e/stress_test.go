package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

const (
	stressSessions = 64  // half over each transport
	stressCalls    = 200 // of each session
	stressWorkers  = 4   // calls of one session at once
	vanishingIn    = 8   // of so many clients two vanish half way and come back, one of each transport
)

// TestSharedProcessStress has many sessions on one process. All use the same ids and
// progress tokens, from 1 on; calls take their time, report progress, are cancelled, and
// some clients vanish with calls in flight. Every answer has to be right, none may be
// missing, and none may be another's; afterwards nothing is left.
func TestSharedProcessStress(t *testing.T) {
	box.NeedProc(t)
	b := box.Start(t, []string{"--isolation", "shared", "--session-idle", "30s"}, fakeServer(t)...)
	descriptors, goroutines := restingState(t, b)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	var clients sync.WaitGroup
	counts := make([]stressCounts, stressSessions)
	for n := range stressSessions {
		clients.Go(func() {
			c := &stressClient{t: t, n: n, base: b.URL, random: rand.New(rand.NewPCG(seed, uint64(n)))}
			c.run(t.Context())
			counts[n] = c.counts
		})
	}
	clients.Wait()
	var total stressCounts
	for _, c := range counts {
		total.add(c)
	}
	t.Logf("%+v", total)
	if want := stressSessions * stressCalls; total.Answered+total.Cancelled != want {
		t.Errorf("%d calls answered and %d cancelled, want %d in all", total.Answered, total.Cancelled, want)
	}
	checkProcess(t, b, total)
	checkNothingLeft(t, b, descriptors, goroutines)
}

// restingState is what signalbox holds open with its shared process and no session.
func restingState(t *testing.T, b *box.Box) (descriptors int, goroutines float64) {
	t.Helper()
	c := rawclient.New(b.URL)
	s, err := c.Streamable(t.Context(), rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Close()
	b.EventuallyMetric(t, box.MetricSessions, 0)
	descriptors, err = b.Descriptors()
	if err != nil {
		t.Fatal(err)
	}
	return descriptors, b.Metrics(t)[box.MetricGoroutines]
}

// checkProcess asks the shared process what it saw.
func checkProcess(t *testing.T, b *box.Box, total stressCounts) {
	t.Helper()
	c := rawclient.New(b.URL)
	defer c.Close()
	s, err := c.Streamable(t.Context(), rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	m, err := s.Call(t.Context(), "1", "tools/call", `{"name":"stats"}`)
	if err != nil {
		t.Fatal(err)
	}
	var result struct {
		StructuredContent struct {
			Received map[string]int
			Running  int
		}
	}
	if err := json.Unmarshal(m.Result, &result); err != nil {
		t.Fatal(err)
	}
	saw := result.StructuredContent
	if saw.Received["initialize"] != 1 {
		t.Errorf("the shared process was initialized %d times", saw.Received["initialize"])
	}
	if got := saw.Received["notifications/cancelled"]; got < total.Cancelled {
		t.Errorf("the process saw %d cancels, %d were sent", got, total.Cancelled)
	}
	if saw.Running != 1 {
		t.Errorf("%d calls still run in the process, want only the one that asks", saw.Running)
	}
}

func checkNothingLeft(t *testing.T, b *box.Box, descriptors int, goroutines float64) {
	t.Helper()
	for _, gauge := range []string{box.MetricSessions, box.MetricStreams, box.MetricCallsInFlight} {
		b.EventuallyMetric(t, gauge, 0)
	}
	box.Eventually(t, fmt.Sprintf("%d descriptors", descriptors), func() string {
		n, err := b.Descriptors()
		if err != nil || n > descriptors {
			return fmt.Sprint(n, err)
		}
		return ""
	})
	box.Eventually(t, fmt.Sprintf("%v goroutines", goroutines), func() string {
		if n := b.Metrics(t)[box.MetricGoroutines]; n > goroutines {
			return fmt.Sprint(n)
		}
		return ""
	})
	// The shared process stays; the gauge has to tell the truth.
	b.EventuallyMetric(t, box.MetricProcesses, 1)
	if n := len(b.Descendants()); n != 1 {
		t.Errorf("%d processes, want the shared one: %v", n, b.Descendants())
	}
	b.Terminate()
	if code := wait(t, b); code != 0 {
		t.Errorf("exit code %d", code)
	}
	b.EventuallyAlone(t)
}
