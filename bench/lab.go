package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/load"
	"github.com/signalbox-mcp/signalbox/bench/internal/proc"
)

// startTimeout is how long a target may take until it answers initialize.
const startTimeout = 30 * time.Second

// lab is where measurements happen: a folder with the programs, and what is running.
type lab struct {
	opts    options
	dir     string // programs and logs; removed at the end
	say     io.Writer
	started int
	ports   []int // handed out
}

// running is a started target.
type running struct {
	load.Endpoint
	process *proc.Process
}

// prepare builds the programs and installs the peers.
func (l *lab) prepare(ctx context.Context, rows []row) error {
	if err := l.build(ctx, ".", "./echoserver", "./directserver"); err != nil {
		return err
	}
	uses := func(f func(*target) bool) bool {
		return slices.ContainsFunc(rows, func(r row) bool {
			return slices.ContainsFunc(r.series(), func(s *series) bool { return s.target != nil && f(s.target) })
		})
	}
	if l.opts.binary == "" && uses(func(t *target) bool { return t.name == "signalbox" }) {
		if err := l.build(ctx, "..", "./cmd/signalbox"); err != nil {
			return err
		}
	}
	if !uses(func(t *target) bool { return t.npm }) {
		return nil
	}
	if _, err := os.Stat(l.npm("mcp-proxy")); err == nil {
		return nil
	}
	return l.command(ctx, "npm", "ci", "--prefix", "npm", "--no-audit", "--no-fund")
}

func (l *lab) build(ctx context.Context, module string, packages ...string) error {
	args := []string{"build", "-C", module, "-o", l.dir + string(filepath.Separator)}
	return l.command(ctx, "go", append(args, packages...)...)
}

func (l *lab) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = l.say, l.say
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}

// start starts a target and waits until a session can be opened.
func (l *lab) start(ctx context.Context, t *target) (*running, error) {
	port, err := l.freePort()
	if err != nil {
		return nil, err
	}
	argv, err := t.argv(l, port)
	if err != nil {
		return nil, err
	}
	l.started++
	p, err := proc.Start(argv, filepath.Join(l.dir, fmt.Sprintf("%d.log", l.started)))
	if err != nil {
		return nil, err
	}
	r := &running{Endpoint: t.endpoint(port), process: p}
	if err := r.await(ctx); err != nil {
		p.Stop(t.grace())
		fmt.Fprintf(l.say, "%s: %v; it wrote:\n%s\n", t.name, err, p.Log())
		return nil, err
	}
	return r, nil
}

func (r *running) await(ctx context.Context) error {
	deadline := time.Now().Add(startTimeout)
	for {
		s, err := load.Open(r.Endpoint, false, time.Now().Add(startTimeout/2))
		if err == nil {
			s.End()
			return nil
		}
		if ended, how := r.process.Ended(); ended {
			return fmt.Errorf("ended at start: %v", how)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready within %v: %w", startTimeout, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePort is a free port that was not handed out before.
func (l *lab) freePort() (int, error) {
	for range 100 {
		port, err := proc.FreePort()
		if err != nil {
			return 0, err
		}
		if !slices.Contains(l.ports, port) {
			l.ports = append(l.ports, port)
			return port, nil
		}
	}
	return 0, errors.New("no free port")
}
