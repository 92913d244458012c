//go:build unix

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/cluster"
)

// TestDocs runs the commands of the documentation as a reader would paste them, page by
// page, each in a folder of its own. Addresses on loopback are replaced by free ones. `npx`
// is a stand-in that runs the same package from e2e/npm, `uvx` one that runs the fake server.
func TestDocs(t *testing.T) {
	bin := docPrograms(t)
	for _, page := range docFiles(t) {
		var run []docBlock
		for _, b := range docBlocks(t, page) {
			if !b.is("names") && !b.is("foreign") {
				run = append(run, b)
			}
		}
		if len(run) == 0 {
			continue
		}
		t.Run(strings.ReplaceAll(page, "/", "_"), func(t *testing.T) {
			t.Parallel()
			p := &docPage{dir: t.TempDir(), bin: bin, addrs: make(map[string]string)}
			defer p.stop(t)
			for _, b := range run {
				if !p.run(t, b) {
					return
				}
			}
		})
	}
}

// docPrograms is a folder with signalbox and what stands in for npx and uvx.
func docPrograms(t *testing.T) string {
	t.Helper()
	signalbox, err := box.Signalbox()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(signalbox, filepath.Join(dir, "signalbox")); err != nil {
		t.Fatal(err)
	}
	everything := npmServer(t, "server-everything")
	npx := fmt.Sprintf("#!/bin/sh\ncase $2 in\n@modelcontextprotocol/server-everything) exec '%s' '%s' ;;\nesac\necho \"no $2 in e2e/npm\" >&2\nexit 1\n", everything[0], everything[1])
	uvx := fmt.Sprintf("#!/bin/sh\nexec '%s'\n", fakeServer(t)[0])
	for name, text := range map[string]string{"npx": npx, "uvx": uvx} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// docPage is a page whose blocks run one after the other.
type docPage struct {
	dir, bin string
	addrs    map[string]string // port in the text -> port here
	redis    *cluster.Redis
	serving  *docServer // nil: none
}

var docAddr = regexp.MustCompile(`(127\.0\.0\.1|localhost):(\d{4,5})\b`)

// here is a text with the addresses of this run.
func (p *docPage) here(t *testing.T, text string) string {
	return docAddr.ReplaceAllStringFunc(text, func(addr string) string {
		host, port, _ := strings.Cut(addr, ":")
		return host + ":" + p.port(t, port)
	})
}

func (p *docPage) port(t *testing.T, port string) string {
	t.Helper()
	if p.addrs[port] == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, p.addrs[port], _ = net.SplitHostPort(l.Addr().String())
		_ = l.Close()
	}
	return p.addrs[port]
}

// run runs one block; false ends the page.
func (p *docPage) run(t *testing.T, b docBlock) bool {
	t.Helper()
	if b.is("redis") {
		if p.redis == nil {
			p.redis = cluster.StartRedis(t)
		}
		_, p.addrs["6379"], _ = net.SplitHostPort(p.redis.Addr)
	}
	env := filepath.Join(p.dir, ".env")
	script := fmt.Sprintf("set -a; [ ! -f '%s' ] || . '%s'\n%s\nexport -p >'%s'\n", env, env, p.here(t, b.text), env)
	cmd := exec.Command("sh", "-euc", script)
	if cmd.Dir = p.dir; b.is("tree") {
		cmd.Dir = box.Root()
	}
	cmd.Env = append(os.Environ(), "PATH="+p.bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+p.dir, "SIGNALBOX_LISTEN=127.0.0.1:"+p.port(t, "8080"),
		"GOCACHE="+goEnv("GOCACHE"), "GOMODCACHE="+goEnv("GOMODCACHE"), "GOPATH="+goEnv("GOPATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if b.is("background") {
		p.stop(t)
		p.serving = serveDoc(t, b, cmd)
		return p.serving != nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer context.AfterFunc(ctx, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })()
	if err := errors.Join(cmd.Wait(), ctx.Err()); err != nil {
		t.Errorf("%s:%d: %v\n%s%s", b.page, b.line, err, b.text, out.String())
		return false
	}
	return true
}

var goEnv = func() func(string) string {
	cached := make(map[string]string)
	var mu sync.Mutex
	return func(name string) string {
		mu.Lock()
		defer mu.Unlock()
		if cached[name] == "" {
			out, _ := exec.Command("go", "env", name).Output()
			cached[name] = strings.TrimSpace(string(out))
		}
		return cached[name]
	}
}()

// docServer is a signalbox that a block has started.
type docServer struct {
	b    docBlock
	cmd  *exec.Cmd
	log  docLog
	done chan error
}

// docLog is what a block has printed.
type docLog struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced at each write
}

