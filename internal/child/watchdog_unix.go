//go:build unix

package child

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	watchdogTells = 200 * time.Millisecond // for a write to it
	watchdogReady = 10 * time.Second       // for it to come up
	watchdogEnds  = 2 * time.Second        // for it to end after its input
	watchdogLives = 2                      // it is started again once
)

// ignoreSignals leaves only SIGKILL. SIGPIPE comes when the Supervisor's process is gone
// before the watchdog is up: just when it is needed.
func ignoreSignals() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
}

func killGroup(pgid int) { _ = unix.Kill(-pgid, unix.SIGKILL) }

// watchdog is the Supervisor's side of the watchdog process.
type watchdog struct {
	sup     *Supervisor
	once    sync.Once
	guarded sync.WaitGroup // guard
	closing chan struct{}  // closed by close

	mu     sync.Mutex
	groups map[*Process][]int // whom it should kill, by process
	pipe   *os.File           // its stdin; nil while it does not run
}

func newWatchdog(s *Supervisor) *watchdog {
	return &watchdog{sup: s, closing: make(chan struct{}), groups: make(map[*Process][]int)}
}

// start starts it, the first time. Without it all goes on: it is the last of several
// nets.
func (w *watchdog) start() {
	w.once.Do(func() {
		run, err := w.launch()
		if err != nil {
			w.warn(err)
			return
		}
		w.guarded.Go(func() { w.guard(run) })
	})
}

func (w *watchdog) warn(err error) {
	w.sup.log.Warn("no watchdog: child processes may outlive a SIGKILL of this process", "err", err)
}

// watchdogRun is one life of the watchdog process.
type watchdogRun struct {
	cmd   *exec.Cmd
	ready *os.File // its stdout
	ended chan struct{}
}

func (w *watchdog) launch() (*watchdogRun, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		closeAll([]*os.File{theirIn, in})
		return nil, err
	}
	cmd := &exec.Cmd{
		Path:        self,
		Args:        []string{os.Args[0], watchdogArg},
		Env:         []string{},
		Dir:         "/", // keep no file system busy
		Stdin:       theirIn,
		Stdout:      theirOut,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // no Ctrl-C for it
	}
	err = w.sup.fork(cmd)
	closeAll([]*os.File{theirIn, theirOut})
	if err != nil {
		closeAll([]*os.File{in, out})
		return nil, err
	}
	w.attach(in)
	return &watchdogRun{cmd: cmd, ready: out, ended: make(chan struct{})}, nil
}

// attach makes the pipe the current one and tells all that there is to know.
func (w *watchdog) attach(pipe *os.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pipe = pipe
	for _, groups := range w.groups {
		for _, pgid := range groups {
			w.tellLocked('+', pgid)
		}
	}
}

// guard is the goroutine that waits for the watchdog and starts it again once.
func (w *watchdog) guard(run *watchdogRun) {
	for lives := 1; ; lives++ {
		err := w.outlive(run)
		w.detach()
		select {
		case <-w.closing:
			return
		default:
		}
		if lives == watchdogLives {
			w.warn(fmt.Errorf("watchdog ended: %w", err))
			return
		}
		if run, err = w.launch(); err != nil {
			w.warn(err)
			return
		}
	}
}

// outlive waits for the end of one watchdog process, and ends one that does not come
// up: then this program does not call RunWatchdogIfAsked, and is doing who knows what.
func (w *watchdog) outlive(run *watchdogRun) error {
	var waiting sync.WaitGroup
	waiting.Go(func() { w.end(run) })
	_ = run.ready.SetReadDeadline(time.Now().Add(watchdogReady))
	_, readyErr := run.ready.Read(make([]byte, 1))
	run.ready.Close()
	if readyErr != nil {
		_ = run.cmd.Process.Kill()
	}
	err := run.cmd.Wait()
	w.sup.untrack(run.cmd.Process.Pid)
	close(run.ended)
	waiting.Wait()
	switch {
	case readyErr != nil:
		return fmt.Errorf("it did not come up: %w", readyErr)
	case err != nil:
		return err
	}
	return os.ErrProcessDone
}

// end ends the watchdog when the Supervisor closes: at once if there is nothing left for
// it to kill, else when it does not end by itself after its input has.
func (w *watchdog) end(run *watchdogRun) {
	select {
	case <-run.ended:
		return
	case <-w.closing:
	}
	if w.watching() {
		timer := time.NewTimer(watchdogEnds)
		defer timer.Stop()
		select {
		case <-run.ended:
			return
		case <-timer.C:
		}
	}
	_ = run.cmd.Process.Kill()
}

func (w *watchdog) watching() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.groups) > 0
}

func (w *watchdog) detach() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pipe != nil {
		w.pipe.Close()
		w.pipe = nil
	}
}

func (w *watchdog) add(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(p, []int{p.pid})
}

// update changes the groups of a process that has not been removed.
func (w *watchdog) update(p *Process, groups []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, ok := w.groups[p]; ok {
		w.setLocked(p, groups)
	}
}

func (w *watchdog) remove(p *Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setLocked(p, nil)
	delete(w.groups, p)
}

func (w *watchdog) setLocked(p *Process, groups []int) {
	old := w.groups[p]
	w.groups[p] = groups
	for _, pgid := range groups {
		if !slices.Contains(old, pgid) {
			w.tellLocked('+', pgid)
		}
	}
	for _, pgid := range old {
		if !w.wantedLocked(pgid) {
			w.tellLocked('-', pgid)
		}
	}
}

// wantedLocked guards against a pid that was given anew before its last process was removed.
func (w *watchdog) wantedLocked(pgid int) bool {
	for _, groups := range w.groups {
		if slices.Contains(groups, pgid) {
			return true
		}
	}
	return false
}

func (w *watchdog) tellLocked(sign byte, pgid int) {
	if w.pipe == nil {
		return
	}
	// A failure means that it is gone; guard tells the next one everything.
	_ = w.pipe.SetWriteDeadline(time.Now().Add(watchdogTells))
	_, _ = fmt.Fprintf(w.pipe, "%c%d\n", sign, pgid)
}

// close ends the watchdog and waits for it.
func (w *watchdog) close() {
	w.once.Do(func() {}) // nothing starts it from here on
	close(w.closing)
	w.detach()
	w.guarded.Wait()
}
