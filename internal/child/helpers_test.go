package child

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is for what must happen; nothing waits for it to pass.
const patience = 30 * time.Second

// recorder is a Handler that keeps everything.
type recorder struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at each event
	lines   [][]byte
	over    []oversized
	exits   []ExitInfo
}

type oversized struct {
	head, tail []byte
	size       int64
}

func newRecorder() *recorder { return &recorder{changed: make(chan struct{})} }

func (r *recorder) event(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) Line(line []byte) { r.event(func() { r.lines = append(r.lines, line) }) }

func (r *recorder) Oversize(head, tail []byte, size int64) {
	r.event(func() { r.over = append(r.over, oversized{head, tail, size}) })
}

func (r *recorder) Exit(info ExitInfo) { r.event(func() { r.exits = append(r.exits, info) }) }

// until waits until cond holds, which is called under the lock.
func (r *recorder) until(t testing.TB, what string, cond func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		r.mu.Lock()
		ok, changed := cond(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (r *recorder) awaitLine(t testing.TB, i int) []byte {
	t.Helper()
	var line []byte
	r.until(t, "a line", func() bool {
		if len(r.lines) <= i {
			return false
		}
		line = r.lines[i]
		return true
	})
	return line
}

func (r *recorder) awaitExit(t testing.TB) ExitInfo {
	t.Helper()
	var info ExitInfo
	r.until(t, "the exit", func() bool {
		if len(r.exits) == 0 {
			return false
		}
		info = r.exits[0]
		return true
	})
	return info
}

// syncBuffer collects a log.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newSupervisor(t testing.TB, o Options) *Supervisor {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	s, err := NewSupervisor(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := s.Running(); n != 0 {
			t.Errorf("%d slots taken after Close", n)
		}
	})
	return s
}

// fake is the spec of a fake server.
func fake(mode string, args ...string) Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return patient(Spec{
		Name: mode,
		Args: append([]string{self}, args...),
		Env: BaseEnv(os.Environ(), nil, map[string]string{
			fakeMode: mode,
			"GORACE": "atexit_sleep_ms=0", // or each would take a second to end
		}),
	})
}

// shell is the spec of a shell script.
func shell(script string) Spec {
	return patient(Spec{Name: "shell", Args: []string{"sh", "-c", script}, Env: BaseEnv(os.Environ(), nil, nil)})
}

// patient gives all the time that a loaded machine may need to obey the end of stdin.
func patient(s Spec) Spec {
	s.StopGrace, s.TermGrace = patience, patience
	return s
}

// hasty is for processes that do not obey.
func hasty(s Spec) Spec {
	s.StopGrace, s.TermGrace = 50*time.Millisecond, 50*time.Millisecond
	return s
}

// termOnly is for processes that obey SIGTERM alone.
func termOnly(s Spec) Spec {
	s.StopGrace, s.TermGrace = 50*time.Millisecond, patience
	return s
}

func start(t testing.TB, s *Supervisor, spec Spec) (*Process, *recorder) {
	t.Helper()
	r := newRecorder()
	p, err := s.Start(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	return p, r
}

func awaitDone(t testing.TB, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(patience):
		t.Fatal("process is not done")
	}
}

// eventually polls for what sends no event, like the process table.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !cond(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func write(t testing.TB, p *Process, line []byte) *Ticket {
	t.Helper()
	ticket, err := p.Write(line)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func wantContains(t testing.TB, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not contain %q", text, part)
	}
}
