package e2e

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// withGrandchild wraps a server command in a shell that leaves a process behind.
func withGrandchild(command []string) []string {
	return append([]string{"sh", "-c", `sleep 1000 & exec "$@"`, "sh"}, command...)
}

// TestNothingStaysBehind ends signalbox in several ways while sessions have processes
// that have children of their own.
func TestNothingStaysBehind(t *testing.T) {
	box.NeedProc(t)
	servers := map[string][]string{
		"server-everything": withGrandchild(npmServer(t, "server-everything", "stdio")),
		"ignores SIGTERM":   withGrandchild(fakeServer(t, "-ignore-term", "-grandchild")),
	}
	for name, command := range servers {
		t.Run("SIGTERM, "+name, func(t *testing.T) {
			b := openTwoSessions(t, command)
			b.Terminate()
			if code := wait(t, b); code != 0 {
				t.Errorf("exit code %d, want 0 for a clean stop", code)
			}
			// Checked at once: what signalbox leaves at its exit stays.
			if left := b.Descendants(); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
		t.Run("SIGKILL, "+name, func(t *testing.T) {
			b := openTwoSessions(t, command)
			b.Kill()
			wait(t, b)
			b.EventuallyAlone(t)
		})
	}
}

// TestSessionEndTakesTheTree ends sessions, not signalbox.
func TestSessionEndTakesTheTree(t *testing.T) {
	box.NeedProc(t)
	b := box.Start(t, nil, withGrandchild(fakeServer(t, "-grandchild"))...)
	c := rawclient.New(b.URL)
	defer c.Close()
	open := map[string]func() (rawclient.Session, error){
		"streamable": func() (rawclient.Session, error) { return c.Streamable(t.Context(), rawclient.Options{}) },
		"legacy":     func() (rawclient.Session, error) { return c.Legacy(t.Context(), rawclient.Options{}) },
	}
	for name, open := range open {
		t.Run(name, func(t *testing.T) {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			if n := len(b.Descendants()); n < 3 {
				t.Fatalf("the session has %d processes, want the server and two more", n)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.EventuallyAlone(t)
			b.EventuallyMetric(t, box.MetricProcesses, 0)
			b.EventuallyMetric(t, box.MetricSessions, 0)
		})
	}
}

// openTwoSessions starts signalbox with a session of each transport, kept open, and
// checks that their processes can be seen.
func openTwoSessions(t *testing.T, command []string) *box.Box {
	t.Helper()
	b := box.Start(t, nil, command...)
	c := rawclient.New(b.URL)
	t.Cleanup(c.Reset)
	if _, err := c.Streamable(t.Context(), rawclient.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Legacy(t.Context(), rawclient.Options{}); err != nil {
		t.Fatal(err)
	}
	if n := len(b.Descendants()); n < 4 {
		t.Fatalf("two sessions have %d processes, want two servers and two more", n)
	}
	return b
}

func wait(t *testing.T, b *box.Box) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	code, err := b.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	started := filepath.Join(t.TempDir(), "started")
	_, stderr, code := box.Run(t, "serve", "--listen", l.Addr().String(), "--", "touch", started)
	if code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	if !strings.Contains(stderr, l.Addr().String()) {
		t.Errorf("the message does not name the address:\n%s", stderr)
	}
	if _, err := os.Stat(started); err == nil {
		t.Error("the server command was started")
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		name string
		args []string
		code int
		says string // on stderr
	}{
		{"mistyped flag", []string{"serve", "--lisen", "127.0.0.1:0", "--", "true"}, 2, "--listen"},
		{"mistyped command", []string{"serv", "--", "true"}, 2, "serve"},
		{"no server", []string{"serve"}, 2, ""},
		{"not a duration", []string{"serve", "--drain", "soon", "--", "true"}, 2, "drain"},
		{"not a size", []string{"serve", "--max-message", "big", "--", "true"}, 2, "max-message"},
		{"not an isolation", []string{"serve", "--isolation", "none", "--", "true"}, 2, "isolation"},
		{"beyond loopback without --insecure", []string{"serve", "--listen", "0.0.0.0:0", "--", "true"}, 2, "--insecure"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			stdout, stderr, code := box.Run(t, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if stderr == "" || !strings.Contains(stderr, test.says) {
				t.Errorf("stderr does not say %q:\n%s", test.says, stderr)
			}
			if stdout != "" {
				t.Errorf("stdout is for answers, not for errors:\n%s", stdout)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	stdout, _, code := box.Run(t, "version")
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	if !strings.Contains(stdout, "signalbox") || strings.Count(stdout, "\n") < 1 {
		t.Errorf("version prints %q", stdout)
	}
}