func (l *docLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.changed)
	l.changed = make(chan struct{})
	return l.text.Write(p)
}

func (l *docLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var docURL = regexp.MustCompile(`Streamable HTTP +(http://\S+/mcp)`)

// serveDoc starts a block, and returns when each of its signalbox processes has answered initialize.
func serveDoc(t *testing.T, b docBlock, cmd *exec.Cmd) *docServer {
	t.Helper()
	s := &docServer{b: b, cmd: cmd, log: docLog{changed: make(chan struct{})}, done: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { s.done <- cmd.Wait() }()
	want := max(1, strings.Count(b.text, "signalbox serve"))
	timeout := time.After(box.Patience)
	for {
		s.log.mu.Lock()
		urls, changed := docURL.FindAllStringSubmatch(s.log.text.String(), -1), s.log.changed
		s.log.mu.Unlock()
		if len(urls) >= want {
			for _, u := range urls {
				if err := initializeDoc(u[1], strings.Contains(b.text, "--auth-")); err != nil {
					t.Errorf("%s:%d: %s: %v\n%s%s", b.page, b.line, u[1], err, b.text, &s.log)
				}
			}
			return s
		}
		select {
		case err := <-s.done:
			t.Errorf("%s:%d: it ends before it serves: %v\n%s%s", b.page, b.line, err, b.text, &s.log)
			return nil
		case <-timeout:
			t.Errorf("%s:%d: it does not serve\n%s%s", b.page, b.line, b.text, &s.log)
			s.end(t)
			return nil
		case <-changed:
		}
	}
}

// initializeDoc opens a session, or learns that it needs a credential for it.
func initializeDoc(url string, credential bool) error {
	body := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"docs","version":"1"}}}`
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	client := &http.Client{Timeout: box.Patience}
	defer client.CloseIdleConnections()
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case credential && res.StatusCode == http.StatusUnauthorized:
		return nil
	case res.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"serverInfo"`)):
		return fmt.Errorf("initialize is answered by %d: %s", res.StatusCode, answer)
	}
	return nil
}

// stop ends what serves, if something does.
func (p *docPage) stop(t *testing.T) {
	t.Helper()
	if p.serving != nil {
		p.serving.end(t)
		p.serving = nil
	}
}

// end sends SIGTERM to all that the block has started, and waits until nothing holds its output.
func (s *docServer) end(t *testing.T) {
	t.Helper()
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(box.Patience):
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
		t.Errorf("%s:%d: it does not stop\n%s%s", s.b.page, s.b.line, s.b.text, &s.log)
		<-s.done
		return
	}
	if !strings.Contains(s.log.String(), "stopped") {
		t.Errorf("%s:%d: it did not stop as it should\n%s%s", s.b.page, s.b.line, s.b.text, &s.log)
	}
}

// TestFirstRun: the script that follows the README comes to its end, in this tree.
func TestFirstRun(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), filepath.Join(box.Root(), "scripts", "first-run.sh"), box.Root())
	cmd.Env = append(os.Environ(), "PATH="+docPrograms(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), `signalbox_sessions{era="handshake",server="server-everything",transport="streamable"} 2`) {
		t.Errorf("first-run.sh: %v\n%s", err, out)
	}
}
