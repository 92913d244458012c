package main

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

const (
	crowd      = 10_000 // sessions while operators look
	crowdQuick = 200    // the same with -quick
	looks      = 5      // at a page, in one run
)

// adminRows are those of operators who look at a process with many sessions.
func adminRows(t targets) []row {
	page := func(key, path string, most float64, check func(body []byte, sessions int) error) row {
		return row{key: key, title: fmt.Sprintf("`GET %s` with 10,000 sessions, shared process", path), unit: "ms",
			compare: compare{of: itself, unit: "ms", upper: true}, atLeast: most, own: anew(t.shared, pageTime(path, check))}
	}
	many := (*lab).crowd
	one := func(*lab) int { return 1 }
	base := anew(t.shared, seriesWith(one))
	base.name = "one session"
	return []row{
		page("crowd-metrics", "/metrics", 200, checkMetrics),
		page("crowd-sessions", "/api/v1/sessions", 0, checkSessions),
		{key: "crowd-series", title: "series in `/metrics` with 10,000 sessions, beyond those with one", unit: "series",
			compare: compare{of: difference, unit: "series", upper: true}, base: base, own: anew(t.shared, seriesWith(many))},
	}
}

// crowd is how many sessions there are while operators look.
func (l *lab) crowd() int {
	if l.opts.quick {
		return crowdQuick
	}
	return crowd
}

// pageTime measures the median time in ms of a page of the admin listener, with a crowd of
// sessions. check says whether the page tells of all of them.
func pageTime(path string, check func(body []byte, sessions int) error) measure {
	return func(ctx context.Context, l *lab, on *running) (sample, error) {
		held, err := load.Hold(on.Endpoint, l.crowd(), false)
		if err != nil {
			return sample{}, err
		}
		defer held.Close()
		var all []sample
		for range looks {
			body, took, err := on.get(ctx, path)
			if err == nil {
				err = check(body, l.crowd())
			}
			if err != nil {
				return sample{}, err
			}
			all = append(all, sample{value: took.Seconds() * 1000})
		}
		return sample{value: medianOf(all, func(m sample) float64 { return m.value })}, nil
	}
}

// seriesWith counts the series of the metrics with so many sessions.
func seriesWith(sessions func(*lab) int) measure {
	return func(ctx context.Context, l *lab, on *running) (sample, error) {
		n := sessions(l)
		held, err := load.Hold(on.Endpoint, n, false)
		if err != nil {
			return sample{}, err
		}
		defer held.Close()
		body, _, err := on.get(ctx, "/metrics")
		if err == nil {
			err = checkMetrics(body, n)
		}
		return sample{value: float64(seriesIn(body))}, err
	}
}

// checkMetrics reports whether a page of metrics counts so many sessions.
func checkMetrics(body []byte, sessions int) error {
	got := 0.0
	for line := range bytes.Lines(body) {
		name, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte("} "))
		if !bytes.HasPrefix(name, []byte("signalbox_sessions{")) {
			continue
		}
		n, err := strconv.ParseFloat(string(value), 64)
		if err != nil {
			return fmt.Errorf("/metrics: %s", line)
		}
		got += n
	}
	if got != float64(sessions) {
		return fmt.Errorf("/metrics: %v sessions, not %d", got, sessions)
	}
	return nil
}

// checkSessions reports whether a list of sessions has so many.
func checkSessions(body []byte, sessions int) error {
	if n := bytes.Count(body, []byte(`"session":"`)); n != sessions {
		return fmt.Errorf("/api/v1/sessions: %d sessions, not %d", n, sessions)
	}
	return nil
}
