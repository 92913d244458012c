package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// Replica is a signalbox process that can be started again at the same addresses.
type Replica struct {
	Addr string // for clients
	URL  string

	t     testing.TB
	admin string
	args  []string
	cmd   *exec.Cmd
	ended chan struct{} // closed after code is set
	code  int
	log   *lines // of all starts
}

// newReplica makes a replica that does not run yet.
func newReplica(t testing.TB, args ...string) *Replica {
	t.Helper()
	r := &Replica{Addr: freeAddr(t), admin: freeAddr(t), t: t, log: new(lines)}
	r.URL = "http://" + r.Addr
	r.args = append([]string{"serve", "--listen", r.Addr, "--admin-listen", r.admin, "--log-level", "debug", "--log-format", "text"}, args...)
	t.Cleanup(r.cleanup)
	return r
}

// StartReplica runs signalbox serve with these arguments until the test ends. It does
// not wait for anything.
func StartReplica(t testing.TB, args ...string) *Replica {
	t.Helper()
	r := newReplica(t, args...)
	r.Start()
	return r
}

// Start runs the replica, and returns before it serves.
func (r *Replica) Start() {
	r.t.Helper()
	path, err := box.Signalbox()
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.Command(path, r.args...)
	cmd.Stderr, cmd.WaitDelay = r.log, time.Second
	diesWithTest(cmd)
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan struct{})
	r.cmd, r.ended = cmd, ended
	go func() {
		err := cmd.Wait()
		r.code = cmd.ProcessState.ExitCode()
		if err != nil && r.code == 0 && !errors.Is(err, exec.ErrWaitDelay) {
			r.code = -1
		}
		close(ended)
	}()
}

// AwaitReady waits for /readyz to say yes.
func (r *Replica) AwaitReady() {
	r.t.Helper()
	Await(r.t, patience, "replica "+r.Addr+" is ready", func() string {
		if status, body := r.Ready(); status != http.StatusOK {
			return fmt.Sprintf("%d %s", status, body)
		}
		return ""
	})
}

// Ready asks /readyz; status 0 where nobody answers.
func (r *Replica) Ready() (status int, body string) { return Get(r.URL + "/readyz") }

var probe = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Get reads a URL once, and returns its status and body; status 0: it was not reached.
func Get(url string) (int, string) {
	resp, err := probe.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(b)
}

// Kill ends the process without notice, and waits until it is gone.
func (r *Replica) Kill() {
	r.t.Helper()
	r.Signal(syscall.SIGKILL)
	<-r.ended
}

// Signal sends a signal, such as SIGTERM, SIGSTOP and SIGCONT.
func (r *Replica) Signal(sig os.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatalf("replica %s: %v: %v", r.Addr, sig, err)
	}
}

// Wait returns the exit code once the process has ended.
func (r *Replica) Wait(limit time.Duration) int {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	select {
	case <-r.ended:
		return r.code
	case <-ctx.Done():
		r.t.Fatalf("replica %s has not ended after %v", r.Addr, limit)
		return 0
	}
}

// Metric sums the samples of a name that have a label, written as label="value"; "" sums all.
func (r *Replica) Metric(name, label string) (sum float64) {
	r.t.Helper()
	status, body := Get("http://" + r.admin + "/metrics")
	if status != http.StatusOK {
		r.t.Fatalf("metrics of %s: %d %s", r.Addr, status, body)
	}
	for line := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), name)
		if !ok || rest[0] != ' ' && rest[0] != '{' || !strings.Contains(rest, label) {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			r.t.Fatal(err)
		}
		sum += value
	}
	return sum
}

// AdminURL is the URL of the admin listener, without a path.
func (r *Replica) AdminURL() string { return "http://" + r.admin }

// AwaitMetric waits until such a sum has a value.
func (r *Replica) AwaitMetric(name, label string, want float64) {
	r.t.Helper()
	Await(r.t, patience, fmt.Sprintf("%s{%s} of %s is %v", name, label, r.Addr, want), func() string {
		if got := r.Metric(name, label); got != want {
			return fmt.Sprint(got)
		}
		return ""
	})
}

// Says tells whether a line of the log matches, of any start.
func (r *Replica) Says(pattern string) bool {
	return regexp.MustCompile(pattern).MatchString(r.log.text())
}

// AwaitLog waits for such a line.
func (r *Replica) AwaitLog(pattern string) {
	r.t.Helper()
	Await(r.t, patience, fmt.Sprintf("the log of %s has %q", r.Addr, pattern), func() string {
		if !r.Says(pattern) {
			return "not there"
		}
		return ""
	})
}

func (r *Replica) cleanup() {
	if r.cmd != nil {
		_ = r.cmd.Process.Signal(syscall.SIGCONT)
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.ended:
		case <-time.After(patience):
			r.t.Errorf("replica %s does not stop", r.Addr)
			_ = r.cmd.Process.Kill()
			<-r.ended
		}
	}
	text := r.log.text()
	for line := range strings.Lines(text) {
		if strings.Contains(line, "WARNING: DATA RACE") || strings.Contains(line, "panic serving") || strings.Contains(line, "handler panicked") || strings.HasPrefix(line, "panic: ") {
			r.t.Errorf("replica %s says: %s", r.Addr, line)
		}
	}
	if r.t.Failed() {
		r.t.Logf("replica %s\n%s", r.Addr, lastLines(text, 60))
	}
}

// dialable is the empty string once somebody listens at addr.
func dialable(addr string) string {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err.Error()
	}
	c.Close()
	return ""
}

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
