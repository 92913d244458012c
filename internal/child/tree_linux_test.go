package child

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// living says whether a process exists and is no zombie.
func living(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	p, ok := parseStat(string(stat))
	return ok && p.state != 'Z' && p.state != 'X'
}

// pidIn reads a number from a line like "grandchild 123".
func pidIn(t testing.TB, line []byte) int {
	t.Helper()
	fields := strings.Fields(string(line))
	pid, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		t.Fatalf("no pid in %q", line)
	}
	return pid
}

func wantGone(t testing.TB, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return !living(pid) })
	}
}

// Each script prints the pid of something that the leader leaves behind.
func TestNothingStaysBehind(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"in the group":      `sleep 1000 & echo $!; exec cat`,
		"ignores SIGTERM":   `sh -c 'trap "" TERM; echo $$; while :; do sleep 1000; done' & exec cat`,
		"tree of shells":    `sh -c 'sh -c "echo \$\$; exec sleep 1000" & wait' & exec cat`,
		"orphan in group":   `sh -c 'sleep 1000 & echo $!'; exec cat`,
		"own session":       `setsid sh -c 'echo $$; exec sleep 1000' & exec cat`,
		"below own session": `setsid sh -c 'sleep 1000 & echo $!; wait' & exec cat`,
		"silent session":    `setsid sh -c 'echo $$; exec sleep 1000 <&- >/dev/null 2>&1' & exec cat`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSupervisor(t, Options{})
			for _, end := range []func(*Process){(*Process).Stop, (*Process).Kill} {
				p, r := start(t, s, shell(script))
				left := pidIn(t, r.awaitLine(t, 0))
				end(p)
				awaitDone(t, p)
				if living(left) || living(p.PID()) {
					t.Error("something is alive after Done")
				}
			}
		})
	}
}

func TestLeaderExitsByItself(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"holds stdout":    `sleep 1000 & echo $!; exit 5`,
		"holds nothing":   `sleep 1000 </dev/null >/dev/null 2>&1 & echo $!; exit 5`,
		"ignores SIGTERM": `sh -c 'trap "" TERM; echo $$; while :; do sleep 1000; done' & read line; exit 5`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSupervisor(t, Options{})
			p, r := start(t, s, shell(script))
			left := pidIn(t, r.awaitLine(t, 0))
			_, _ = p.Write([]byte("go"))
			if got := r.awaitExit(t); got != (ExitInfo{Code: 5}) {
				t.Errorf("%+v", got)
			}
			awaitDone(t, p)
			if living(left) {
				t.Error("it is alive after Done")
			}
		})
	}
}

// What left the session and lost its parent before anyone looked cannot be found; it
// must not keep Exit and Done waiting though it holds the pipes.
func TestStrangerHoldsStdout(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, shell(`setsid sh -c 'echo $$; exec sleep 1000' & read line; exit 5`))
	left := pidIn(t, r.awaitLine(t, 0))
	defer func() { _ = syscall.Kill(left, syscall.SIGKILL) }()
	began := time.Now()
	write(t, p, []byte("go"))
	if got := r.awaitExit(t); got != (ExitInfo{Code: 5}) {
		t.Errorf("%+v", got)
	}
	awaitDone(t, p)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestCensusRemembersSessions(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, shell(`setsid sh -c 'echo $$; exec sleep 1000 </dev/null >/dev/null 2>&1' & read line; exit 0`))
	left := pidIn(t, r.awaitLine(t, 0))
	p.tree.note() // as the census does every five seconds
	write(t, p, []byte("go"))
	awaitDone(t, p)
	if living(left) {
		t.Error("it is alive after Done")
	}
}

// A look at /proc that was begun before the last one must not make the family forget.
func TestStaleLook(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	before, began := []proc{}, time.Now()
	p, r := start(t, s, shell(`setsid sh -c 'echo $$; exec sleep 1000 </dev/null >/dev/null 2>&1' & exec cat`))
	left := pidIn(t, r.awaitLine(t, 0))
	p.tree.note()
	if groups := p.tree.observe(before, began); len(groups) != 2 {
		t.Errorf("groups %v", groups)
	}
	p.Stop()
	awaitDone(t, p)
	if living(left) {
		t.Error("it is alive after Done")
	}
}

func TestOrphansAreReaped(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	// The sleeps lose their parent at once and end before the server does.
	p, r := start(t, s, shell(`for i in 1 2 3; do sh -c 'sleep 0.05 & echo $!'; done; exec cat`))
	r.awaitLine(t, 2)
	for _, line := range r.lines {
		pid := pidIn(t, line)
		eventually(t, "the zombie is reaped", func() bool {
			_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
			return err != nil
		})
	}
	p.Stop()
	awaitDone(t, p)
}

