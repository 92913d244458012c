package child

import (
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// reapDelay gathers the exits of a moment into one look at /proc.
	reapDelay = 100 * time.Millisecond
	// censusEvery is how often descendants are looked up while all is well, to know
	// them when they lose their parents.
	censusEvery = 5 * time.Second
	// strangerAge is for how long a zombie that might be someone else's child is left
	// to be waited for.
	strangerAge = 3 * time.Second
)

// reaper is what the reap goroutine remembers.
type reaper struct {
	suspects map[proc]time.Time // zombies that might be someone else's → since when
}

func (r *reaper) prepare() error {
	return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
}

// reap is the goroutine that reaps the orphans that fall to this process and keeps an
// eye on the descendants of each child.
func (s *Supervisor) reap() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	census := time.NewTicker(censusEvery)
	defer census.Stop()
	var due <-chan time.Time
	for {
		select {
		case <-s.quit:
			s.look()
			return
		case <-signals:
			if due == nil {
				due = time.After(reapDelay)
			}
		case <-due:
			due = nil
			s.look()
		case <-census.C:
			if s.Running() > 0 || len(s.reaper.suspects) > 0 {
				s.look()
			}
		}
	}
}

func (s *Supervisor) look() {
	began := time.Now()
	procs, err := processes()
	if err != nil {
		return
	}
	for _, p := range s.list() {
		s.watch.update(p, p.tree.observe(procs, began))
	}
	s.reapOrphans(procs)
}

// reapOrphans waits for zombies that fell to this process. It must not take one that
// something in this program waits for. A child of ours starts in a new session, so no
// orphan of it has our session, while what other code starts usually has. And what
// leads its own session may have been started by another Supervisor: that is left
// alone for a while.
func (s *Supervisor) reapOrphans(procs []proc) {
	self := os.Getpid()
	own, err := unix.Getsid(0)
	if err != nil {
		return
	}
	suspects := make(map[proc]time.Time)
	for _, p := range procs {
		if p.state != 'Z' || p.ppid != self || p.session <= 0 || p.session == own {
			continue
		}
		if p.pid == p.session {
			since, seen := s.reaper.suspects[p]
			if !seen {
				since = time.Now()
			}
			if time.Since(since) < strangerAge {
				suspects[p] = since
				continue
			}
		}
		s.reapOrphan(p.pid)
	}
	s.reaper.suspects = suspects
}

func (s *Supervisor) reapOrphan(pid int) {
	s.forkMu.Lock()
	defer s.forkMu.Unlock()
	if s.tracked[pid] > 0 {
		return
	}
	if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err == nil && got == pid {
		s.log.Debug("orphan reaped", "pid", pid)
	}
}
