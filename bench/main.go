// Command bench measures Signalbox side by side with the same echo server reached directly and
// with other proxies, on this machine, and writes a table in Markdown. What it measures is in
// newRows, who takes part in newTargets.
//
//	go run . [-o FILE] [-quick] [-rows KEY,...] [-targets NAME,...] [-runs N] [-seconds N]
//
// Every call carries a tag of its session and number, and every answer is checked for its id and
// for each byte of its payload: a wrong or missing one fails the contestant in that row. The
// program ends with 1 when Signalbox or the base failed, never because a figure is low.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

type options struct {
	out, binary       string
	rows, targets     []string // empty: all
	runs, peerRuns    int
	warm, measure     time.Duration
	memSessions       int
	quick, list, keep bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, say io.Writer) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	rows, err := choose(newRows(), opts)
	if err != nil {
		return err
	}
	if opts.list {
		for _, r := range rows {
			fmt.Printf("%-20s %s\n", r.key, r.title)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "signalbox-bench-")
	if err != nil {
		return err
	}
	l := &lab{opts: opts, dir: dir, say: say}
	defer l.close()
	if opts.keep {
		fmt.Fprintln(say, "programs and logs stay in", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	skipMissing(rows)
	if err := l.prepare(ctx, rows); err != nil {
		return err
	}
	rep := report{args: args, opts: opts, facts: machineFacts(ctx), began: time.Now()}
	for i := range rows {
		if rows[i].from == "" {
			l.run(ctx, &rows[i])
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	fillDerived(rows)
	rep.rows = rows
	if err := rep.write(opts.out); err != nil {
		return err
	}
	return rep.verdict()
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.StringVar(&o.out, "o", "", "file for the table; standard output without it")
	f.StringVar(&o.binary, "signalbox", "", "signalbox program to measure instead of building ../cmd/signalbox")
	rows := f.String("rows", "", "rows to measure, by their keys, with commas between them")
	targets := f.String("targets", "", "contestants to measure, by their names, with commas between them")
	f.IntVar(&o.runs, "runs", 5, "runs of each row; the table has their medians")
	f.IntVar(&o.peerRuns, "peer-runs", 0, "runs of the other proxies; 0: as many as the rest")
	seconds := f.Float64("seconds", 3, "measured time of a run")
	f.IntVar(&o.memSessions, "memory-sessions", 1000, "idle sessions in the rows on memory")
	f.BoolVar(&o.quick, "quick", false, "one run of one second: shows that everything works, not how fast")
	f.BoolVar(&o.list, "list", false, "print the rows and end")
	f.BoolVar(&o.keep, "keep", false, "keep the programs and their logs")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unknown argument %q", f.Arg(0))
	}
	if o.quick {
		o.runs, *seconds, o.memSessions = 1, 1, min(o.memSessions, 200)
	}
	if o.runs < 1 || *seconds <= 0 || o.memSessions < 1 {
		return o, errors.New("-runs, -seconds and -memory-sessions must be above zero")
	}
	if o.peerRuns == 0 {
		o.peerRuns = o.runs
	}
	o.measure = time.Duration(*seconds * float64(time.Second))
	o.warm = min(500*time.Millisecond, o.measure/4)
	o.rows, o.targets = list(*rows), list(*targets)
	return o, nil
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' })
}

// choose keeps the rows and contestants that were asked for.
func choose(rows []row, o options) ([]row, error) {
	for _, key := range o.rows {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.key == key }) {
			return nil, fmt.Errorf("no row %q; -list prints them", key)
		}
	}
	if len(o.rows) > 0 {
		rows = asked(rows, o.rows)
	}
	if len(o.targets) == 0 {
		return rows, nil
	}
	out := func(s *series) bool {
		return s != nil && s.target != nil && !slices.Contains(o.targets, s.target.name)
	}
	for i := range rows {
		r := &rows[i]
		if out(r.base) {
			r.base = nil
		}
		if out(r.own) {
			r.own = nil
		}
		r.peers = slices.DeleteFunc(r.peers, out)
	}
	return slices.DeleteFunc(rows, func(r row) bool { return len(r.series()) == 0 }), nil
}

// asked are the rows of these keys, with those that give their figures and those that they give.
func asked(rows []row, keys []string) []row {
	sources := map[string]bool{}
	for _, r := range rows {
		if r.from != "" && slices.Contains(keys, r.key) {
			sources[r.from] = true
		}
	}
	return slices.DeleteFunc(rows, func(r row) bool {
		return !slices.Contains(keys, r.key) && !slices.Contains(keys, r.from) && !sources[r.key]
	})
}
