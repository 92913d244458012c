package child

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestWatchedGroups(t *testing.T) {
	in := "+12\n+13\n-12\n\n+x\n+1\n+0\n+-5\nnonsense\n+14\n+15\n-15\n+16"
	got := slices.Sorted(maps.Keys(watchedGroups(strings.NewReader(in))))
	if !slices.Equal(got, []int{13, 14}) {
		t.Error(got)
	}
}

// startProxy starts a "proxy" fake and collects the pids that it and its servers print,
// three for each server.
func startProxy(t *testing.T, n int, script string) (p *Process, r *recorder, pids []int) {
	t.Helper()
	s := newSupervisor(t, Options{})
	p, r = start(t, s, fake("proxy", fmt.Sprint(n), "unset "+fakeMode+"; "+script))
	lines := 0
	r.until(t, "the proxy's servers", func() bool {
		lines = 0
		for _, line := range r.lines {
			if bytes.HasPrefix(line, []byte("pid ")) || bytes.HasPrefix(line, []byte("started ")) {
				lines++
			}
		}
		return lines == 3*n
	})
	for _, line := range r.lines[:3*n] {
		pids = append(pids, pidIn(t, line))
	}
	return p, r, pids
}

// stubbornServer prints the pids of two grandchildren, of which one ignores what it can
// and holds no pipe; the proxy prints that of the server.
const stubbornServer = `sh -c 'trap "" TERM HUP INT; echo pid $$; exec >/dev/null 2>&1 </dev/null; while :; do sleep 1000; done' &
sleep 1000 & echo pid $!; trap "" TERM HUP; while :; do sleep 1000; done`

// Without a Supervisor above the one that is killed, so that only the watchdog and the
// parent-death signal can have done it.
func TestParentIsKilled(t *testing.T) {
	t.Parallel()
	spec := fake("proxy", "5", "unset "+fakeMode+"; "+stubbornServer)
	cmd := exec.Command(spec.Args[0], spec.Args[1:]...)
	cmd.Env = spec.Env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var out syncBuffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	complete := func() []string { return strings.Split(strings.TrimSpace(out.String()), "\n") }
	eventually(t, "the proxy's servers", func() bool { return len(complete()) == 15 && strings.HasSuffix(out.String(), "\n") })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, line := range complete() {
		wantGone(t, pidIn(t, []byte(line)))
	}
}

func TestInterruptOfTheGroup(t *testing.T) {
	t.Parallel()
	p, r, pids := startProxy(t, 2, `sleep 1000 & echo pid $!; sleep 1000 & echo pid $!; exec cat`)
	if err := syscall.Kill(-p.PID(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	// A hit would also show below: as a signal in the exits.
	for _, pid := range pids {
		if !living(pid) {
			t.Errorf("process %d was hit", pid)
		}
	}
	p.Stop()
	if got := r.awaitExit(t); got != (ExitInfo{}) {
		t.Errorf("%+v", got)
	}
	exits := 0
	for _, line := range r.lines {
		if bytes.HasPrefix(line, []byte("exit ")) {
			exits++
			if string(line) != "exit exited (code 0)" {
				t.Errorf("%s", line)
			}
		}
	}
	if exits != 2 {
		t.Errorf("%d exits", exits)
	}
	awaitDone(t, p)
	wantGone(t, pids...)
}

func TestWatchdogIsStartedAgainOnce(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	s := newSupervisor(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), MaxProcesses: 2})
	p, _ := start(t, s, shell("exec cat"))
	first := watchdogPID(t, s, p.PID(), 0)
	if s.Running() != 1 {
		t.Errorf("the watchdog counts as a child: %d", s.Running())
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := watchdogPID(t, s, p.PID(), first)
	if log.String() != "" {
		t.Errorf("log: %s", log.String())
	}
	if err := syscall.Kill(second, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a warning", func() bool { return strings.Contains(log.String(), "no watchdog") })
	start(t, s, shell("exec cat"))
	if n := strings.Count(log.String(), "no watchdog"); n != 1 {
		t.Errorf("%d warnings", n)
	}
}

// watchdogPID finds the watchdog of a Supervisor: the tracked process that is not the
// child and not the watchdog that was.
func watchdogPID(t *testing.T, s *Supervisor, child, old int) (found int) {
	t.Helper()
	eventually(t, "the watchdog", func() bool {
		s.forkMu.Lock()
		defer s.forkMu.Unlock()
		for pid := range s.tracked {
			if pid != child && pid != old {
				found = pid
			}
		}
		return found != 0 && isWatchdog(found)
	})
	return found
}

func isWatchdog(pid int) bool {
	args, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return bytes.HasSuffix(args, []byte("\x00"+watchdogArg+"\x00")) && len(env) == 0
}

func TestWatchdogIgnoresSignals(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, _ := start(t, s, shell("exec cat"))
	pid := watchdogPID(t, s, p.PID(), 0)
	eventually(t, "it ignores INT, TERM and HUP", func() bool {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		return ignores(string(status), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	})
}

func ignores(status string, signals ...syscall.Signal) bool {
	_, rest, ok := strings.Cut(status, "SigIgn:\t")
	if !ok {
		return false
	}
	var mask uint64
	if _, err := fmt.Sscanf(rest, "%x", &mask); err != nil {
		return false
	}
	for _, sig := range signals {
		if mask&(1<<(sig-1)) == 0 {
			return false
		}
	}
	return true
}
