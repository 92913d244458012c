package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// childMode in the environment makes the test binary an MCP server.
const childMode = "SIGNALBOX_TEST_CHILD"

func TestMain(m *testing.M) {
	if child.RunWatchdogIfAsked() {
		return
	}
	if os.Getenv(childMode) != "" {
		serveStdio(os.Stdin, os.Stdout)
		return
	}
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// serveStdio answers initialize, and every other request by its params.
func serveStdio(in io.Reader, out io.Writer) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		msg, err := wire.Parse(line)
		if err != nil || msg.Kind != wire.Request {
			continue
		}
		result := []byte(`{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"t","version":"1"}}`)
		switch string(msg.MethodName()) {
		case "initialize":
		case "tools/list":
			result = []byte(`{"tools":[{"name":"read", "n":1.0},{"name":"write"},{"name":"read_all"}],"x":1e400}`)
		case "env":
			result = wire.AppendQuote(nil, strings.Join(os.Environ(), "\n"))
		case "slow":
			time.Sleep(300 * time.Millisecond)
			result = []byte(`"slow"`)
		case "stuck":
			time.Sleep(time.Hour)
		default:
			result = msg.Bytes(msg.Params)
		}
		fmt.Fprintf(out, "%s\n", wire.AppendResult(nil, msg.Bytes(msg.ID), result))
	}
}

// running is a signalbox of this process.
type running struct {
	t    *testing.T
	stop context.CancelFunc // what SIGTERM does
	code chan int

	mu       sync.Mutex
	out, err strings.Builder
	printed  chan struct{} // closed and replaced at each write
}

// start runs signalbox with the arguments.
func start(t *testing.T, args ...string) *running {
	ctx, stop := context.WithCancel(context.Background())
	r := &running{t: t, stop: stop, code: make(chan int, 1), printed: make(chan struct{})}
	go func() {
		r.code <- run(ctx, func() {}, args, streams{strings.NewReader(""), writer{r, &r.out}, writer{r, &r.err}})
	}()
	t.Cleanup(func() {
		stop()
		select {
		case <-r.code:
		case <-time.After(time.Minute):
			t.Error("it does not end")
		}
	})
	return r
}

type writer struct {
	r   *running
	dst *strings.Builder
}

func (w writer) Write(p []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	close(w.r.printed)
	w.r.printed = make(chan struct{})
	return w.dst.Write(p)
}

func (r *running) text() (out, err string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String(), r.err.String()
}

// await waits until stderr matches, and returns the first group.
func (r *running) await(expr string) string {
	r.t.Helper()
	re := regexp.MustCompile(expr)
	late := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		m, printed := re.FindStringSubmatch(r.err.String()), r.printed
		r.mu.Unlock()
		if m != nil {
			return m[len(m)-1]
		}
		select {
		case <-printed:
		case <-late:
			_, err := r.text()
			r.t.Fatalf("no %s in\n%s", expr, err)
		}
	}
}

// exit waits for the end and returns the exit code.
func (r *running) exit() int {
	r.t.Helper()
	select {
	case code := <-r.code:
		r.code <- code
		return code
	case <-time.After(30 * time.Second):
		r.t.Fatal("it does not end")
		return -1
	}
}

// self is the command of a server that is this test binary.
func self(t *testing.T) []string {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{"--env", childMode + "=1", "--", exe}
}

func serve(t *testing.T, flags ...string) (r *running, base string) {
	t.Helper()
	r = start(t, append(append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...), self(t)...)...)
	return r, r.await(`Streamable HTTP  (http://\S+)/mcp`)
}

func post(t *testing.T, url, session, body string) (status int, answer string, header http.Header) {
	t.Helper()
	res, answer := say(t, http.DefaultClient, url, session, body)
	return res.StatusCode, answer, res.Header
}

// say sends a message with headers, in pairs of name and value, and returns what
// came back and its body.
func say(t *testing.T, c *http.Client, url, session, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

func open(t *testing.T, base string) (session string) {
	t.Helper()
	status, answer, header := post(t, base+"/mcp", "", initialize)
	if session = header.Get("Mcp-Session-Id"); status != 200 || session == "" {
		t.Fatalf("initialize: %d %s", status, answer)
	}
	return session
}

// taken is an address that somebody listens on.
func taken(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
