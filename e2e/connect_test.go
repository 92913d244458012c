//lint:file-ignore SA1019 Logging is deprecated as of 2026-07-28; here is a client of the revisions before.

package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// connected is `signalbox connect URL` as a desktop client runs it.
type connected struct {
	stdin  io.WriteCloser
	stdout *io.PipeReader

	done chan struct{} // closed after these are set
	all  bytes.Buffer  // what stdout had
	exit error

	toClient *io.PipeWriter
}

// Write keeps what the process says, whether or not the client still reads it.
func (c *connected) Write(p []byte) (int, error) {
	c.all.Write(p)
	_, _ = c.toClient.Write(p) // an error: the client has closed its end
	return len(p), nil
}

func startConnect(t *testing.T, url string) *connected {
	t.Helper()
	path, err := box.Signalbox()
	if err != nil {
		t.Fatal(err)
	}
	c := &connected{done: make(chan struct{})}
	c.stdout, c.toClient = io.Pipe()
	cmd := exec.CommandContext(t.Context(), path, "connect", url)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = c, t.Output(), time.Second
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		defer c.toClient.Close()
		c.exit = cmd.Wait()
	}()
	t.Cleanup(func() { <-c.done })
	return c
}

// TestConnect is a client of the Go SDK on the pipes of connect, whose server is killed
// and comes back. The client has one session all the time.
func TestConnect(t *testing.T) {
	record := filepath.Join(t.TempDir(), "record")
	server := sdkServer(t, "-record", record)
	process := startConnect(t, server.url()+"/mcp")
	c := connectGo(t, &mcp.IOTransport{Reader: process.stdout, Writer: process.stdin})
	testGoSession(t, c) // subscribes, and sets the log level
	held := make(chan error, 1)
	go func() {
		_, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{
			Meta: mcp.Meta{"progressToken": "h"}, Name: "hold", Arguments: map[string]any{"key": "k"},
		})
		held <- err
	}()
	receive(t, c.progress)

	server.kill()
	if err := receive(t, held); err == nil || !strings.Contains(err.Error(), "outcome unknown") {
		t.Errorf("the call that was under way ended by %v", err)
	}
	_, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo"})
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a call while the server is down: %v", err)
	}
	server.start()
	if got := c.call(t, "echo", map[string]any{"text": "again"}, nil); got != "map[text:again]" {
		t.Errorf("echo: %s", got)
	}
	c.call(t, "updated", map[string]any{"uri": "test://a"}, nil)
	if got := receive(t, c.updates); got != "test://a" {
		t.Errorf("updated: %s", got)
	}
	testGoQuestions(t, c)

	if err := c.session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	receive(t, process.done)
	if process.exit != nil {
		t.Errorf("connect exits with %v", process.exit)
	}
	checkLines(t, process.all.String())
	seen, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(seen); got != "initialize\ninitialize\nDELETE\n" {
		t.Errorf("the server saw %q", got)
	}
}

// checkLines: standard output is for messages, each on a line.
func checkLines(t *testing.T, stdout string) {
	t.Helper()
	if !strings.HasSuffix(stdout, "\n") {
		t.Errorf("the output ends within a line: %.300q", stdout)
	}
	for line := range strings.Lines(stdout) {
		var m struct{ JSONRPC string }
		if err := json.Unmarshal([]byte(line), &m); err != nil || m.JSONRPC != "2.0" {
			t.Errorf("this is no message: %.300q", line)
		}
	}
}
