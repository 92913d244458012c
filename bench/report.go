package main

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// report is what a benchmark run found, to be written as Markdown.
type report struct {
	args  []string
	opts  options
	facts []string
	began time.Time
	rows  []row
}

// peerNames are the columns for the other proxies, by the names of their targets.
func peerNames() []string { return []string{"supergateway --stateful", "supergateway", "mcp-proxy"} }

func (r *report) write(file string) error {
	var b bytes.Buffer
	r.preamble(&b)
	b.WriteString("## Throughput\n\nMedians; p50 / p99 of a call in ms; processor time a call, of the base / of Signalbox\nwith its server, in µs, which what else runs on the machine changes least. The share of another proxy is of the same base.\n\n")
	r.table(&b, "at least", func(row row) bool { return !row.compare.upper })
	b.WriteString("\n## Memory, latency and large messages\n\n")
	r.table(&b, "below", func(row row) bool { return row.compare.upper })
	r.failures(&b)
	r.runs(&b)
	if file == "" {
		_, err := os.Stdout.Write(b.Bytes())
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

func (r *report) preamble(b *bytes.Buffer) {
	fmt.Fprintf(b, "# Benchmarks\n\nWritten by `make bench` (`go run . %s` in `bench/`) on %s.\n\n",
		strings.Join(quoted(r.args), " "), r.began.UTC().Format("2006-01-02 15:04 UTC"))
	for _, fact := range r.facts {
		fmt.Fprintf(b, "- %s\n", fact)
	}
	fmt.Fprintf(b, `
Every program runs on this one machine, the load client included, each in its own process. The runs of a
row (%d, each %v after %v of warm-up) take the contestants in turn. A session is a client with its own
connection that makes its next call when the last one is answered. Every call is tagged with its session
and number; an answer with another id, with one changed byte, a second one, or none fails the contestant,
and the reason is given below.

The base is the same echo served by net/http with nothing in between, unless the row names another.
Signalbox is the default binary with logs and metrics on and only the limits on sessions and processes
raised. The other proxies run as their manuals say. supergateway starts a process for each session with
`+"`--stateful`"+`, so its memory is that of its own process, with 50 sessions; without it, it is measured over
HTTP+SSE. The other proxies have one run where each run needs a new process.

`, r.opts.runs, r.opts.measure, r.opts.warm)
}

// quoted are args as a shell would take them.
func quoted(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		if strings.ContainsAny(arg, " '") {
			out[i] = "'" + strings.ReplaceAll(arg, "'", `'"'"'`) + "'"
		}
	}
	return out
}

func (r *report) table(b *bytes.Buffer, bound string, want func(row) bool) {
	fmt.Fprintf(b, "| row | base | Signalbox | result | %s | aim | base p50 / p99 | Signalbox p50 / p99 | CPU a call | %s |\n", bound, strings.Join(peerNames(), " | "))
	fmt.Fprintf(b, "|---|%s\n", strings.Repeat("---|", 8+len(peerNames())))
	for _, row := range r.rows {
		if !want(row) {
			continue
		}
		cells := []string{row.title, figure(row, row.base), figure(row, row.own), row.result(row.own),
			row.bound(row.atLeast), row.bound(row.aim), quantiles(row.base), quantiles(row.own), cpus(row)}
		for _, name := range peerNames() {
			cells = append(cells, row.peer(name))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

func figure(r row, s *series) string {
	switch {
	case s == nil:
		return ""
	case s.err != nil:
		return "**fails**"
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
	if r.base == nil || r.base.median().cpu == 0 || r.own == nil || r.own.median().cpu == 0 {
		return ""
	}
	return number(r.base.median().cpu.Seconds()*1e6) + " / " + number(r.own.median().cpu.Seconds()*1e6)
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
	return r.compare.of(base, s.median().value), true
}

func (r row) bound(v float64) string {
	if v == 0 {
		return ""
	}
	return number(v) + " " + r.compare.unit
}

func (r row) peer(name string) string {
	for _, s := range r.peers {
		if s.name != name {
			continue
		}
		if s.err != nil {
			return "fails"
		}
		parts := []string{r.result(s), figure(r, s), quantiles(s)}
		parts = slices.DeleteFunc(parts, func(part string) bool { return part == "" })
		return strings.Join(slices.Compact(parts), "; ")
	}
	return ""
}

// failures names what failed, and why.
func (r *report) failures(b *bytes.Buffer) {
	b.WriteString("\n## Failures\n\n")
	any := false
	for _, row := range r.rows {
		for _, s := range row.series() {
			if s.err != nil {
				any = true
				fmt.Fprintf(b, "- %s: %s: %s\n", row.key, s.name, code(s.err.Error()))
			}
		}
	}
	if !any {
		b.WriteString("None.\n")
	}
}

// runs lists every run.
func (r *report) runs(b *bytes.Buffer) {
	b.WriteString("\n## Runs\n\n| row | contestant | unit | runs |\n|---|---|---|---|\n")
	for _, row := range r.rows {
		for _, s := range row.series() {
			all := make([]string, len(s.samples))
			for i, m := range s.samples {
				all[i] = number(m.value)
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s |\n", row.key, s.name, row.unit, strings.Join(all, ", "))
		}
	}
}

// verdict is an error when what the benchmark is about could not be measured.
func (r *report) verdict() error {
	var failed []string
	for _, row := range r.rows {
		for _, s := range []*series{row.base, row.own} {
			if s != nil && s.err != nil {
				failed = append(failed, row.key+": "+s.name)
			}
		}
	}
	if failed != nil {
		return fmt.Errorf("failed: %s", strings.Join(failed, ", "))
	}
	return nil
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

// code is text as Markdown code on one line, cut to a readable length.
func code(text string) string {
	for from := strings.IndexByte(text, '<'); from >= 0; from = strings.IndexByte(text, '<') {
		n := strings.IndexByte(text[from:], '>')
		if n < 0 {
			break
		}
		text = text[:from] + " " + text[from+n+1:] // a page of HTML
	}
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "`", "'")), " ")
	if len(text) > 400 {
		text = text[:400] + "..."
	}
	return "`" + text + "`"
}
