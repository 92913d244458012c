package e2e

import (
	"bytes"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// program is a server that listens at an address which it was told.
type program struct {
	addr    string // HOST:PORT
	command []string
	env     []string

	t      *testing.T
	cmd    *exec.Cmd    // nil while it does not run
	stderr bytes.Buffer // of the process while it runs
}

// startProgram runs a command that will listen at addr, and waits until it does. The
// test's end kills it, and shows the end of its stderr where the test failed.
func startProgram(t *testing.T, addr string, env []string, command ...string) *program {
	t.Helper()
	p := &program{addr: addr, command: command, env: append(os.Environ(), env...), t: t}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s\n%s", strings.Join(command, " "), lastLines(p.stderr.String(), 50))
		}
	})
	p.start()
	return p
}

func (p *program) start() {
	p.t.Helper()
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Env, cmd.Stderr, cmd.WaitDelay = p.env, &p.stderr, time.Second
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd = cmd
	box.Eventually(p.t, "the server listens", func() string {
		conn, err := net.Dial("tcp", p.addr)
		if err != nil {
			return err.Error()
		}
		conn.Close()
		return ""
	})
}

// kill ends the program without notice and waits until it is gone.
func (p *program) kill() {
	if p.cmd == nil {
		return
	}
	p.cmd.Process.Kill()
	p.cmd.Wait() // reports the kill
	p.cmd = nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func (p *program) url() string { return "http://" + p.addr }

// sdkServer runs a server of the Go SDK.
func sdkServer(t *testing.T, flags ...string) *program {
	t.Helper()
	path, err := box.SDKServer()
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	return startProgram(t, addr, nil, append([]string{path, "-http", addr}, flags...)...)
}

// typescriptServer runs npm/servers/sdk.mjs.
func typescriptServer(t *testing.T, flags ...string) *program {
	t.Helper()
	npmFile(t, "@modelcontextprotocol", "sdk", "package.json")
	addr := freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(box.E2E(), "npm", "servers", "sdk.mjs")
	return startProgram(t, addr, nil, append([]string{"node", script, "--port", port}, flags...)...)
}

// httpServer runs a reference server over HTTP and returns its address.
func httpServer(t *testing.T, name string, args ...string) string {
	t.Helper()
	addr := freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return startProgram(t, addr, []string{"PORT=" + port}, npmServer(t, name, args...)...).url()
}

// freeAddr is an address that nobody listens on, for programs that cannot say which one
// they chose. Its port is none that systems give to outgoing connections, so that a
// program finds it free when it comes back, too.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))
		l, err := net.Listen("tcp", addr)
		if err != nil {
			continue
		}
		l.Close()
		return addr
	}
	t.Fatal("no free port was found")
	panic("unreachable")
}
