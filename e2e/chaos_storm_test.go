package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/cluster"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// storm is the load of TestChaos, and what it saw.
type storm struct {
	t           *testing.T
	base        string
	workers     []*chaosClient
	load, begun sync.WaitGroup
	stop        atomic.Bool

	mu    sync.Mutex
	seen  map[kind]map[string]int // outcome → how often
	took  map[kind][]time.Duration
	times map[string]int // what happened to the replicas
	ends  []span         // when a replica was killed or drained
	bad   []string       // what must not be; the first of many
}

func newStorm(t *testing.T, base string) *storm {
	s := &storm{t: t, base: base, seen: make(map[kind]map[string]int), took: make(map[kind][]time.Duration), times: make(map[string]int)}
	for _, k := range kinds {
		s.seen[k] = make(map[string]int)
	}
	return s
}

func (s *storm) add(n int, random *rand.Rand) {
	w := &chaosClient{storm: s, kind: kinds[n%len(kinds)], random: random}
	s.workers = append(s.workers, w)
	s.begun.Add(1)
	s.load.Go(w.run)
}

// span is a time, without an end while it lasts.
type span struct{ from, to time.Time }

func (s *storm) happens(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[what]++
	now := time.Now()
	switch what {
	case "kill":
		s.ends = append(s.ends, span{now, now})
	case "drain":
		s.ends = append(s.ends, span{from: now})
	case "drained":
		s.ends[len(s.ends)-1].to = now
	}
}

// stopped tells whether a replica was about to stop, or did, between two moments. Others
// may see it a little later.
func (s *storm) stopped(from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.ends, func(end span) bool {
		return end.from.Before(to) && (end.to.IsZero() || end.to.After(from.Add(-3*time.Second)))
	})
}

// note counts an outcome of a request; why it must not be, "" if it may.
func (s *storm) note(k kind, outcome, why string, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen[k][outcome]++
	s.took[k] = append(s.took[k], took)
	if why != "" && len(s.bad) < 30 {
		s.bad = append(s.bad, fmt.Sprintf("%v: %s: %s", k, outcome, why))
	}
}

func (s *storm) table() string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	outcomes := make(map[string]bool)
	for _, k := range kinds {
		for outcome := range s.seen[k] {
			outcomes[outcome] = true
		}
	}
	fmt.Fprint(w, "outcome")
	for _, k := range kinds {
		fmt.Fprintf(w, "\t%v", k)
	}
	for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Fprintf(w, "\n%s", outcome)
		for _, k := range kinds {
			fmt.Fprintf(w, "\t%d", s.seen[k][outcome])
		}
	}
	for _, share := range []float64{0.5, 0.99, 1} {
		fmt.Fprintf(w, "\nms, %g %%", 100*share)
		for _, k := range kinds {
			took := slices.Sorted(slices.Values(s.took[k]))
			fmt.Fprintf(w, "\t%d", took[max(0, int(share*float64(len(took)))-1)].Milliseconds())
		}
	}
	fmt.Fprintln(w)
	w.Flush()
	return b.String()
}

// chaosClient is one client, with one session after the other.
type chaosClient struct {
	*storm
	kind   kind
	random *rand.Rand

	opened time.Time
	mcp    *cluster.Client
	sse    *rawclient.Legacy // with its owner
	client *rawclient.Client // of sse
	owner  string
}

func (w *chaosClient) run() {
	for first := true; !w.storm.stop.Load(); first = false {
		if w.mcp == nil && w.sse == nil {
			w.open()
		} else {
			w.request()
		}
		if first {
			w.begun.Done()
		}
		time.Sleep(time.Duration(50+w.random.IntN(400)) * time.Millisecond) // a client thinks
	}
}

// resuming is what an outcome begins with where the rest of a stream was asked for.
const resuming = "resume: "

// limit is how long any request may take at the most.
const limit = 25 * time.Second

func (w *chaosClient) open() {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var err error
	w.opened = begun
	if w.kind.transport == "mcp" {
		w.mcp, err = cluster.TryOpen(w.t, w.base, w.kind.server)
		if err == nil && w.kind.server == cluster.Private {
			w.mcp.Call(w.base, "set", `"key":"owner","value":"`+w.mcp.Owner+`"`)
		}
	} else {
		w.owner, w.client = cluster.Tag(), rawclient.New(w.base)
		w.sse, err = w.client.LegacyAt(ctx, cluster.Path(w.kind.server, "sse"), cluster.Owner(w.owner))
	}
	if err == nil {
		w.note(w.kind, "opened", "", time.Since(begun))
		return
	}
	w.judge("open: ", answerOf(err), begun)
	w.forget()
}

// answerOf is what rawclient makes of an answer that is no message.
func answerOf(err error) cluster.Answer {
	var status *rawclient.StatusError
	if errors.As(err, &status) {
		return cluster.Answer{Status: status.Status, Body: status.Body, Header: http.Header{"Retry-After": {"as seen over mcp"}}}
	}
	return cluster.Answer{Err: err, Body: err.Error()}
}

// forget lets go of a session that is over.
func (w *chaosClient) forget() {
	if w.sse != nil {
		w.sse.Close(context.Background())
	}
	if w.client != nil {
		w.client.Close()
	}
	w.mcp, w.sse, w.client = nil, nil, nil
}

// judge notes what came instead of an answer, and tells whether the session is over.
func (w *chaosClient) judge(what string, a cluster.Answer, begun time.Time) (over bool) {
	took := time.Since(begun)
	lately, since := w.stopped(begun, time.Now()), w.stopped(w.opened, time.Now())
	why := a.String()
	outcome := what + fmt.Sprint(a.Status)
	reason := a.Reason()
	if reason != "" {
		outcome = what + fmt.Sprint(a.Status) + " " + reason
	}
	allowed := false
	switch {
	case took > limit:
		outcome = what + "TIMEOUT"
	case a.Err != nil || a.Status == http.StatusBadGateway:
		outcome = what + "broken off"
		allowed = lately || w.kind.transport == "sse" && since
		over = w.kind.transport == "sse"
	case a.Status == http.StatusServiceUnavailable:
		allowed = reason != "" && a.Header.Get("Retry-After") != ""
	case a.Status == http.StatusNotFound:
		allowed = since && !w.kind.moves()
		over = true
	case a.Status == http.StatusBadRequest:
		allowed = reason == "event_id" && since // the log was at the replica that stopped
	case a.Status == http.StatusOK && what == resuming && reason == "":
		outcome = what + "ended early" // to be resumed once more
		allowed = lately
	case a.Status == http.StatusOK:
		allowed = slices.Contains([]string{"replica_lost", "shutdown"}, reason)
		allowed = allowed && (lately || since)
	}
	if allowed {
		why = ""
	}
	w.note(w.kind, outcome, why, took)
	return over
}

// last asks for the session once more, and ends it.
func (w *chaosClient) last(c *cluster.Cluster) {
	defer w.forget()
	deadline := time.Now().Add(leaseEnd)
	for w.mcp != nil {
		a := w.mcp.Echo(w.base)
		wrong := w.mcp.Echoed(a)
		switch {
		case wrong == "":
			w.note(w.kind, "there at the end", "", a.Elapsed)
			w.mcp.Delete(w.base)
			return
		case a.Status == http.StatusNotFound && !w.kind.moves():
			w.note(w.kind, "over at the end", "", a.Elapsed)
			return
		case time.Now().After(deadline) || a.Status != http.StatusServiceUnavailable:
			w.note(w.kind, "LOST at the end", wrong, a.Elapsed)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}
