package main

import (
	"errors"
	"fmt"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

// httpRows are those where each contestant stands before a process of "direct".
func httpRows(t targets) []row {
	throughputRow := func(key, title string, nginx *target, plan load.Plan) row {
		m := throughput(plan)
		return row{key: key, title: title, unit: "req/s", compare: times, http: true,
			base: of(t.reverseProxy, m), own: of(t.remote, m), peers: []*series{of(t.direct, m), of(nginx, m)}}
	}
	var rows, added []row
	for _, n := range []int{1, 16, 64, 256} {
		r := throughputRow(fmt.Sprintf("http-%d", n), "JSON replies, 200 B, "+sessions(n), t.nginx, load.Plan{Sessions: n, Bytes: 200})
		r.atLeast, r.aim, r.beyond = 1.2, 1.5, "nginx"
		rows = append(rows, r)
		if n <= 16 {
			added = append(added, addedRow(r, "p50 added to that of direct, JSON replies, 200 B, "+sessions(n)))
		}
	}
	for _, n := range []int{1, 16, 64, 256} {
		r := throughputRow(fmt.Sprintf("http-sse-%d", n), "SSE replies with three events of progress, 200 B, "+sessions(n), t.nginxStream,
			load.Plan{Sessions: n, Bytes: 200, Steps: echo.Steps})
		r.atLeast, r.aim = 1.2, 1.5
		rows = append(rows, r)
	}
	for _, size := range []struct {
		key, name string
		bytes     int
	}{{"64k", "64 KiB", 64 << 10}, {"1m", "1 MiB", mib}} {
		r := throughputRow("http-"+size.key, "JSON replies, "+size.name+" both ways, 16 sessions", t.nginx, load.Plan{Sessions: 16, Bytes: size.bytes})
		r.atLeast, r.beyond = 1.1, "nginx"
		rows = append(rows, r)
	}
	m := throughput(load.Plan{Sessions: 16, Bytes: 200})
	rows = append(rows, row{key: "http-redis", title: "sessions in Redis against sessions in memory, JSON replies, 200 B, 16 sessions", unit: "req/s",
		compare: times, http: true, atLeast: 0.95, base: of(t.remote, m), own: of(t.remoteRedis, m)})
	return append(rows, added...)
}

func sessions(n int) string {
	if n == 1 {
		return "1 session"
	}
	return fmt.Sprintf("%d sessions", n)
}

// addedRow is the row of what the contestants of to add to the p50 of "direct".
func addedRow(to row, title string) row {
	s := func(s *series) *series { return &series{name: s.name, target: s.target} }
	r := row{key: to.key + "-added", title: title, unit: "µs", compare: timesAtMost, atLeast: 0.75, http: true,
		from: to.key, fill: fillAdded, base: s(to.base), own: s(to.own)}
	for _, peer := range to.peers {
		if peer.name != "direct" {
			r.peers = append(r.peers, s(peer))
		}
	}
	return r
}

// fillAdded gives a row of added p50 the differences of each run of its source. Without a
// measured "direct" it stays empty.
func fillAdded(r, source *row) {
	direct := source.named("direct")
	for _, s := range r.series() {
		s.addedBy(source.named(s.name), direct)
	}
}

func (s *series) addedBy(all, direct *series) {
	if all == nil || direct == nil {
		return
	}
	if s.skip = all.skip; s.skip != "" {
		return
	}
	if all.err != nil || direct.err != nil {
		s.err = errors.New("it, or direct, fails in the row that this one comes from")
		return
	}
	for i, m := range all.samples[:min(len(all.samples), len(direct.samples))] {
		added := m.p50 - direct.samples[i].p50
		s.samples = append(s.samples, sample{value: added.Seconds() * 1e6})
	}
}
