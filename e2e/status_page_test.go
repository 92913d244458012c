package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// Names with markup: a page that puts them into its HTML runs them.
const (
	evilClient = `<img src=x onerror=injected=1><b class="injected">Inspector</b>`
	evilTool   = `<script>injected=1</script>`
)

// chromium is the browser of this machine. CI must have one.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") != "" {
		t.Fatal("no chromium here; .ci/run installs it")
	}
	t.Skip("no chromium here")
	return ""
}

// driver is the folder of the script that drives it.
func driver(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(box.E2E(), "browser")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "playwright-core")); err != nil {
		t.Fatalf("%v; hint: run `npm ci` in e2e/browser", err)
	}
	return dir
}

// openSession opens a session and returns its hash as the admin API tells it.
func openSession(t *testing.T, b *box.Box, server, client string) (*rawclient.Streamable, string) {
	t.Helper()
	name, err := json.Marshal(client)
	if err != nil {
		t.Fatal(err)
	}
	before := sessionHashes(t, b)
	c := rawclient.New(b.URL)
	t.Cleanup(c.Close)
	s, err := c.StreamableAt(t.Context(), "/servers/"+server+"/mcp", rawclient.Options{ClientInfo: `{"name":` + string(name) + `,"version":"1.2"}`})
	if err != nil {
		t.Fatal(err)
	}
	for hash := range sessionHashes(t, b) {
		if !before[hash] {
			return s, hash
		}
	}
	t.Fatal("the admin API does not list the session")
	return nil, ""
}

func sessionHashes(t *testing.T, b *box.Box) map[string]bool {
	t.Helper()
	var list struct{ Sessions []struct{ Session string } }
	b.Admin(t, "/api/v1/sessions", &list)
	hashes := make(map[string]bool)
	for _, s := range list.Sessions {
		hashes[s.Session] = true
	}
	return hashes
}

// TestStatusPage uses the page in a browser. With SIGNALBOX_E2E_SHOTS=DIR it leaves
// its screenshots there.
func TestStatusPage(t *testing.T) {
	browser, dir := chromium(t), driver(t)
	fake := fakeServer(t)[0]
	b := box.StartConfig(t, fmt.Sprintf(`mcpServers:
  files: {command: %[1]q, tools: {deny: ["<*"]}}
  search: {command: %[1]q, isolation: shared}
  tickets: {command: %[1]q, args: [-exit-at-start, "3"]}
`, fake))
	s, hash := openSession(t, b, "files", evilClient)
	others := []*rawclient.Streamable{s}
	for i, client := range []string{"Inspector", "editor", "desktop"} {
		o, _ := openSession(t, b, []string{"search", "files", "search"}[i], client)
		others = append(others, o)
	}
	_, other := openSession(t, b, "search", "notebook")
	for i := range 200 {
		o := others[1+i%3]
		if i%10 == 0 { // so few that its first messages are still held
			o = s
		}
		if _, err := o.Call(t.Context(), fmt.Sprint(i+1), "tools/call", `{"name":"echo","arguments":{"text":"contents of a call"}}`); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Call(t.Context(), "1000", "tools/call", `{"name":"`+evilTool+`","arguments":{}}`); err != nil {
		t.Fatal(err)
	}
	refuse(t, b)

	found := browse(t, dir, "--browser", browser, "--url", b.AdminURL(), "--session", hash, "--other", other,
		"--name", evilClient, "--tool", evilTool, "--failing", "tickets", "--shots", os.Getenv("SIGNALBOX_E2E_SHOTS"))
	if len(found.Console) > 0 {
		t.Errorf("the browser's console: %q", found.Console)
	}
	for _, url := range found.Requests {
		if !strings.HasPrefix(url, b.AdminURL()+"/") && !strings.HasPrefix(url, "data:") {
			t.Errorf("the page asked for %s", url)
		}
	}
	var status *rawclient.StatusError
	if _, err := s.Call(t.Context(), "2000", "ping", ""); !errors.As(err, &status) || status.Status != http.StatusNotFound {
		t.Errorf("a call of the session that was ended: %v", err)
	}
	if _, err := others[1].Call(t.Context(), "2000", "ping", ""); err != nil {
		t.Errorf("a call of another session: %v", err)
	}
}

// browsed is what the script has seen: the addresses that were asked for, and what was
// written to the console.
type browsed struct{ Requests, Console []string }

func browse(t *testing.T, dir string, args ...string) (found browsed) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{"status.mjs"}, args...)...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := errors.Join(cmd.Run(), ctx.Err()); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &found); err != nil {
		t.Fatalf("it printed %q: %v", stdout.String(), err)
	}
	return found
}

// TestStatusPageWithToken: a browser takes the token as a password, and the page works
// with it, to the end of a session.
func TestStatusPageWithToken(t *testing.T) {
	browser, dir := chromium(t), driver(t)
	const token = "a-token-of-some-length"
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	b := box.Start(t, []string{"--admin-token-file", file}, fakeServer(t)...)
	c := rawclient.New(b.URL)
	t.Cleanup(c.Close)
	if _, err := c.Streamable(t.Context(), rawclient.Options{}); err != nil {
		t.Fatal(err)
	}
	sessions := func() (hashes []string) {
		var list struct{ Sessions []struct{ Session string } }
		stdout, stderr, code := box.Run(t, "sessions", "--json", "--admin", b.AdminURL(), "--admin-token-file", file)
		if err := json.Unmarshal([]byte(stdout), &list); code != 0 || err != nil {
			t.Fatalf("sessions: %d %v %s%s", code, err, stdout, stderr)
		}
		for _, s := range list.Sessions {
			hashes = append(hashes, s.Session)
		}
		return hashes
	}
	before := sessions()
	if len(before) != 1 {
		t.Fatalf("sessions: %v", before)
	}
	browse(t, dir, "--browser", browser, "--url", b.AdminURL(), "--session", before[0], "--password", token)
	if after := sessions(); len(after) != 0 {
		t.Errorf("sessions: %v", after)
	}
}

// refuse makes a few requests that are refused, and a server that does not start.
func refuse(t *testing.T, b *box.Box) {
	t.Helper()
	c := rawclient.New(b.URL)
	defer c.Close()
	for _, r := range []struct{ method, path, session string }{
		{http.MethodGet, "/nowhere", ""}, {http.MethodPut, "/servers/files/mcp", ""},
		{http.MethodDelete, "/servers/files/mcp", "nobody-has-this"}, {http.MethodDelete, "/servers/search/mcp", "nor-this"},
	} {
		header := http.Header{}
		if r.session != "" {
			header.Set("Mcp-Session-Id", r.session)
		}
		resp, err := c.Do(t.Context(), r.method, r.path, header, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	if _, err := c.StreamableAt(t.Context(), "/servers/tickets/mcp", rawclient.Options{}); err == nil {
		t.Fatal("a session of a server that exits at once began")
	}
}
