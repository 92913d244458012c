package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

var watchedSection = &section{
	title: "Logs and metrics",
	intro: "Off is `--log-level error` without `--admin-listen`. On is `--log-level info --admin-listen ADDR`, with" + `
` + "`/metrics`" + ` read once a second. The two take turns, and turns in who is first, so what else happens on the machine meets both; a
result is the median of the ratios of each turn.`,
	base: "off", own: "on", bound: "at least",
}

// scrapeEvery is how often metrics are read, which is more often than is usual.
const scrapeEvery = time.Second

// watchedRows are those of what logs and metrics cost.
func watchedRows(t targets) []row {
	plan := load.Plan{Sessions: 64, Bytes: 200}
	var rows []row
	for _, r := range []row{
		{key: "watched-64", title: "shared process, 200 B, 64 sessions",
			base: of(t.quiet, throughput(plan)), own: of(t.watched, throughputBeside(plan, scrapes))},
		{key: "watched-http-64", title: "HTTP server, JSON replies, 200 B, 64 sessions",
			base: of(t.remoteQuiet, throughput(plan)), own: of(t.remoteWatched, throughputBeside(plan, scrapes))},
	} {
		r.unit, r.compare, r.pairs, r.atLeast, r.apart = "req/s", times, true, 0.97, watchedSection
		rows = append(rows, r, cpuRow(r, 0))
	}
	return rows
}

// watchedTargets are Signalbox with logs and metrics on, and off.
func (t *targets) watchedTargets() {
	quiet := func(place) []string { return []string{"--log-level", "error"} }
	watched := func(at place) []string {
		return []string{"--log-level", "info", "--admin-listen", loopback(at.admin)}
	}
	t.quiet = serving("signalbox, off", quiet, stdioServer("shared"))
	t.watched = serving("signalbox, on", watched, stdioServer("shared"))
	t.remoteQuiet = serving("signalbox, off", quiet, httpServer)
	t.remoteWatched = serving("signalbox, on", watched, httpServer)
	t.remoteQuiet.behind, t.remoteWatched.behind = t.direct, t.direct
}

// scrapes reads the metrics, at once and every scrapeEvery, until ctx ends.
func scrapes(ctx context.Context, on *running) error {
	tick := time.NewTicker(scrapeEvery)
	defer tick.Stop()
	for {
		body, _, err := on.get(ctx, "/metrics")
		if ctx.Err() != nil {
			return nil
		}
		if err == nil && seriesIn(body) == 0 {
			err = errors.New("/metrics: no series")
		}
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// get reads a page of the admin listener, and says how long it took from the request to the last
// byte.
func (r *running) get(ctx context.Context, path string) ([]byte, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.admin+path, nil)
	if err != nil {
		return nil, 0, err
	}
	start := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, 0, err
	}
	body, err := io.ReadAll(resp.Body)
	took := time.Since(start)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: HTTP %d: %.160s", path, resp.StatusCode, body)
	}
	return body, took, err
}

// seriesIn counts the series in a page of metrics.
func seriesIn(metrics []byte) int {
	n := 0
	for line := range bytes.Lines(metrics) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			n++
		}
	}
	return n
}
