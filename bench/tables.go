package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"
)

// section is one table of the report.
type section struct {
	title, intro string
	base, own    string         // headings of their columns
	bound        string         // heading of the bounds
	peers        []string       // columns for the others, by the names of their series
	has          func(row) bool // of the rows that do not stand apart; nil: none
}

var sections = []*section{
	{"HTTP servers", `Each contestant stands before a process of its own of the direct server, over HTTP. Results are shares of
ReverseProxy's figure, that of the others as well. ` + figuresIntro, "ReverseProxy", "Signalbox", "at least", httpPeers,
		func(r row) bool { return r.http && !r.compare.upper }},
	{"HTTP servers: latency added", `What a contestant's p50 is above that of the direct server in the same run, from the runs above; results are
shares of what ReverseProxy adds.`, "ReverseProxy", "Signalbox", "below", httpPeers[1:],
		func(r row) bool { return r.http && r.compare.upper }},
	{"Stdio servers", "The share of another proxy is of the same base. " + figuresIntro, "base", "Signalbox", "at least", stdioPeers,
		func(r row) bool { return !r.http && !r.compare.upper }},
	{"Memory, latency and large messages", "", "base", "Signalbox", "below", stdioPeers,
		func(r row) bool { return !r.http && r.compare.upper }},
	erasSection,
	watchedSection,
}

// shows tells whether the row stands in the table.
func (s *section) shows(r row) bool {
	if r.apart != nil {
		return r.apart == s
	}
	return s.has != nil && s.has(r)
}

const figuresIntro = `Medians; p50 / p99 of a call in
ms; processor time a call, of the base / of Signalbox with its server, in µs, which what else runs on the
machine changes least. A cell for another contestant has its share, its figure, p50 / p99 and processor time.`

var (
	httpPeers  = []string{"direct", "nginx"}
	stdioPeers = []string{"supergateway --stateful", "supergateway", "mcp-proxy"}
)

func (r *report) table(b *bytes.Buffer, s *section) {
	fmt.Fprintf(b, "## %s\n\n", s.title)
	if s.intro != "" {
		fmt.Fprintf(b, "%s\n\n", s.intro)
	}
	heads := append([]string{"row", s.base, s.own, "result", s.bound, "aim", s.base + " p50 / p99", s.own + " p50 / p99", "CPU a call"}, s.peers...)
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, row := range r.rows {
		if !s.shows(row) {
			continue
		}
		cells := []string{row.title, figure(row, row.base), figure(row, row.own), row.result(row.own),
			row.bound(row.atLeast), row.aims(), quantiles(row.base), quantiles(row.own), cpus(row)}
		for _, name := range s.peers {
			cells = append(cells, row.peer(name))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteString("\n")
}

func figure(r row, s *series) string {
	switch {
	case s == nil:
		return ""
	case s.skip != "":
		return "skipped: " + s.skip
	case s.err != nil:
		return "**fails**"
	case len(s.samples) == 0:
		return ""
	}
	return number(s.median().value) + " " + r.unit
}

func quantiles(s *series) string {
	if s == nil || s.err != nil || s.median().p50 == 0 {
		return ""
	}
	m := s.median()
	return millis(m.p50) + " / " + millis(m.p99)
}

// cpus is the processor time of a call in µs, base and own.
func cpus(r row) string {
	base, own := cpu(r.base), cpu(r.own)
	if base == "" || own == "" {
		return ""
	}
	return base + " / " + own
}

func cpu(s *series) string {
	if s == nil || s.median().cpu == 0 {
		return ""
	}
	return number(s.median().cpu.Seconds() * 1e6)
}

// result is the row's result for s, empty where a part is missing, and whether it is in bounds.
func (r row) result(s *series) string {
	value, ok := r.value(s)
	if !ok {
		return ""
	}
	text := number(value) + " " + r.compare.unit
	switch {
	case s != r.own || r.atLeast == 0:
		return text
	case r.compare.upper == (value < r.atLeast):
		return text + ", met"
	}
	return text + ", **missed**"
}

func (r row) value(s *series) (float64, bool) {
	if s == nil || s.err != nil || len(s.samples) == 0 {
		return 0, false
	}
	var base float64
	if r.base != nil {
		if r.base.err != nil || len(r.base.samples) == 0 {
			return 0, false
		}
		base = r.base.median().value
	} else if r.compare.unit != r.unit {
		return 0, false // its base was not asked for
	}
	if r.pairs {
		return r.median(s), true
	}
	return r.compare.of(base, s.median().value), true
}

// median is the median of what the runs of the base and of s give, each with its neighbour.
func (r row) median(s *series) float64 {
	var all []sample
	for i, m := range s.samples[:min(len(s.samples), len(r.base.samples))] {
		all = append(all, sample{value: r.compare.of(r.base.samples[i].value, m.value)})
	}
	return medianOf(all, func(m sample) float64 { return m.value })
}

func (r row) bound(v float64) string {
	if v == 0 {
		return ""
	}
	return number(v) + " " + r.compare.unit
}

func (r row) aims() string {
	aims := []string{r.bound(r.aim), r.beyond}
	return strings.Join(slices.DeleteFunc(aims, func(aim string) bool { return aim == "" }), ", then ")
}

func (r row) peer(name string) string {
	s := r.named(name)
	switch {
	case s == nil:
		return ""
	case s.err != nil:
		return "fails"
	}
	parts := []string{r.result(s), figure(r, s), quantiles(s)}
	if used := cpu(s); used != "" {
		parts = append(parts, used+" µs")
	}
	parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
	return strings.Join(slices.Compact(parts), "; ")
}

func number(v float64) string {
	switch {
	case v >= 100 || v <= -100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10 || v <= -10:
		return fmt.Sprintf("%.1f", v)
	case v >= 0.1 || v <= -0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.4f", v)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1000) }
