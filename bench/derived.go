package main

import (
	"errors"
	"slices"
)

// fillDerived gives the rows that come from the runs of another one their figures.
func fillDerived(rows []row) {
	for i := range rows {
		r := &rows[i]
		at := slices.IndexFunc(rows, func(other row) bool { return other.key == r.from })
		if r.from != "" && at >= 0 {
			r.fill(r, &rows[at])
		}
	}
}

// named is the row's series of that name, or nil.
func (r *row) named(name string) *series {
	for _, s := range r.series() {
		if s.name == name {
			return s
		}
	}
	return nil
}

// cpuRow is the row of the processor time that a call takes in the runs of another one. The load
// client shares the machine, so this says more of the cost than throughput does.
func cpuRow(of row, most float64) row {
	s := func(s *series) *series { return &series{name: s.name, target: s.target} }
	return row{key: of.key + "-cpu", title: of.title + ": processor time", unit: "µs", compare: timesAtMost, pairs: of.pairs, atLeast: most, http: of.http,
		apart: of.apart, from: of.key, fill: fillCPU, base: s(of.base), own: s(of.own)}
}

func fillCPU(r, source *row) {
	for _, s := range r.series() {
		all := source.named(s.name)
		if all == nil {
			continue
		}
		s.skip = all.skip
		if all.err != nil {
			s.err = errors.New("it fails in the row that this one comes from")
			continue
		}
		for _, m := range all.samples {
			s.samples = append(s.samples, sample{value: m.cpu.Seconds() * 1e6})
		}
	}
}
