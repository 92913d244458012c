//go:build unix

package child

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestEcho(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, fake("echo"))
	const n = 10_000
	for i := range n {
		write(t, p, fmt.Appendf(nil, "message %d", i))
	}
	r.awaitLine(t, n-1)
	for i, line := range r.lines {
		if want := fmt.Sprintf("message %d", i); string(line) != want {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	p.Stop()
	if got := r.awaitExit(t); got != (ExitInfo{}) || got.String() != "exited (code 0)" {
		t.Errorf("%+v, %s", got, got)
	}
	awaitDone(t, p)
	if _, err := p.Write([]byte("x")); !errors.Is(err, ErrGone) {
		t.Errorf("Write after the end: %v", err)
	}
}

func TestTenThousandLines(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, fake("count", "10000"))
	r.awaitExit(t)
	awaitDone(t, p)
	if len(r.lines) != 10_000 || string(r.lines[9_999]) != "9999" {
		t.Fatalf("%d lines", len(r.lines))
	}
}

func TestBigLinesBothWays(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, fake("echo"))
	sizes := []int{1, largeLine - 1, largeLine, 64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 10 << 20}
	for _, size := range sizes {
		write(t, p, pattern(size))
		write(t, p, []byte("small"))
	}
	for i, size := range sizes {
		if line := r.awaitLine(t, 2*i); !bytes.Equal(line, pattern(size)) {
			t.Errorf("line of %d bytes came back with %d, or changed", size, len(line))
		}
		if line := r.awaitLine(t, 2*i+1); string(line) != "small" {
			t.Errorf("%.20q after it", line)
		}
	}
}

func TestOversize(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	spec := fake("sizes", "65536", "5242880", "65537", "10")
	spec.MaxLine = 64 << 10
	p, r := start(t, s, spec)
	write(t, p, []byte("still there"))
	if line := r.awaitLine(t, 2); string(line) != "still there" {
		t.Errorf("%.20q", line)
	}
	if len(r.over) != 2 {
		t.Fatalf("%d oversize lines", len(r.over))
	}
	for i, size := range []int{5242880, 65537} {
		want := pattern(size)
		got := r.over[i]
		if got.size != int64(size) || !bytes.Equal(got.head, want[:4096]) || !bytes.Equal(got.tail, want[size-4096:]) {
			t.Errorf("size %d, head %d, tail %d bytes", got.size, len(got.head), len(got.tail))
		}
	}
}

func TestLineEnds(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, fake("print", `\xEF\xBB\xBF{\"a\":1}\r\n`, `\r\n`, `\n   \n\t\r\n`, `two\r\r\n`,
		`x\u2028y\u2029z\u0085\n`, `\xff\xfe\n`, `unfinished \xE2\x82`))
	r.awaitLine(t, 3)
	want := []string{`{"a":1}`, "two\r", "x\u2028y\u2029z\u0085", "\xff\xfe"}
	for i, line := range r.lines {
		if string(line) != want[i] {
			t.Errorf("line %d is %q, want %q", i, line, want[i])
		}
	}
	eventually(t, "the unfinished line shows", func() bool { return p.Partial() == "unfinished \uFFFD" })
	p.Stop()
	r.awaitExit(t)
	if len(r.lines) != len(want) {
		t.Errorf("lines: %q", r.lines)
	}
}

func TestQuestionShowsInTail(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, _ := start(t, s, hasty(shell(`echo "Need to install" >&2; printf "Ok to proceed? (y) "; exec sleep 1000`)))
	want := "Need to install\nOk to proceed? (y) "
	eventually(t, "the question shows", func() bool { return p.Tail() == want })
}

