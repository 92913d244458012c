package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
)

// sample is what one run of a series gave.
type sample struct {
	value    float64 // in the row's unit
	p50, p99 time.Duration
	cpu      time.Duration // that the contestant used for a call, its server included
}

// series is one contestant in a row. Its fields are static but for what measuring fills in.
type series struct {
	name    string
	target  *target // nil where measure starts what it needs
	fresh   bool    // a new process for each run
	measure measure
	skip    string // why it is not measured; empty: it is

	samples []sample
	err     error // why it stopped
}

// measure makes one run. on is nil for a series without a target.
type measure func(ctx context.Context, l *lab, on *running) (sample, error)

// median is the median of each figure of the runs.
func (s *series) median() sample {
	return sample{
		value: medianOf(s.samples, func(m sample) float64 { return m.value }),
		p50:   medianOf(s.samples, func(m sample) time.Duration { return m.p50 }),
		p99:   medianOf(s.samples, func(m sample) time.Duration { return m.p99 }),
		cpu:   medianOf(s.samples, func(m sample) time.Duration { return m.cpu }),
	}
}

func medianOf[T float64 | time.Duration](samples []sample, of func(sample) T) T {
	if len(samples) == 0 {
		return 0
	}
	all := make([]T, len(samples))
	for i, s := range samples {
		all[i] = of(s)
	}
	slices.Sort(all)
	if mid := len(all) / 2; len(all)%2 == 0 {
		return (all[mid-1] + all[mid]) / 2
	} else {
		return all[mid]
	}
}

// run makes the runs of a row, its series in turn, so that what else happens on the machine
// meets all of them.
func (l *lab) run(ctx context.Context, r *row) {
	began := time.Now()
	up := map[*target]*running{}
	defer func() {
		for _, on := range up {
			on.stop()
		}
		fmt.Fprintf(l.say, "%s: took %v\n", r.key, time.Since(began).Round(time.Second))
	}()
	for i := range l.opts.runs {
		for _, s := range r.turn(i) {
			if s.skip != "" || s.err != nil || ctx.Err() != nil || i >= l.opts.runsOf(s) {
				continue
			}
			m, err := l.once(ctx, s, up)
			if err != nil {
				s.err = err
				fmt.Fprintf(l.say, "%s: run %d: %s: FAILED: %v\n", r.key, i+1, s.name, err)
				continue
			}
			s.samples = append(s.samples, m)
			fmt.Fprintf(l.say, "%s: run %d: %s: %s %s, p50 %s, p99 %s\n", r.key, i+1, s.name, number(m.value), r.unit, millis(m.p50), millis(m.p99))
		}
	}
}

// turn is the row's series in the order of a run. Where runs are compared in pairs, each other one
// goes the other way round, so that being first is nobody's advantage.
func (r *row) turn(run int) []*series {
	all := r.series()
	if r.pairs && run%2 == 1 {
		slices.Reverse(all)
	}
	return all
}

// runsOf is how many runs a series has: other proxies have one where each needs a new process.
func (o options) runsOf(s *series) int {
	switch {
	case s.target == nil || !s.target.npm:
		return o.runs
	case s.fresh:
		return 1
	}
	return o.peerRuns
}

func (l *lab) once(ctx context.Context, s *series, up map[*target]*running) (sample, error) {
	if s.target == nil {
		return s.measure(ctx, l, nil)
	}
	on := up[s.target]
	if on == nil {
		var err error
		if on, err = l.start(ctx, s.target); err != nil {
			return sample{}, err
		}
		if s.fresh {
			defer on.stop()
		} else {
			up[s.target] = on
		}
	}
	m, err := s.measure(ctx, l, on)
	if ended := on.ended(); ended != nil {
		return m, ended
	}
	return m, err
}

// throughput measures the calls per second that plan's sessions make.
func throughput(plan load.Plan) measure { return throughputBeside(plan, nothing) }

// throughputBeside is throughput while beside runs, which it does until its context ends.
func throughputBeside(plan load.Plan, beside func(ctx context.Context, on *running) error) measure {
	return func(ctx context.Context, l *lab, on *running) (sample, error) {
		var cpu time.Duration
		plan := plan
		plan.Endpoint, plan.Warm, plan.Measure = on.Endpoint, l.opts.warm, l.opts.measure
		plan.Beside = func(ctx context.Context) (err error) {
			cpu, err = cpuDuring(ctx, on, beside)
			return err
		}
		r, err := load.Run(ctx, plan)
		if err != nil {
			return sample{}, err
		}
		return sample{r.Rate, load.Quantile(r.Calls, 0.5), load.Quantile(r.Calls, 0.99), cpu / time.Duration(len(r.Calls))}, nil
	}
}

// cpuDuring is the processor time that the contestant uses while beside runs.
func cpuDuring(ctx context.Context, on *running, beside func(context.Context, *running) error) (time.Duration, error) {
	before, err := on.cpu()
	if err != nil {
		return 0, err
	}
	if err := beside(ctx, on); err != nil {
		return 0, err
	}
	after, err := on.cpu()
	return after - before, err
}

// nothing goes on beside the calls.
func nothing(ctx context.Context, _ *running) error {
	<-ctx.Done()
	return nil
}
