//go:build unix

package child

import (
	"log/slog"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a process and what it started. Its methods may be called at once.
type tree struct {
	pgid int // the leader's pid, its group and its session
	log  *slog.Logger

	mu     sync.Mutex
	reaped bool // the leader's pid may be anyone's now
	empty  bool // the leader is reaped and nothing else was alive: never signal again
	family family
}

func newTree(pid int, log *slog.Logger) *tree {
	return &tree{pgid: pid, log: log, family: newFamily(pid)}
}

// note looks up what the process has started by now.
func (t *tree) note() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.membersLocked()
}

// leaderExited says that the leader is about to be reaped, or just was.
func (t *tree) leaderExited() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reaped {
		return
	}
	members, known := t.membersLocked()
	t.reaped = true
	t.empty = known && len(members) == 0
}

// term sends SIGTERM to the group. Once the leader is reaped, the group's number is
// only as good as the last look at its members.
func (t *tree) term() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reaped {
		t.signalLocked(-t.pgid, unix.SIGTERM)
		return
	}
	if !t.empty {
		t.signalMembersLocked(unix.SIGTERM)
	}
}

// kill sends SIGKILL to everything and says whether anything was still there.
func (t *tree) kill() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.empty {
		return false
	}
	if !t.reaped {
		// Found first: when the leader is dead, nobody can tell whose they were.
		t.signalMembersLocked(unix.SIGKILL)
		t.signalLocked(-t.pgid, unix.SIGKILL)
		return true
	}
	t.empty = !t.signalMembersLocked(unix.SIGKILL)
	return !t.empty
}

// alive says whether anything lives, once the leader has exited.
func (t *tree) alive() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.empty {
		t.empty = !t.signalMembersLocked(0)
	}
	return !t.empty
}

// signalMembersLocked signals all but the leader and says whether there were any.
func (t *tree) signalMembersLocked(sig syscall.Signal) bool {
	members, known := t.membersLocked()
	if !known {
		return unix.Kill(-t.pgid, sig) == nil
	}
	for _, pid := range members {
		t.signalLocked(pid, sig)
	}
	return len(members) > 0
}

func (t *tree) signalLocked(pid int, sig syscall.Signal) {
	if err := unix.Kill(pid, sig); err != nil && err != unix.ESRCH {
		t.log.Debug("cannot signal process", "pid", pid, "signal", sig.String(), "err", err)
	}
}

func (t *tree) close() {}

// exitSignal returns the number and name of the signal that ended the process; 0 if
// none did.
func exitSignal(state *os.ProcessState) (int, string) {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return 0, ""
	}
	return int(status.Signal()), unix.SignalName(status.Signal())
}
