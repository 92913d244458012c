package child

import (
	"errors"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childAttr gives the child its own session, and with it its own group and no
// terminal, and has the kernel kill it when the thread that forks it ends.
func childAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until the process can be reaped, and leaves it a zombie. By a
// pidfd (Linux 5.3) it waits as for a socket; waitid would hold a thread for the
// whole life of each process.
func awaitExit(pid int) bool {
	if fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK); err == nil {
		f := os.NewFile(uintptr(fd), "pidfd")
		err := awaitReadable(f)
		f.Close()
		if err == nil {
			return true
		}
	}
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// awaitReadable waits until f has something to read, which it leaves there.
func awaitReadable(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n > 0
	})
}

// family recognises the descendants of a leader: by their chain of parents while
// that holds, and by their session, which they keep when they lose their parent. No
// process can join a session from outside, so a session once seen to be of the
// family stays so for as long as it has members.
type family struct {
	leader   int
	own      int              // our session, which none of them can have
	sessions map[int]struct{} // those of the family that had members at the last look
	groups   []int            // their process groups, at the last look
	looked   time.Time        // end of the last look
}

func newFamily(leader int) family {
	own, err := unix.Getsid(0)
	if err != nil {
		own = 0
	}
	return family{
		leader:   leader,
		own:      own,
		sessions: map[int]struct{}{leader: {}},
		groups:   []int{leader},
	}
}

// look finds the family among procs and returns who is alive but the leader.
func (f *family) look(procs []proc, leaderReaped bool) []int {
	member := make(map[int]bool)
	if !leaderReaped {
		member[f.leader] = true
	}
	for changed := true; changed; {
		changed = false
		for _, p := range procs {
			if member[p.pid] {
				continue
			}
			if _, known := f.sessions[p.session]; !known && !member[p.ppid] {
				continue
			}
			member[p.pid], changed = true, true
			if p.session > 1 && p.session != f.own {
				f.sessions[p.session] = struct{}{}
			}
		}
	}
	return f.remember(procs, member)
}

// remember keeps the sessions and groups that have members: the numbers of the others
// may be given to strangers.
func (f *family) remember(procs []proc, member map[int]bool) []int {
	var living []int
	sessions := map[int]struct{}{}
	groups := map[int]struct{}{}
	if member[f.leader] {
		sessions[f.leader] = struct{}{}
		groups[f.leader] = struct{}{}
	}
	for _, p := range procs {
		if !member[p.pid] {
			continue
		}
		if _, ok := f.sessions[p.session]; ok {
			sessions[p.session] = struct{}{}
			groups[p.pgrp] = struct{}{}
		}
		if p.pid != f.leader && p.state != 'Z' && p.state != 'X' {
			living = append(living, p.pid)
		}
	}
	f.sessions = sessions
	f.groups = slices.Sorted(maps.Keys(groups))
	return living
}

// membersLocked returns the living members but for the leader; known is false where
// /proc cannot be read.
func (t *tree) membersLocked() (pids []int, known bool) {
	procs, err := processes()
	if err != nil {
		return nil, false
	}
	t.family.looked = time.Now()
	return t.family.look(procs, t.reaped), true
}

// observe is note with a look at /proc that is shared; it returns the groups seen. A
// look that began before the last one ended may not show what that one did, and would
// make the family forget it.
func (t *tree) observe(procs []proc, began time.Time) []int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.empty {
		return nil
	}
	if began.After(t.family.looked) {
		t.family.looked = time.Now()
		t.family.look(procs, t.reaped)
	}
	return t.family.groups
}
