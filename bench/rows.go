package main

import (
	"slices"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

// row is one line of the table.
type row struct {
	key, title string
	unit       string
	base, own  *series // base may be nil
	peers      []*series
	compare    compare
	pairs      bool    // the result is the median of the results of each run, not the result of the medians
	atLeast    float64 // of what compare gives; at most where compare says so. 0: no target
	aim        float64
	beyond     string   // contestant whose figure is the aim beyond aim, or empty
	http       bool     // the server behind is reached over HTTP
	apart      *section // table of its own kind that it stands in; nil: as http and compare say

	from string               // key of the row whose runs give this row's figures; empty: it has its own
	fill func(r, source *row) // gives them; set with from
}

// compare is how a row's result comes from its figures.
type compare struct {
	of    func(base, value float64) float64
	unit  string
	upper bool // the targets are upper bounds
}

func (r *row) series() []*series {
	all := make([]*series, 0, 2+len(r.peers))
	for _, s := range append([]*series{r.base, r.own}, r.peers...) {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}

func ratio(base, value float64) float64      { return value / base }
func difference(base, value float64) float64 { return value - base }
func itself(_, value float64) float64        { return value }
func inverse(base, value float64) float64    { return base / value }

// newRows are all rows, in the order of the table.
func newRows() []row {
	t := newTargets()
	return slices.Concat(httpRows(t), throughputRows(t), eraRows(t), watchedRows(t), quantityRows(t), adminRows(t))
}

var (
	times       = compare{of: ratio, unit: "×"}
	timesAtMost = compare{of: ratio, unit: "×", upper: true}
)

func throughputRows(t targets) []row {
	echoRow := func(key, title string, sessions, size int, atLeast, aim float64) row {
		m := throughput(load.Plan{Sessions: sessions, Bytes: size})
		return row{key: key, title: title, unit: "req/s", compare: times, atLeast: atLeast, aim: aim,
			base: of(t.direct, m), own: of(t.shared, m),
			peers: []*series{of(t.superStateful, m), of(t.superDefault, m), of(t.mcpProxy, m)}}
	}
	perSession := echoRow("per-session", "a process per session, 200 B, 16 sessions", 16, 200, 0.40, 0.55)
	perSession.own.target = t.perSession
	perSession.peers = perSession.peers[:1]

	mcp := throughput(load.Plan{Sessions: 16, Bytes: 200})
	sse := throughput(load.Plan{Sessions: 16, Bytes: 200, Client: load.EventStream})
	legacy := row{key: "sse-16", title: "HTTP+SSE clients against `/mcp` clients, shared, 200 B, 16 sessions", unit: "req/s", compare: times, atLeast: 0.7, aim: 0.9,
		base: &series{name: "signalbox /mcp", target: t.shared, measure: mcp}, own: of(t.shared, sse),
		peers: []*series{of(t.superDefault, sse), of(t.mcpProxy, sse)}}
	return []row{
		echoRow("echo-16", "shared process, 200 B, 16 sessions", 16, 200, 0.60, 0.80),
		echoRow("echo-64", "shared process, 200 B, 64 sessions", 64, 200, 0.55, 0.75),
		echoRow("echo-64k", "shared process, 64 KiB, 16 sessions", 16, 64<<10, 0.30, 0.40),
		perSession,
		legacy,
	}
}

func quantityRows(t targets) []row {
	memory := func(key, title string, withStream bool, most, aim float64) row {
		return row{key: key, title: title, unit: "KiB", compare: compare{itself, "KiB", true}, atLeast: most, aim: aim,
			own:   anew(t.shared, idleMemory(withStream, 1<<20)),
			peers: []*series{anew(t.superStateful, idleMemory(withStream, 50)), anew(t.mcpProxy, idleMemory(withStream, 1<<20))}}
	}
	peakRow := func(key, title, tool string, most, aim float64) row {
		return row{key: key, title: title, unit: "×", compare: compare{itself, "×", true}, atLeast: most, aim: aim,
			own:   anew(t.shared, peak(tool)),
			peers: []*series{anew(t.superStateful, peak(tool)), anew(t.mcpProxy, peak(tool))}}
	}
	return []row{
		memory("memory", "memory of an idle session, shared process", false, 32, 28),
		memory("memory-stream", "memory of an idle session with an open GET stream, shared process", true, 58, 50),
		{key: "big-reply", title: "8 MiB replies to another session, four a second: p99 of 16 sessions against their usual p99",
			unit: "×", compare: compare{itself, "×", true}, atLeast: 3, aim: 1,
			base: of(t.direct, besideBig), own: of(t.shared, besideBig),
			peers: []*series{of(t.superStateful, besideBig), of(t.mcpProxy, besideBig)}},
		peakRow("peak-request", "16 MiB request: peak memory growth in multiples of the message", "size", 3, 2),
		peakRow("peak-reply", "16 MiB reply: the same", "big", 3, 2),
		peakRow("peak-both", "16 MiB request and 16 MiB reply of one call: the same", "echo", 0, 0),
		{key: "initialize", title: "opening a session with a process of its own, beyond the server's own start",
			unit: "ms", compare: compare{difference, "ms", true}, atLeast: 5,
			base: &series{name: "server alone", measure: ownStart}, own: of(t.perSession, initialize),
			peers: []*series{of(t.superStateful, initialize)}},
		{key: "first-byte", title: "first byte of the response to a call that takes 400 ms",
			unit: "ms", compare: compare{itself, "ms", true}, atLeast: 150,
			own:   of(t.shared, firstByte),
			peers: []*series{of(t.superStateful, firstByte), of(t.mcpProxy, firstByte)}},
	}
}

func of(t *target, m measure) *series { return &series{name: t.name, target: t, measure: m} }

// anew is a series that starts its target for each run.
func anew(t *target, m measure) *series {
	s := of(t, m)
	s.fresh = true
	return s
}
