package child

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// wideProcesses is up to how many processes the pipes are made larger. What pipes hold
// is counted by user (Linux: 64 MiB), and a user above it gets pipes of 8 KiB.
const wideProcesses = 16

// killWait bounds Close once everything was sent SIGKILL.
const killWait = 5 * time.Second

// Supervisor starts processes and guarantees that none outlives this one.
type Supervisor struct {
	// Static.
	max    int
	log    *slog.Logger
	watch  *watchdog
	forks  chan forkRequest
	quit   chan struct{}  // closed by Close: spawn and reap end
	idle   chan struct{}  // closed once closed is set and running is 0
	ended  chan struct{}  // closed at the end of Close
	inner  sync.WaitGroup // spawn and reap
	lives  sync.WaitGroup // one Process.live each; release comes before its end
	reaper reaper

	mu       sync.Mutex
	closed   bool
	running  int // slots taken: starting, running and stopping
	children map[*Process]struct{}

	// forkMu makes a fork and its entry in tracked one step for the reaper.
	forkMu  sync.Mutex
	tracked map[int]int // pid → how many Waits of ours will reap it, or just did
}

// Quota bounds the processes of several Specs, beside the Supervisor's own bound.
type Quota struct {
	Max     int // above 0; those that are stopping count
	running int // guarded by Supervisor.mu
}

// Options of a Supervisor. Logger is required.
type Options struct {
	MaxProcesses int // 0 = 128; those that are stopping count
	Logger       *slog.Logger
}

// NewSupervisor returns a Supervisor that has started nothing yet. It must be closed.
// On Linux it makes this process the one that orphans of its children fall to.
func NewSupervisor(o Options) (*Supervisor, error) {
	if o.Logger == nil {
		return nil, errors.New("child: Options.Logger is required")
	}
	if askedToWatch() {
		return nil, errors.New("child: this process is a watchdog; its main must call RunWatchdogIfAsked first")
	}
	if o.MaxProcesses <= 0 {
		o.MaxProcesses = defaultMaxProcesses
	}
	s := &Supervisor{
		max:      o.MaxProcesses,
		log:      o.Logger,
		forks:    make(chan forkRequest),
		quit:     make(chan struct{}),
		idle:     make(chan struct{}),
		ended:    make(chan struct{}),
		children: make(map[*Process]struct{}),
		tracked:  make(map[int]int),
	}
	s.watch = newWatchdog(s)
	if err := s.reaper.prepare(); err != nil {
		s.log.Warn("orphans of child processes will not be reaped", "err", err)
	}
	s.inner.Go(s.spawn)
	s.inner.Go(s.reap)
	return s, nil
}

// Running returns the number of slots taken, those of stopping processes included.
func (s *Supervisor) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Start starts a process. It waits for the fork and the exec, not for the process.
// Errors are ErrTooMany and *StartError.
func (s *Supervisor) Start(spec Spec, h Handler) (*Process, error) {
	spec = spec.withDefaults()
	cmd, err := command(spec)
	if err != nil {
		return nil, err
	}
	wide, err := s.reserve(spec.Quota)
	if errors.Is(err, errClosed) {
		return nil, &StartError{Server: spec.Name, Command: spec.Args[0], Err: err}
	}
	if err != nil {
		return nil, err
	}
	s.watch.start()
	p := &Process{
		spec:     spec,
		sup:      s,
		handler:  h,
		cmd:      cmd,
		queue:    newQueue(spec.QueueBytes),
		stopping: make(chan struct{}),
		killed:   make(chan struct{}),
		exited:   make(chan struct{}),
		inEnded:  make(chan struct{}),
		outEnded: make(chan struct{}),
		errEnded: make(chan struct{}),
		verdict:  make(chan struct{}),
		done:     make(chan struct{}),
	}
	if err := p.launch(wide); err != nil {
		s.unreserve(spec.Quota)
		return nil, startError(spec, cmd, err)
	}
	return p, nil
}

// launch makes the pipes, forks, and starts the goroutines.
func (p *Process) launch(wide bool) error {
	s := p.sup
	pipes, err := openPipes()
	if err != nil {
		return err
	}
	if wide {
		widen(pipes.ours[0])
		widen(pipes.ours[1])
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = pipes.theirs[0], pipes.theirs[1], pipes.theirs[2]
	p.cmd.SysProcAttr = childAttr()
	err = s.fork(p.cmd)
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return err
	}
	p.stdin, p.stdout, p.stderr = pipes.ours[0], pipes.ours[1], pipes.ours[2]
	p.pid = p.cmd.Process.Pid
	p.log = s.log.With("server", p.spec.Name, "pid", p.pid)
	p.tree = newTree(p.pid, p.log)
	s.watch.add(p)
	p.parts.Go(p.wait)
	p.parts.Go(p.feed)
	p.parts.Go(p.read)
	p.parts.Go(p.drain)
	s.adopt(p)
	return nil
}

// adopt enters the process and starts its life.
func (s *Supervisor) adopt(p *Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.children[p] = struct{}{}
	if s.closed {
		p.Stop() // Close has passed over the list already
	}
	s.lives.Go(p.live)
}

// reserve takes a slot and says whether there are few enough for wide pipes.
func (s *Supervisor) reserve(q *Quota) (wide bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return false, errClosed
	case s.running >= s.max:
		return false, fmt.Errorf("%w: %d are running or stopping", ErrTooMany, s.running)
	case q != nil && q.running >= q.Max:
		return false, fmt.Errorf("%w: %d of this server are running or stopping", ErrTooMany, q.running)
	}
	s.running++
	if q != nil {
		q.running++
	}
	return s.running <= wideProcesses, nil
}

func (s *Supervisor) unreserve(q *Quota) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unreserveLocked(q)
}

func (s *Supervisor) unreserveLocked(q *Quota) {
	s.running--
	if q != nil {
		q.running--
	}
	s.checkIdleLocked()
}

func (s *Supervisor) checkIdleLocked() {
	if s.closed && s.running == 0 {
		select {
		case <-s.idle:
		default:
			close(s.idle)
		}
	}
}

// release frees the slot of a process that is gone.
func (s *Supervisor) release(p *Process) {
	s.watch.remove(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.children, p)
	s.unreserveLocked(p.spec.Quota)
}

func (s *Supervisor) list() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Process, 0, len(s.children))
	for p := range s.children {
		all = append(all, p)
	}
	return all
}

// Close stops all processes and waits for them; when ctx ends first, they are killed.
// Then it ends what else the Supervisor started. It returns an error if any process had
// to be killed because ctx ended.
func (s *Supervisor) Close(ctx context.Context) error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.checkIdleLocked()
	s.mu.Unlock()
	if again {
		select {
		case <-s.ended:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer close(s.ended)
	for _, p := range s.list() {
		p.Stop()
	}
	err := s.awaitIdle(ctx)
	s.watch.close()
	close(s.quit)
	s.inner.Wait()
	return err
}

func (s *Supervisor) awaitIdle(ctx context.Context) error {
	select {
	case <-s.idle:
		s.lives.Wait()
		return nil
	case <-ctx.Done():
	}
	names := []string{}
	for _, p := range s.list() {
		names = append(names, p.spec.Name)
		p.Kill()
	}
	slices.Sort(names)
	timer := time.NewTimer(killWait)
	defer timer.Stop()
	select {
	case <-s.idle:
		s.lives.Wait()
		return fmt.Errorf("child: killed %v: %w", names, context.Cause(ctx))
	case <-timer.C:
		return fmt.Errorf("child: still there after SIGKILL: %v: %w", names, context.Cause(ctx))
	}
}
