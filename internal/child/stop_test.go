//go:build unix

package child

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"testing"
)

func TestExits(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	for script, want := range map[string]ExitInfo{
		"exit 0":               {},
		"exit 3":               {Code: 3},
		"kill -KILL $$":        {Code: 137, Signal: "SIGKILL"},
		"kill -TERM $$":        {Code: 143, Signal: "SIGTERM"},
		"echo x; exec sleep 0": {},
	} {
		p, r := start(t, s, shell(script))
		if got := r.awaitExit(t); got != want {
			t.Errorf("%s: %+v", script, got)
		}
		awaitDone(t, p)
		if len(r.exits) != 1 {
			t.Errorf("%s: %d exits", script, len(r.exits))
		}
	}
}

func TestExitInfoString(t *testing.T) {
	for want, info := range map[string]ExitInfo{
		"exited (code 3)":              {Code: 3},
		"killed by signal 9 (SIGKILL)": {Code: 137, Signal: "SIGKILL"},
		"closed its output":            {StdoutClosed: true},
		"exited (code 1): because":     {Code: 1, Err: errors.New("because")},
	} {
		if got := info.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestStubbornProcess(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, hasty(fake("stubborn")))
	r.awaitLine(t, 0)
	p.Stop()
	p.Stop()
	if got := r.awaitExit(t).String(); got != "killed by signal 9 (SIGKILL)" {
		t.Error(got)
	}
	awaitDone(t, p)
}

func TestStdoutClosedWhileAlive(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	p, r := start(t, s, fake("mute"))
	if got := r.awaitExit(t); got.String() != "closed its output" {
		t.Error(got)
	}
	if _, err := p.Write([]byte("x")); !errors.Is(err, ErrGone) {
		t.Errorf("Write after Exit: %v", err)
	}
	p.Kill()
	awaitDone(t, p)
	if len(r.exits) != 1 {
		t.Errorf("exits: %v", r.exits)
	}
}

func TestStartErrors(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	dir := t.TempDir()
	for name, text := range map[string]string{"noint": "#!/no/such/interpreter\n", "noexec": "x"} {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir+"/noexec", 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spec Spec
		is   error
		want string
	}{
		{Spec{Args: []string{"npx"}, Env: []string{"PATH=/usr/nowhere"}}, exec.ErrNotFound,
			`server "s": start "npx": executable not found in PATH=/usr/nowhere`},
		{Spec{Args: []string{"noexec"}, Env: []string{"PATH=" + dir}}, exec.ErrNotFound,
			`server "s": start "noexec": executable not found in PATH=` + dir},
		{Spec{Args: []string{"npx"}}, exec.ErrNotFound,
			`server "s": start "npx": executable not found in PATH=`},
		{Spec{Args: []string{"/no/such"}}, fs.ErrNotExist,
			`server "s": start "/no/such": no such file or directory`},
		{Spec{Args: []string{dir + "/noexec"}}, fs.ErrPermission,
			`server "s": start "` + dir + `/noexec": permission denied`},
		{Spec{Args: []string{dir + "/noint"}}, fs.ErrNotExist,
			`server "s": start "` + dir + `/noint": the interpreter it names (first line, or loader) does not exist: no such file or directory`},
		{Spec{Args: []string{"/bin/sh"}, Dir: "/no/dir"}, fs.ErrNotExist,
			`server "s": start "/bin/sh": chdir /no/dir: no such file or directory`},
		{Spec{}, nil, `server "s": start "": no command given`},
	} {
		c.spec.Name = "s"
		_, err := s.Start(c.spec, newRecorder())
		var start *StartError
		if !errors.As(err, &start) || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%v: %v\n want %s", c.spec.Args, err, c.want)
		}
	}
	if s.Running() != 0 {
		t.Error("a failed start keeps its slot")
	}
}

func TestLimitCountsStopping(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{MaxProcesses: 2})
	p, _ := start(t, s, fake("stubborn"))
	start(t, s, fake("echo"))
	p.Stop()
	if _, err := s.Start(fake("echo"), newRecorder()); !errors.Is(err, ErrTooMany) {
		t.Errorf("third start: %v", err)
	}
	if n := s.Running(); n != 2 {
		t.Errorf("%d running", n)
	}
	p.Kill()
	awaitDone(t, p)
	start(t, s, fake("echo"))
}

func TestCloseWithManyChildren(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	var all []*Process
	for i := range 40 {
		script := "exec cat"
		if i%4 == 0 {
			script = "sleep 1000 & exec cat"
		}
		p, _ := start(t, s, shell(script))
		all = append(all, p)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	for _, p := range all {
		awaitDone(t, p)
	}
	var start *StartError
	if _, err := s.Start(shell("true"), newRecorder()); !errors.As(err, &start) || !errors.Is(err, errClosed) {
		t.Errorf("start after Close: %v", err)
	}
}

func TestCloseKillsAtTheDeadline(t *testing.T) {
	t.Parallel()
	s, err := NewSupervisor(Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	p, r := start(t, s, fake("stubborn"))
	r.awaitLine(t, 0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	awaitDone(t, p)
	if got := r.awaitExit(t); got.Signal != "SIGKILL" {
		t.Errorf("%+v", got)
	}
	if err := s.Close(context.Background()); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestStopOnAnyGoroutine(t *testing.T) {
	t.Parallel()
	s := newSupervisor(t, Options{})
	for range 20 {
		p, _ := start(t, s, shell("exec cat"))
		for range 4 {
			go p.Stop()
			go p.Kill()
			go func() { _, _ = p.Write([]byte("x")) }()
		}
		awaitDone(t, p)
	}
}
