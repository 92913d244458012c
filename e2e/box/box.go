package box

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Patience bounds every wait for an event. Where it runs out, the event never came.
const Patience = 2 * time.Minute

// Box is a running signalbox.
type Box struct {
	URL  string // without the path: http://127.0.0.1:PORT, or https
	Tag  string // in the environment of every process below it
	PID  int
	Args []string

	t       testing.TB
	cmd     *exec.Cmd
	exited  chan struct{} // closed after exit is set
	exit    error
	drained chan struct{} // closed at the end of stderr

	adminURL string

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever a line arrives
	log     []string      // the lines of stderr
	eof     bool
}

// Start runs `signalbox serve --listen 127.0.0.1:0 FLAGS -- COMMAND` with an admin
// listener and waits until it listens. The test's end stops it.
func Start(t testing.TB, flags []string, command ...string) *Box {
	t.Helper()
	tag := newTag()
	args := append(slices.Clone(serveFlags), "--env", TagName+"="+tag)
	args = append(append(append(args, flags...), "--"), command...)
	return start(t, tag, args)
}

// StartURL is Start for a server that is a URL.
func StartURL(t testing.TB, url string, flags ...string) *Box {
	t.Helper()
	return start(t, newTag(), append(append(slices.Clone(serveFlags), flags...), url))
}

// StartConfig is Start for the servers of a configuration file with this text. The
// commands in it inherit no tag.
func StartConfig(t testing.TB, text string, flags ...string) *Box {
	t.Helper()
	path := filepath.Join(t.TempDir(), "servers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, newTag(), append(append(slices.Clone(serveFlags), flags...), "--config", path))
}

var serveFlags = []string{"serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-level", "debug"}

func start(t testing.TB, tag string, args []string) *Box {
	t.Helper()
	b := run(t, tag, args)
	b.URL = b.announced(clientURL)
	b.adminURL = b.announced(adminURL)
	return b
}

// The start-up lines have the URLs to use, admin ones with the path /metrics.
var (
	clientURL = regexp.MustCompile(`(https?://127\.0\.0\.1:\d+)(?:/servers/[^/]+)?/mcp`)
	adminURL  = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/metrics`)
)

func run(t testing.TB, tag string, args []string) *Box {
	t.Helper()
	path, err := Signalbox()
	if err != nil {
		t.Fatal(err)
	}
	b := &Box{
		Tag: tag, Args: args, t: t, cmd: exec.Command(path, args...),
		exited: make(chan struct{}), drained: make(chan struct{}), changed: make(chan struct{}),
	}
	stderr, err := b.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.PID = b.cmd.Process.Pid
	go b.read(stderr)
	go b.wait()
	t.Cleanup(b.cleanup)
	return b
}

// read keeps the lines of stderr.
func (b *Box) read(stderr io.Reader) {
	defer close(b.drained)
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		b.mu.Lock()
		if line != "" {
			b.log = append(b.log, strings.TrimRight(line, "\r\n"))
		}
		b.eof = err != nil
		close(b.changed)
		b.changed = make(chan struct{})
		b.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait collects the process. A descendant that holds stderr open cannot delay it.
func (b *Box) wait() {
	state, err := b.cmd.Process.Wait()
	if err == nil && !state.Success() {
		err = &exec.ExitError{ProcessState: state}
	}
	b.exit = err
	close(b.exited)
}

// cleanup stops the process and shows its log where the test failed.
func (b *Box) cleanup() {
	select {
	case <-b.exited:
	default:
		b.Terminate()
		ctx, cancel := context.WithTimeout(context.Background(), Patience)
		defer cancel()
		if _, err := b.Wait(ctx); err != nil {
			b.t.Errorf("signalbox does not stop: %v", err)
			b.Kill()
			<-b.exited
		}
	}
	select {
	case <-b.drained:
	case <-time.After(5 * time.Second):
		b.t.Error("signalbox has ended, but something holds its stderr open")
	}
	for _, line := range b.Log() {
		if strings.Contains(line, "WARNING: DATA RACE") || strings.Contains(line, "panic serving") || strings.Contains(line, "handler panicked") || strings.HasPrefix(line, "panic: ") {
			b.t.Errorf("signalbox says: %s", line)
		}
	}
	if b.t.Failed() {
		b.t.Logf("signalbox %s\n%s", strings.Join(b.Args, " "), tail(b.Log(), 200))
	}
}

func tail(lines []string, n int) string {
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// Run runs signalbox with any arguments to its end.
func Run(t testing.TB, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	path, err := Signalbox()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	var out, errs strings.Builder
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &errs, time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("signalbox %s: %v, %v\n%s", strings.Join(args, " "), err, ctx.Err(), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// Terminate sends SIGTERM, or what the system has for it.
func (b *Box) Terminate() {
	if err := terminate(b.cmd.Process); err != nil {
		b.t.Logf("terminate: %v", err)
	}
}

// Kill ends the process without notice.
func (b *Box) Kill() {
	if err := b.cmd.Process.Kill(); err != nil {
		b.t.Logf("kill: %v", err)
	}
}

// Wait returns the exit code once the process has ended, -1 for a signal.
func (b *Box) Wait(ctx context.Context) (code int, err error) {
	select {
	case <-b.exited:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	var exit *exec.ExitError
	if errors.As(b.exit, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, b.exit
}

// Log has the lines of stderr so far.
func (b *Box) Log() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log[:len(b.log):len(b.log)]
}

// AwaitLog returns the first match of a pattern in stderr, now or later.
func (b *Box) AwaitLog(pattern *regexp.Regexp) ([]string, error) {
	timeout := time.After(Patience)
	for seen := 0; ; {
		b.mu.Lock()
		lines, eof, changed := b.log[seen:], b.eof, b.changed
		b.mu.Unlock()
		for _, line := range lines {
			if match := pattern.FindStringSubmatch(line); match != nil {
				return match, nil
			}
		}
		seen += len(lines)
		if eof {
			return nil, errors.New("stderr ended without a line that matches " + pattern.String())
		}
		select {
		case <-changed:
		case <-timeout:
			return nil, errors.New("no line of stderr matches " + pattern.String())
		}
	}
}

func (b *Box) announced(pattern *regexp.Regexp) string {
	b.t.Helper()
	match, err := b.AwaitLog(pattern)
	if err != nil {
		b.t.Fatal(err)
	}
	return match[1]
}
