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

func (r *report) write(file string) error {
	var b bytes.Buffer
	r.preamble(&b)
	for _, s := range sections {
		if slices.ContainsFunc(r.rows, s.shows) {
			r.table(&b, s)
		}
	}
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

The direct server, "direct", is the echo served by net/http with nothing in between; it is the base, unless
the row or the table names another. ReverseProxy is that of net/http/httputil, with a transport that keeps a
connection for each session, request bodies read before they are sent on, and no delay in flushing. nginx is
a plain reverse proxy with connections kept to the server; `+"`proxy_buffering`"+` is off where replies are SSE, as
it would hold events back, and on, its default and the quicker, where they are JSON.
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

// failures names what failed or was skipped, and why.
func (r *report) failures(b *bytes.Buffer) {
	b.WriteString("## Failed or skipped\n\n")
	any := false
	for _, row := range r.rows {
		for _, s := range row.series() {
			if s.skip != "" {
				any = true
				fmt.Fprintf(b, "- %s: %s: skipped: %s\n", row.key, s.name, s.skip)
			}
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
