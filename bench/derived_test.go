package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// eraPair is a row of two runs, and the row of their processor times.
func eraPair() []row {
	source := row{key: "bridge", title: "bridge", unit: "req/s", compare: costs, atLeast: 1.5, apart: erasSection,
		base: measured("passed through", 200, 100, 120), own: measured("bridged", 100, 200, 220)}
	for i, cpu := range []time.Duration{30, 50} {
		source.own.samples[i].cpu = cpu * time.Microsecond
	}
	return []row{source, cpuRow(source, 1.5)}
}

func TestCPURow(t *testing.T) {
	rows := eraPair()
	fillDerived(rows)
	r := report{rows: rows}
	var b bytes.Buffer
	r.table(&b, erasSection)
	for _, want := range []string{
		"| row | passed through | bridged | result | below | aim | passed through p50 / p99 | bridged p50 / p99 | CPU a call |\n",
		"| bridge | 200 req/s | 100 req/s | 2.00 ×, **missed** | 1.50 × |  | 0.11 / 0.22 | 0.21 / 0.42 | 20.0 / 40.0 |\n",
		"| bridge: processor time | 20.0 µs | 40.0 µs | 2.00 ×, **missed** | 1.50 × |  |  |  |  |\n",
	} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("missing or twice: %s\nin\n%s", want, b.String())
		}
	}
}

func TestCPURowOfFailure(t *testing.T) {
	rows := eraPair()
	rows[0].own.err = errors.New("e")
	rows[0].base.skip = "not here"
	fillDerived(rows)
	if cpu := rows[1]; cpu.own.err == nil || len(cpu.own.samples) != 0 || cpu.base.skip == "" {
		t.Errorf("error %v, samples %v, skip %q", cpu.own.err, cpu.own.samples, cpu.base.skip)
	}
}

func TestTurn(t *testing.T) {
	r := row{base: &series{name: "a"}, own: &series{name: "b"}, peers: []*series{{name: "c"}}}
	order := func(run int) (names string) {
		for _, s := range r.turn(run) {
			names += s.name
		}
		return names
	}
	if order(0) != "abc" || order(1) != "abc" {
		t.Errorf("%s, %s", order(0), order(1))
	}
	r.pairs = true
	if order(0) != "abc" || order(1) != "cba" || order(2) != "abc" {
		t.Errorf("in pairs: %s, %s, %s", order(0), order(1), order(2))
	}
}

// TestPairs has a machine that gets slower between the runs, to which the medians are blind.
func TestPairs(t *testing.T) {
	r := row{unit: "req/s", compare: times, pairs: true, base: &series{}, own: &series{}}
	for _, run := range []struct{ base, own float64 }{{1000, 990}, {500, 490}, {100, 97}, {10, 100}} {
		r.base.samples = append(r.base.samples, sample{value: run.base})
		r.own.samples = append(r.own.samples, sample{value: run.own})
	}
	want := (0.98 + 0.99) / 2
	if got, ok := r.value(r.own); !ok || got != want {
		t.Errorf("%v, %v, want %v", got, ok, want)
	}
	r.pairs = false
	if got, _ := r.value(r.own); got == want {
		t.Error("the result of the medians is the median of the results")
	}
	r.pairs = true
	r.own.samples = r.own.samples[:1] // it failed in the second run
	if got, _ := r.value(r.own); got != 0.99 {
		t.Errorf("of one run: %v", got)
	}
}
