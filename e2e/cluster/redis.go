package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Redis is a redis-server that keeps what it was told on disk before it answers, so that
// a restart loses nothing.
type Redis struct {
	Addr string // the same after Restart

	t    testing.TB
	args []string
	cmd  *exec.Cmd // nil after Kill
	out  bytes.Buffer
}

// StartRedis runs a redis-server until the test ends, with more arguments as of
// "redis-server --help".
func StartRedis(t testing.TB, args ...string) *Redis {
	t.Helper()
	r := &Redis{Addr: freeAddr(t), t: t}
	_, port, _ := net.SplitHostPort(r.Addr)
	r.args = append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "", "--appendonly", "yes", "--appendfsync", "always"}, args...)
	t.Cleanup(func() {
		if r.cmd != nil {
			r.Kill()
		}
	})
	r.Restart()
	return r
}

// URL is the store's URL without a password.
func (r *Redis) URL() string { return "redis://" + r.Addr + "/0" }

// Restart runs the server again after Kill, and returns when it answers.
func (r *Redis) Restart() {
	r.t.Helper()
	r.out.Reset()
	path, err := find("redis-server")
	if err != nil {
		r.t.Fatal(err)
	}
	r.cmd = exec.Command(path, r.args...)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	diesWithTest(r.cmd)
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	Await(r.t, patience, "redis-server answers", func() string {
		_, err := r.ask("PING")
		if err != nil && !strings.Contains(err.Error(), "NOAUTH") {
			return err.Error()
		}
		return ""
	})
}

// Pause stops the process where it is: connections stay open, and are silent.
func (r *Redis) Pause() { r.t.Helper(); r.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (r *Redis) Resume() { r.t.Helper(); r.signal(syscall.SIGCONT) }

// Kill ends the process at once, paused or not.
func (r *Redis) Kill() {
	r.t.Helper()
	r.signal(syscall.SIGKILL)
	_ = r.cmd.Wait() // "signal: killed"
	r.cmd = nil
}

func (r *Redis) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatalf("redis-server: %v: %v", sig, err)
	}
}

// Do sends one command and returns its reply: a status, a number or a string.
func (r *Redis) Do(args ...string) string {
	r.t.Helper()
	reply, err := r.ask(args...)
	if err != nil {
		r.t.Fatalf("redis %s: %v", args[0], err)
	}
	return reply
}

func (r *Redis) ask(args ...string) (string, error) {
	c, err := net.DialTimeout("tcp", r.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	cmd := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		cmd = fmt.Appendf(cmd, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := c.Write(cmd); err != nil {
		return "", err
	}
	return readReply(bufio.NewReader(c))
}

// readReply reads one reply; the elements of an array are lines.
func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	rest := strings.TrimRight(line[1:], "\r\n")
	switch line[0] {
	case '-':
		return "", errors.New(rest)
	case '$':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return "", err
		}
		b := make([]byte, n)
		if _, err = io.ReadFull(in, b); err == nil {
			_, err = in.Discard(len("\r\n"))
		}
		return string(b), err
	case '*':
		n, err := strconv.Atoi(rest)
		var all []string
		for i := 0; i < n && err == nil; i++ {
			var one string
			one, err = readReply(in)
			all = append(all, one)
		}
		return strings.Join(all, "\n"), err
	}
	return rest, nil
}

// Calls counts the commands that the server has run, by name, this count not included.
func (r *Redis) Calls() map[string]int {
	r.t.Helper()
	calls := make(map[string]int)
	for line := range strings.Lines(r.Do("INFO", "commandstats")) {
		name, stats, ok := strings.Cut(strings.TrimSpace(line), ":calls=")
		if !ok {
			continue
		}
		count, _, _ := strings.Cut(stats, ",")
		n, err := strconv.Atoi(count)
		if err != nil {
			r.t.Fatal(err)
		}
		calls[strings.TrimPrefix(name, "cmdstat_")] = n
	}
	delete(calls, "info")
	return calls
}
