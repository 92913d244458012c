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
	"strconv"
	"strings"
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

	redis     *proc.Process // nil: not needed, or not there
	redisAddr string
}

// startRedis starts the one Redis that targets may keep sessions in.
func (l *lab) startRedis() error {
	port, err := l.freePort()
	if err != nil {
		return err
	}
	l.redisAddr = loopback(port)
	l.redis, err = proc.Start([]string{"redis-server", "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--dir", l.dir},
		filepath.Join(l.dir, "redis.log"))
	return err
}

// close ends what outlives a measurement.
func (l *lab) close() {
	if l.redis != nil {
		l.redis.Stop(5 * time.Second)
	}
}

// running is a started target.
type running struct {
	load.Endpoint
	target  *target
	process *proc.Process
	behind  *running // the server that it stands before, or nil
	admin   string   // host:port of its admin listener, where it has one
}

// prepare builds the programs and installs the peers.
func (l *lab) prepare(ctx context.Context, rows []row) error {
	if err := l.build(ctx, ".", "./echoserver", "./directserver", "./reverseproxy"); err != nil {
		return err
	}
	uses := func(f func(*target) bool) bool {
		return slices.ContainsFunc(rows, func(r row) bool {
			return slices.ContainsFunc(r.series(), func(s *series) bool { return s.target != nil && f(s.target) })
		})
	}
	if _, err := exec.LookPath("redis-server"); err == nil && uses(func(t *target) bool { return t.needs == "redis-server" }) {
		if err := l.startRedis(); err != nil {
			return err
		}
	}
	if l.opts.binary == "" && uses(func(t *target) bool { return strings.HasPrefix(t.name, "signalbox") }) {
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

// skipMissing skips the contestants whose program the machine does not have.
func skipMissing(rows []row) {
	for _, r := range rows {
		for _, s := range r.series() {
			if s.target == nil || s.target.needs == "" {
				continue
			}
			if _, err := find(s.target.needs); err != nil {
				s.skip = s.target.needs + " is not installed"
			}
		}
	}
}

// start starts a target, after the server that it stands before, and waits until a session can
// be opened.
func (l *lab) start(ctx context.Context, t *target) (*running, error) {
	r := &running{target: t}
	at := place{}
	var err error
	if t.behind != nil {
		if r.behind, err = l.start(ctx, t.behind); err != nil {
			return nil, fmt.Errorf("behind %s: %w", t.name, err)
		}
		at.behind = r.behind.Addr
	}
	if at.port, err = l.freePort(); err == nil {
		at.admin, err = l.freePort()
	}
	if err == nil {
		err = l.launch(ctx, r, at)
	}
	if err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// launch starts r's own program.
func (l *lab) launch(ctx context.Context, r *running, at place) error {
	argv, err := r.target.argv(l, at)
	if err != nil {
		return err
	}
	l.started++
	r.Endpoint, r.admin = r.target.endpoint(at.port), loopback(at.admin)
	if r.process, err = proc.Start(argv, filepath.Join(l.dir, fmt.Sprintf("%d.log", l.started))); err != nil {
		return err
	}
	if err := r.await(ctx); err != nil {
		fmt.Fprintf(l.say, "%s: %v; it wrote:\n%s\n", r.target.name, err, r.process.Log())
		return err
	}
	return nil
}

// stop ends the program, and then the one behind it.
func (r *running) stop() {
	if r.process != nil {
		r.process.Stop(r.target.grace())
	}
	if r.behind != nil {
		r.behind.stop()
	}
}

// cpu is the processor time that the contestant has used, its server included.
func (r *running) cpu() (time.Duration, error) {
	used, err := proc.CPU(r.process.PID())
	if err != nil || r.behind == nil {
		return used, err
	}
	behind, err := r.behind.cpu()
	return used + behind, err
}

// ended is an error when the program, or the one behind it, has ended.
func (r *running) ended() error {
	if ended, how := r.process.Ended(); ended {
		return fmt.Errorf("%s: process ended: %v", r.target.name, how)
	}
	if r.behind != nil {
		return r.behind.ended()
	}
	return nil
}

func (r *running) await(ctx context.Context) error {
	deadline := time.Now().Add(startTimeout)
	for {
		s, err := load.Open(r.Endpoint, load.Streamable, time.Now().Add(startTimeout/2))
		if err == nil {
			s.End()
			return nil
		}
		if err := r.ended(); err != nil {
			return fmt.Errorf("at start: %w", err)
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
