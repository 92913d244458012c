package child

import (
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"time"
)

const (
	// linger is how long an exit may follow the end of stdout, or a failed write,
	// and still count as the cause of it.
	linger = 500 * time.Millisecond
	// restGrace is what the leader's descendants get between SIGTERM and SIGKILL
	// once the leader has exited.
	restGrace = 500 * time.Millisecond
	pollFirst = time.Millisecond
	pollLast  = 50 * time.Millisecond
)

// Process is one process started by a Supervisor. All methods may be called from
// any goroutine, at any time.
type Process struct {
	// Static.
	spec    Spec
	sup     *Supervisor
	handler Handler
	log     *slog.Logger
	cmd     *exec.Cmd // wait calls Wait, nobody else
	tree    *tree
	pid     int

	queue   *queue
	stdin   *os.File // closed by feed
	stdout  *os.File // closed by read
	stderr  *os.File // closed by drain
	partial partial
	ring    ring

	stopOnce, killOnce sync.Once
	stopping           chan struct{} // closed by Stop
	killed             chan struct{} // closed by Kill

	exited   chan struct{} // closed by wait; then cmd.ProcessState and waitErr are set
	waitErr  error
	inEnded  chan struct{} // closed by feed; then inErr is set
	inErr    error
	outEnded chan struct{} // closed by read; then outErr is set
	outErr   error
	errEnded chan struct{}  // closed by drain
	parts    sync.WaitGroup // wait, feed, read and drain; live waits for them

	// Set by live alone, before it closes verdict.
	info    ExitInfo
	decided bool
	verdict chan struct{}

	done chan struct{} // closed by live
}

// PID returns the process's id, which is also that of its group and session.
func (p *Process) PID() int { return p.pid }

// Done is closed when the process is reaped, its group is gone, its goroutines have
// ended and its slot is free. Handler.Exit has been called by then.
func (p *Process) Done() <-chan struct{} { return p.done }

// Stop begins the shutdown order in the background and returns at once: write what is
// queued and close stdin, after StopGrace SIGTERM to the group, after TermGrace SIGKILL
// to everything. From now on Write returns ErrGone.
func (p *Process) Stop() {
	p.queue.refuse() // shutdown closes stdin, after a look at what the process started
	p.stopOnce.Do(func() { close(p.stopping) })
}

// Kill goes to the last step of the shutdown order at once: SIGKILL to the group and to
// what left it. It does not wait.
func (p *Process) Kill() {
	p.killOnce.Do(func() { close(p.killed) })
	p.Stop()
}

// live decides the life of the process; it owns the other four goroutines.
func (p *Process) live() {
	if !p.firstEnd() {
		p.shutdown()
	}
	until := time.Now().Add(outGrace)
	p.giveUpInput()
	p.decide(p.exitInfo())
	p.clearRest()
	p.await(p.outEnded, time.Until(until))
	p.await(p.errEnded, errGrace)
	// Fails where pipes know no deadlines (Windows); there the job has ended all that
	// could hold them.
	_ = p.stdout.SetReadDeadline(time.Unix(1, 0))
	_ = p.stderr.SetReadDeadline(time.Unix(1, 0))
	p.parts.Wait()
	p.tree.close()
	p.log.Debug("process ended", "reason", p.info.String())
	p.sup.release(p)
	close(p.done)
}

// firstEnd waits for the first thing that ends the process's service and says
// whether that was its exit.
func (p *Process) firstEnd() (exited bool) {
	select {
	case <-p.exited:
		return true
	case <-p.stopping:
		return false
	case <-p.outEnded:
		if p.awaitExit(linger) {
			return true
		}
		if !p.isKilled() {
			p.tree.note()
			p.decide(ExitInfo{StdoutClosed: true, Err: p.outErr})
		}
	case <-p.inEnded:
		if p.awaitExit(linger) {
			return true
		}
		p.info.Err = p.inErr
	}
	return false
}

// decide publishes how the process ended, the first time. Nothing can be written
// from then on, so that nobody waits for an answer after Exit.
func (p *Process) decide(info ExitInfo) {
	if p.decided {
		return
	}
	p.decided = true
	p.queue.drop()
	p.info = info
	close(p.verdict)
}

// exitInfo reads the status of the exited process.
func (p *Process) exitInfo() ExitInfo {
	info := ExitInfo{Code: -1, Err: p.info.Err}
	if p.cmd.ProcessState == nil {
		info.Err = p.waitErr
		return info
	}
	info.Code = p.cmd.ProcessState.ExitCode()
	if number, name := exitSignal(p.cmd.ProcessState); number != 0 {
		info.Code, info.Signal = 128+number, name
	}
	return info
}

// shutdown runs the shutdown order and returns when the process has exited. What it
// started is looked up first: once it is gone, nobody can tell whose it was.
func (p *Process) shutdown() {
	p.tree.note()
	p.queue.seal()
	if p.awaitExit(p.spec.StopGrace) {
		return
	}
	p.giveUpInput()
	if !p.isKilled() {
		p.tree.note()
		p.tree.term()
		if p.awaitExit(p.spec.TermGrace) {
			return
		}
	}
	for pause := pollFirst; ; pause = min(2*pause, pollLast) {
		p.tree.kill()
		if p.await(p.exited, pause) {
			return
		}
	}
}

// clearRest ends what the exited process left behind.
func (p *Process) clearRest() {
	if !p.tree.alive() {
		return
	}
	p.tree.term()
	until := time.Now().Add(restGrace)
	for pause := pollFirst; time.Now().Before(until) && !p.isKilled(); pause = min(2*pause, pollLast) {
		if !p.tree.alive() {
			return
		}
		p.await(nil, pause)
	}
	until = time.Now().Add(killWait)
	for pause := pollFirst; p.tree.kill(); pause = min(2*pause, pollLast) {
		if time.Now().After(until) { // of another user, or stuck in the kernel
			p.log.Warn("descendants of the process survive SIGKILL")
			return
		}
		p.await(nil, pause)
	}
}

// await waits until the channel is closed, at most d, and says whether it was.
func (p *Process) await(c <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c:
		return true
	case <-timer.C:
		return false
	}
}

// awaitExit is await for the exit; Kill cuts it short.
func (p *Process) awaitExit(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-p.killed:
		return false
	case <-timer.C:
		return false
	}
}

func (p *Process) isKilled() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// wait is the waiter goroutine: it learns of the exit and reaps the process.
func (p *Process) wait() {
	if awaitExit(p.pid) {
		// Still a zombie: its pid cannot belong to anyone else yet.
		p.tree.leaderExited()
	}
	if err := p.cmd.Wait(); p.cmd.ProcessState == nil {
		p.waitErr = err
	}
	p.tree.leaderExited()
	p.sup.untrack(p.pid)
	close(p.exited)
}
