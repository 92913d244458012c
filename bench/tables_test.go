package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

// measured is a series with a sample for each p50, in µs, and value.
func measured(name string, value float64, p50 ...time.Duration) *series {
	s := &series{name: name, target: &target{name: name}}
	for _, p := range p50 {
		s.samples = append(s.samples, sample{value: value, p50: p * time.Microsecond, p99: 2 * p * time.Microsecond, cpu: 20 * time.Microsecond})
	}
	return s
}

func httpPair() []row {
	source := row{key: "http-1", title: "JSON", unit: "req/s", compare: times, atLeast: 1.2, aim: 1.5, beyond: "nginx", http: true,
		base: measured("ReverseProxy", 100, 300, 500, 400), own: measured("signalbox", 180, 150, 260, 220),
		peers: []*series{measured("direct", 400, 100, 200, 150), {name: "nginx", skip: "nginx is not installed"}}}
	return []row{source, addedRow(source, "added")}
}

func TestFillAdded(t *testing.T) {
	rows := httpPair()
	fillDerived(rows)
	added := rows[1]
	var got []float64
	for _, s := range added.own.samples {
		got = append(got, s.value)
	}
	if len(got) != 3 || got[0] != 50 || got[1] != 60 || got[2] != 70 {
		t.Errorf("signalbox adds %v, want the differences in each run, 50, 60 and 70", got)
	}
	if value, ok := added.value(added.own); !ok || value != 60.0/250 {
		t.Errorf("result %v, %v; ReverseProxy adds 200, 300 and 250", value, ok)
	}
	if s := added.named("nginx"); s == nil || s.skip == "" {
		t.Error("nginx is not skipped")
	}
	if added.named("direct") != nil {
		t.Error("direct adds to itself")
	}
}

func TestFillAddedWithout(t *testing.T) {
	for name, change := range map[string]func(r *row){
		"direct fails":  func(r *row) { r.named("direct").err = errors.New("e") },
		"it fails":      func(r *row) { r.own.err = errors.New("e") },
		"direct absent": func(r *row) { r.peers = r.peers[1:] },
	} {
		rows := httpPair()
		change(&rows[0])
		fillDerived(rows)
		if len(rows[1].own.samples) != 0 || (rows[1].own.err == nil) != (name == "direct absent") {
			t.Errorf("%s: samples %v, error %v", name, rows[1].own.samples, rows[1].own.err)
		}
	}
}

func TestTables(t *testing.T) {
	rows := httpPair()
	fillDerived(rows)
	stdio := row{key: "echo", title: "stdio", unit: "req/s", compare: times, atLeast: 0.6,
		base: measured("direct", 200, 100), own: measured("signalbox", 100, 200),
		peers: []*series{measured("mcp-proxy", 10, 900)}}
	r := report{rows: append(rows, stdio)}
	var b bytes.Buffer
	for _, s := range sections[:3] {
		r.table(&b, s)
	}
	r.failures(&b)
	for _, want := range []string{
		"| JSON | 100 req/s | 180 req/s | 1.80 ×, met | 1.20 × | 1.50 ×, then nginx | 0.40 / 0.80 | 0.22 / 0.44 | 20.0 / 20.0 | 4.00 ×; 400 req/s; 0.15 / 0.30; 20.0 µs | skipped: nginx is not installed |\n",
		"| added | 250 µs | 60.0 µs | 0.24 ×, met | 0.75 × |  |  |  |  | skipped: nginx is not installed |\n",
		"| stdio | 200 req/s | 100 req/s | 0.50 ×, **missed** | 0.60 × |  | 0.10 / 0.20 | 0.20 / 0.40 | 20.0 / 20.0 |  |  | 0.0500 ×; 10.0 req/s; 0.90 / 1.80; 20.0 µs |\n",
		"- http-1: nginx: skipped: nginx is not installed\n",
	} {
		if strings.Count(b.String(), want) != 1 {
			t.Errorf("missing or twice: %s\nin\n%s", want, b.String())
		}
	}
}

func TestEachRowInOneTable(t *testing.T) {
	keys := map[string]bool{}
	for _, r := range newRows() {
		if keys[r.key] {
			t.Errorf("%s: two rows", r.key)
		}
		keys[r.key] = true
		n := 0
		for _, s := range sections {
			if !s.shows(r) {
				continue
			}
			n++
			for _, peer := range r.peers {
				if !strings.Contains(strings.Join(s.peers, "|"), peer.name) {
					t.Errorf("%s: no column for %s", r.key, peer.name)
				}
			}
		}
		if n != 1 {
			t.Errorf("%s: in %d tables", r.key, n)
		}
	}
}
