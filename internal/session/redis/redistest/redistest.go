//go:build unix

// Package redistest runs a real redis-server for tests: on a free port of
// 127.0.0.1, in a directory of its own, and ended with the test.
package redistest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// startIn bounds how long a server may take to answer.
const startIn = 20 * time.Second

// Server is a redis-server. Its methods end the test where they fail.
type Server struct {
	// Addr is HOST:PORT, the same after Restart.
	Addr string

	t    testing.TB
	args []string
	cmd  *exec.Cmd // nil after Kill
	out  bytes.Buffer
}

// Start runs a server that keeps nothing on disk, with more arguments as of
// "redis-server --help" (as "--requirepass", "x"). Without a redis-server
// in PATH the test is skipped, or fails where CI is set.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, freePort(t), append([]string{"--dir", t.TempDir(), "--save", "", "--appendonly", "no"}, args...))
}

// StartSentinel runs a Sentinel that alone watches master by the name "main", and
// takes half a second of silence for its end.
func StartSentinel(t testing.TB, master *Server) *Server {
	t.Helper()
	_, port, _ := net.SplitHostPort(master.Addr)
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf") // which it writes to
	conf := fmt.Sprintf("dir %s\nsentinel monitor main 127.0.0.1 %s 1\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n", dir, port)
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, freePort(t), []string{file, "--sentinel"})
}

func start(t testing.TB, port string, args []string) *Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("this test needs redis-server (7.0 or later) in PATH: %v", err)
		}
		t.Skip("no redis-server in PATH (7.0 or later): install it to run this test")
	}
	s := &Server{
		Addr: net.JoinHostPort("127.0.0.1", port),
		t:    t,
		args: append(args, "--bind", "127.0.0.1", "--port", port),
	}
	t.Cleanup(func() {
		if s.cmd != nil {
			s.Kill()
		}
	})
	s.Restart()
	return s
}

func freePort(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// URL returns redis://ADDR.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Restart runs the server again after Kill, and returns when it answers.
func (s *Server) Restart() {
	s.t.Helper()
	s.out.Reset()
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.out
	s.cmd.SysProcAttr = sysProcAttr()
	if err := s.cmd.Start(); err != nil {
		s.t.Fatalf("start redis-server: %v", err)
	}
	deadline := time.Now().Add(startIn)
	for {
		err := ping(s.Addr)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Kill()
			s.t.Fatalf("redis-server %q does not answer: %v\n%s", s.args, err, s.out.String())
		}
		time.Sleep(5 * time.Millisecond) // a port has no event for "open"
	}
}

// ping returns nil once a server answers at addr and has loaded its data; one
// that wants a password has answered.
func ping(addr string) error {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err
	}
	if line == "+PONG\r\n" || bytes.HasPrefix([]byte(line), []byte("-NOAUTH")) {
		return nil
	}
	return fmt.Errorf("PING: %q", line)
}

// Pause stops the process where it is (SIGSTOP): connections stay open, and are
// silent. Resume lets it go on.
func (s *Server) Pause() { s.t.Helper(); s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.t.Helper(); s.signal(syscall.SIGCONT) }

// Kill ends the process at once (SIGKILL), paused or not.
func (s *Server) Kill() {
	s.t.Helper()
	s.signal(syscall.SIGKILL)
	_ = s.cmd.Wait() // "signal: killed"
	s.cmd = nil
}

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redis-server: %v: %v", sig, err)
	}
}