// The reaper must leave alone what other code waits for.
func TestReaperRobsNobody(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	var others []*exec.Cmd
	for i := range 20 {
		cmd := exec.Command("true")
		if i%2 == 0 {
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // as another Supervisor would
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		others = append(others, cmd)
	}
	for range 5 {
		p, r := start(t, s, shell("exit 7"))
		if got := r.awaitExit(t); got.Code != 7 {
			t.Errorf("%+v", got)
		}
		awaitDone(t, p)
	}
	for _, cmd := range others {
		if err := cmd.Wait(); err != nil {
			t.Errorf("robbed: %v", err)
		}
	}
}

func TestNoTerminalAndNoDescriptors(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, shell(`cut -d' ' -f1,5,6,7 /proc/$$/stat; ls -l /proc/self/fd; echo end; exec cat`))
	want := fmt.Sprintf("%d %d %d 0", p.PID(), p.PID(), p.PID()) // pid, group, session, terminal
	if line := r.awaitLine(t, 0); string(line) != want {
		t.Errorf("%q, want %q", line, want)
	}
	r.until(t, "the list of descriptors", func() bool { return string(r.lines[len(r.lines)-1]) == "end" })
	ours := 0
	for _, line := range r.lines {
		for _, end := range openPipeEnds() {
			_, link, _ := strings.Cut(end, " ")
			if strings.HasPrefix(link, "pipe:") && bytes.HasSuffix(line, []byte(link)) && !inherited(link) {
				ours++
			}
		}
	}
	if ours != 3 { // the other ends of its own
		t.Errorf("%d pipes of ours: %s", ours, bytes.Join(r.lines, []byte("\n")))
	}
}

// inherited says whether a pipe of ours is one that this program was started with.
func inherited(link string) bool {
	for _, end := range pipesAtStart {
		if strings.HasSuffix(end, link) {
			return true
		}
	}
	return false
}

func TestParseStat(t *testing.T) {
	tail := " 0 0 0 0 0 0 0 0 0 0 0 0 0 20 0 987 5"
	got, ok := parseStat("42 (a) b (c) S 1 40 39 0" + tail)
	if want := (proc{pid: 42, ppid: 1, pgrp: 40, session: 39, state: 'S'}); !ok || got.pid != want.pid ||
		got.ppid != want.ppid || got.pgrp != want.pgrp || got.session != want.session || got.state != want.state {
		t.Errorf("%+v", got)
	}
	for _, bad := range []string{"", "42", "42 (x", "42 (x) S 1", "x (x) S 1 2 3 0" + tail, "(x) S" + tail} {
		if _, ok := parseStat(bad); ok {
			t.Errorf("%q was taken", bad)
		}
	}
	self, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		t.Fatal(err)
	}
	if p, ok := parseStat(string(self)); !ok || p.pid != os.Getpid() || p.ppid != os.Getppid() || p.start == "" {
		t.Errorf("%+v", p)
	}
}

// A session number that has lost its members may be a stranger's next.
func TestFamilyForgetsDeadSessions(t *testing.T) {
	f := family{leader: 100, own: 5, sessions: map[int]struct{}{100: {}}}
	table := func(session int) []proc {
		return []proc{
			{pid: 100, ppid: 5, pgrp: 100, session: 100, state: 'S'},
			{pid: 101, ppid: 100, pgrp: 101, session: session, state: 'S'},
			{pid: 102, ppid: 5, pgrp: 101, session: session, state: 'S'},
			{pid: 103, ppid: 1, pgrp: 103, session: 103, state: 'S'},
			{pid: 104, ppid: 101, pgrp: 104, session: session, state: 'Z'},
		}
	}
	if got := fmt.Sprint(f.look(table(101), false), f.groups); got != "[101 102] [100 101 104]" {
		t.Error(got)
	}
	if got := f.look(table(101)[2:], true); fmt.Sprint(got) != "[102]" {
		t.Errorf("by session: %v", got)
	}
	if got := f.look(nil, true); len(got) != 0 || len(f.groups) != 0 {
		t.Errorf("%v", got)
	}
	if got := f.look(table(101), true); len(got) != 0 {
		t.Errorf("a stranger was taken for one of the family: %v", got)
	}
}

func BenchmarkProcesses(b *testing.B) {
	for b.Loop() {
		if _, err := processes(); err != nil {
			b.Fatal(err)
		}
	}
}
