package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServe(t *testing.T) {
	for _, isolation := range []string{"session", "shared"} {
		t.Run(isolation, func(t *testing.T) {
			t.Setenv("SIGNALBOX_TEST_SECRET", "do not pass on")
			t.Setenv("SIGNALBOX_TEST_PASSED", "pass on")
			r, base := serve(t, "--isolation", isolation, "--admin-listen", "127.0.0.1:0", "--pass-env", "SIGNALBOX_TEST_PASSED")
			name := serverName([]string{os.Args[0]})
			r.await(`"mcpServers":\{"` + name + `":\{"url":"` + base + `/mcp"`)
			admin := r.await(`metrics          (http://\S+)`)
			session, other := open(t, base), open(t, base)
			for _, s := range []string{session, other} {
				status, answer, _ := post(t, base+"/mcp", s, `{"jsonrpc":"2.0","id":"x","method":"echo","params":{"v":9007199254740993}}`)
				if want := `{"jsonrpc":"2.0","id":"x","result":{"v":9007199254740993}}`; status != 200 || answer != want {
					t.Errorf("got %d %s", status, answer)
				}
			}
			_, env, _ := post(t, base+"/servers/"+name+"/mcp", session, `{"jsonrpc":"2.0","id":1,"method":"env"}`)
			if strings.Contains(env, "do not pass on") || !strings.Contains(env, "SIGNALBOX_TEST_PASSED=pass on") || !strings.Contains(env, childMode+"=1") || !strings.Contains(env, "PATH=") {
				t.Errorf("the server's environment is %s", env)
			}
			metrics := get(t, admin)
			for _, want := range []string{"signalbox_sessions{", "signalbox_processes ", "go_goroutines", "process_cpu_seconds_total", "signalbox_event_log_bytes"} {
				if !strings.Contains(metrics, want) {
					t.Errorf("no %s among the metrics", want)
				}
			}
			r.stop()
			if code := r.exit(); code != exitOK {
				t.Errorf("exit code %d", code)
			}
			out, log := r.text()
			if out != "" {
				t.Errorf("stdout has %q", out)
			}
			for _, id := range []string{session, other} {
				if strings.Contains(log, id) || strings.Contains(metrics, id) {
					t.Error("a session id stands in the log or in a metric")
				}
			}
		})
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// At the end a call in flight gets its answer, a stream is let go, a new
// session is refused, and no process stays.
func TestStopDrains(t *testing.T) {
	r, base := serve(t, "--isolation", "session")
	session := open(t, base)
	own := stream(t, "GET", base, session, "")
	call := stream(t, "POST", base, session, `{"jsonrpc":"2.0","id":7,"method":"slow"}`)
	r.stop()
	r.await("draining")
	if got := rest(own); !strings.Contains(got, "retry:") {
		t.Errorf("the stream ends with %q", got)
	}
	if got := rest(call); !strings.Contains(got, `{"jsonrpc":"2.0","id":7,"result":"slow"}`) {
		t.Errorf("the call in flight got %q", got)
	}
	if code := r.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestDrainIsBounded(t *testing.T) {
	r, base := serve(t, "--drain", "100ms")
	call := stream(t, "POST", base, open(t, base), `{"jsonrpc":"2.0","id":7,"method":"stuck"}`)
	r.stop()
	if got := rest(call); !strings.Contains(got, `"id":7,"error"`) || !strings.Contains(got, `"reason":"shutdown"`) {
		t.Errorf("the call in flight got %q", got)
	}
	if code := r.exit(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// stream sends a request and returns once its event stream is open.
func stream(t *testing.T, method, base, session, body string) io.Reader {
	t.Helper()
	req, err := http.NewRequest(method, base+"/mcp", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Mcp-Session-Id", session)
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if ct := res.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("%d %s", res.StatusCode, ct)
	}
	return res.Body
}

func rest(r io.Reader) string {
	b, err := io.ReadAll(r)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestPortInUse(t *testing.T) {
	for _, flag := range []string{"--listen", "--admin-listen"} {
		t.Run(flag, func(t *testing.T) {
			mark := filepath.Join(t.TempDir(), "started")
			begin := time.Now()
			r := start(t, "serve", "--listen", "127.0.0.1:0", flag, taken(t), "--", "touch", mark)
			if code := r.exit(); code != exitError {
				t.Errorf("exit code %d", code)
			}
			if _, err := os.Stat(mark); err == nil {
				t.Error("the server was started")
			}
			if _, log := r.text(); !strings.Contains(log, flag) || !strings.Contains(log, "in use") {
				t.Errorf("it says %s", log)
			}
			if d := time.Since(begin); d > 5*time.Second {
				t.Errorf("after %v", d)
			}
		})
	}
}

// The server is started by initialize and not before; one that is not there is
// an error of that call.
func TestServerThatIsNotThere(t *testing.T) {
	r := start(t, "serve", "--listen", "127.0.0.1:0", "--", "no-such-command-anywhere")
	base := r.await(`Streamable HTTP  (http://\S+)/mcp`)
	if got := get(t, base+"/readyz"); !strings.Contains(got, "ready") {
		t.Errorf("readyz: %s", got)
	}
	status, answer, header := post(t, base+"/mcp", "", initialize)
	if status != 200 || !strings.Contains(answer, "no-such-command-anywhere") || header.Get("Mcp-Session-Id") != "" {
		t.Errorf("got %d %s", status, answer)
	}
}

func TestAdminListenerChecksTheHost(t *testing.T) {
	r, _ := serve(t, "--admin-listen", "127.0.0.1:0")
	req, _ := http.NewRequest("GET", r.await(`metrics          (http://\S+)`), nil)
	req.Host = "evil.example"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 403 {
		t.Errorf("got %d", res.StatusCode)
	}
}
