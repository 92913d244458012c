package main

import (
	"fmt"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

var erasSection = &section{
	title: "Protocol eras",
	intro: `The same clients before a stdio server of their own era, which are passed through, and before one of the
other era, which are bridged. Neither server asks anything. Each client of 2026-07-28 has a connection and no session. Results
are the cost of a bridged call in multiples of one passed through, by calls a second and by processor time a call, of Signalbox with
its server, in µs: the median of the ratios of each turn.`,
	base: "passed through", own: "bridged", bound: "below",
}

// costs compares rates: so many times the base's time for a call.
var costs = compare{of: inverse, unit: "×", upper: true}

// eraRows are those of clients before a server of the other era.
func eraRows(t targets) []row {
	var rows []row
	add := func(key, title string, kind load.Client, passed, bridged *target) {
		for _, n := range []int{16, 64} {
			m := throughput(load.Plan{Client: kind, Sessions: n, Bytes: 200})
			r := row{key: fmt.Sprintf("%s-%d", key, n), title: fmt.Sprintf("%s, 200 B, %d clients", title, n), unit: "req/s",
				compare: costs, pairs: true, atLeast: 1.5, apart: erasSection,
				base: &series{name: "passed through", target: passed, measure: m},
				own:  &series{name: "bridged", target: bridged, measure: m}}
			rows = append(rows, r, cpuRow(r, 1.5))
		}
	}
	add("bridge-a", "clients of 2026-07-28, server of the handshake era", load.PerRequest, t.modern, t.legacy)
	add("bridge-b", "clients of the handshake era, server of 2026-07-28", load.Streamable, t.modernShared, t.legacyShared)
	return rows
}

// eraTargets are Signalbox before servers of either era. It has one process in all four; clients
// of the handshake era share theirs only where told to.
func (t *targets) eraTargets() {
	before := func(args ...string) *target {
		return signalbox(func(l *lab, _ place) []string {
			all := append(args[:len(args):len(args)], "--", l.bin("echoserver"))
			if args[1] == "modern" {
				all = append(all, "-per-request")
			}
			return all
		})
	}
	t.modern, t.legacy = before("--era", "modern"), before("--era", "legacy")
	t.modernShared, t.legacyShared = before("--era", "modern", "--isolation", "shared"), before("--era", "legacy", "--isolation", "shared")
}
