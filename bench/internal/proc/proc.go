// Package proc starts the programs of the benchmark, reads their memory and ends them.
package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is a running program with a process group of its own.
type Process struct {
	cmd *exec.Cmd
	log *os.File
	end chan struct{} // closed by reap
	err error         // how it ended; read after end
}

// Start runs argv with stdout and stderr into the file at log.
func Start(argv []string, log string) (*Process, error) {
	f, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = f, f
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p := &Process{cmd: cmd, log: f, end: make(chan struct{})}
	go p.reap() // ends with the program; Stop waits for it
	return p, nil
}

func (p *Process) reap() {
	p.err = p.cmd.Wait()
	close(p.end)
}

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Ended reports whether the program has ended, and how.
func (p *Process) Ended() (bool, error) {
	select {
	case <-p.end:
		return true, p.err
	default:
		return false, nil
	}
}

// Stop ends the program and its process group, by SIGTERM and after grace by SIGKILL, and waits
// for the program.
func (p *Process) Stop(grace time.Duration) {
	defer func() { _ = p.log.Close() }()
	if ended, _ := p.Ended(); ended {
		return
	}
	_ = syscall.Kill(-p.PID(), syscall.SIGTERM)
	select {
	case <-p.end:
	case <-time.After(grace):
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
		<-p.end
	}
}

// Log is the end of what the program wrote.
func (p *Process) Log() string {
	b, err := os.ReadFile(p.log.Name())
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(b[max(0, len(b)-1500):]))
}

// Memory is the resident set of pid and its peak, in bytes.
func Memory(pid int) (rss, peak int64, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch {
		case name == "VmRSS" && err == nil:
			rss = n << 10
		case name == "VmHWM" && err == nil:
			peak = n << 10
		}
	}
	if rss == 0 || peak == 0 {
		return 0, 0, errors.New("no VmRSS or VmHWM in the process status")
	}
	return rss, peak, nil
}

// ResetPeak sets the peak of the resident set back to what it is now.
func ResetPeak(pid int) error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}

// FreePort is a port of 127.0.0.1 that nobody listens on.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
