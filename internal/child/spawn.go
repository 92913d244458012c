package child

import (
	"os"
	"os/exec"
	"runtime"
)

type forkRequest struct {
	cmd  *exec.Cmd
	done chan error // room for the one answer
}

// spawn is the goroutine in which all processes are started. The parent-death signal
// comes when the thread that forked ends, so it keeps its thread for life.
func (s *Supervisor) spawn() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		select {
		case r := <-s.forks:
			r.done <- s.forkTracked(r.cmd)
		case <-s.quit:
			return
		}
	}
}

func (s *Supervisor) fork(cmd *exec.Cmd) error {
	r := forkRequest{cmd: cmd, done: make(chan error, 1)}
	select {
	case s.forks <- r:
		return <-r.done
	case <-s.quit:
		return errClosed
	}
}

func (s *Supervisor) forkTracked(cmd *exec.Cmd) error {
	s.forkMu.Lock()
	defer s.forkMu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	s.tracked[cmd.Process.Pid]++
	return nil
}

// untrack is called by who has reaped the pid.
func (s *Supervisor) untrack(pid int) {
	s.forkMu.Lock()
	defer s.forkMu.Unlock()
	if s.tracked[pid]--; s.tracked[pid] <= 0 {
		delete(s.tracked, pid)
	}
}

// pipeSet is the three standard streams: index 0 is stdin.
type pipeSet struct {
	ours, theirs [3]*os.File
}

// openPipes makes them close-on-exec and, on our side, fit for deadlines.
func openPipes() (*pipeSet, error) {
	set := new(pipeSet)
	for i := range set.ours {
		r, w, err := os.Pipe()
		if err != nil {
			set.closeTheirs()
			set.closeOurs()
			return nil, err
		}
		if i == 0 {
			set.theirs[i], set.ours[i] = r, w
		} else {
			set.theirs[i], set.ours[i] = w, r
		}
	}
	return set, nil
}

func (p *pipeSet) closeTheirs() { closeAll(p.theirs[:]) }
func (p *pipeSet) closeOurs()   { closeAll(p.ours[:]) }

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}