func TestStderrFlood(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	s := newSupervisor(t, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	p, r := start(t, s, fake("flood"))
	if line := r.awaitLine(t, 0); string(line) != "ready" {
		t.Errorf("%q", line)
	}
	p.Stop()
	awaitDone(t, p)
	if n := len(log.String()); n > 100<<10 {
		t.Errorf("%d bytes of log", n)
	}
	wantContains(t, log.String(), "stderr lines suppressed")
	wantContains(t, log.String(), fmt.Sprintf("server=flood pid=%d", p.PID()))
	if tail := p.Tail(); len(tail) < ringBytes-100 || len(tail) > ringBytes || !strings.HasPrefix(tail, "noise noise noise\n") {
		t.Errorf("tail of %d bytes: %.40q", len(tail), tail)
	}
}

func TestTailIsCompleteAtExit(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	seen := make(chan string, 1)
	h := &tailAtExit{recorder: newRecorder(), process: make(chan *Process, 1), seen: seen}
	p, err := s.Start(shell("echo boom >&2; exit 3"), h)
	if err != nil {
		t.Fatal(err)
	}
	h.process <- p
	if tail := <-seen; tail != "boom\n" {
		t.Errorf("tail at exit: %q", tail)
	}
	awaitDone(t, p)
}

type tailAtExit struct {
	*recorder
	process chan *Process
	seen    chan string
}

func (h *tailAtExit) Exit(ExitInfo) { h.seen <- (<-h.process).Tail() }

func TestDeafProcess(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	spec := termOnly(fake("deaf"))
	spec.QueueBytes = 1 << 20
	p, r := start(t, s, spec)
	r.awaitLine(t, 0)
	var err error
	for range 10_000 {
		if _, err = p.Write(pattern(10_000)); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrBusy) {
		t.Fatalf("queue full: %v", err)
	}
	p.Stop()
	if got := r.awaitExit(t).String(); got != "killed by signal 15 (SIGTERM)" {
		t.Error(got)
	}
	awaitDone(t, p)
}

func TestKillDeafProcess(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, fake("deaf"))
	write(t, p, pattern(4<<20))
	p.Stop()
	p.Kill()
	if got := r.awaitExit(t).String(); got != "killed by signal 9 (SIGKILL)" {
		t.Error(got)
	}
	awaitDone(t, p)
}

func TestStopWritesWhatIsQueued(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, fake("echo"))
	for range 100 {
		write(t, p, pattern(100_000))
	}
	p.Stop()
	r.awaitExit(t)
	if len(r.lines) != 100 {
		t.Errorf("%d of 100 lines came back", len(r.lines))
	}
}

func TestWithdraw(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, shell(`read go <&0; exec cat`)) // reads a byte at a time until the first LF
	other, _ := start(t, s, fake("echo"))
	// Larger than the pipe, so that the writer is stuck in it until the shell has become cat.
	big := write(t, p, append([]byte("go\n"), pattern(3<<20)...))
	eventually(t, "the writer takes the first line", func() bool { return !p.queue.waiting(big) })
	keep := write(t, p, []byte("keep"))
	drop := write(t, p, []byte("drop"))
	last := write(t, p, []byte("last"))
	dropped := p.Withdraw(drop)
	if p.Withdraw(drop) || p.Withdraw(big) || p.Withdraw(nil) || other.Withdraw(keep) {
		t.Error("withdrew what was not there")
	}
	r.until(t, "the last line", func() bool {
		return len(r.lines) > 0 && string(r.lines[len(r.lines)-1]) == "last"
	})
	if p.Withdraw(last) || p.Withdraw(keep) {
		t.Error("withdrew what was written")
	}
	for _, line := range r.lines {
		if dropped && string(line) == "drop" {
			t.Error("a withdrawn line was written")
		}
	}
}

func (q *queue) waiting(t *Ticket) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return t.state == ticketWaiting
}

func TestBrokenStdin(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, termOnly(fake("closestdin")))
	r.awaitLine(t, 0)
	write(t, p, []byte("anyone?"))
	got := r.awaitExit(t)
	if got.Err == nil || got.Signal != "SIGTERM" {
		t.Errorf("%+v", got)
	}
	wantContains(t, got.String(), "killed by signal 15 (SIGTERM): write to its input: ")
	awaitDone(t, p)
}

func TestPathOfEnv(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$0 $1 $(pwd)\"\n/usr/bin/env\n"
	if err := os.WriteFile(dir+"/only-here", []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	spec := Spec{Name: "path", Args: []string{"only-here", "a b"}, Dir: "/", Env: []string{"PATH=relative:" + dir, "X=1"}}
	p, r := start(t, s, spec)
	r.awaitExit(t)
	awaitDone(t, p)
	if want := dir + "/only-here a b /"; string(r.lines[0]) != want {
		t.Errorf("%q, want %q", r.lines[0], want)
	}
	env := map[string]bool{}
	for _, line := range r.lines[1:] {
		name, _, _ := strings.Cut(string(line), "=")
		env[name] = true
	}
	delete(env, "PWD") // the shell's own
	delete(env, "OLDPWD")
	delete(env, "_")
	delete(env, "SHLVL")
	if !reflect.DeepEqual(env, map[string]bool{"PATH": true, "X": true}) {
		t.Errorf("environment: %v", env)
	}
}
