package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// configFile writes a file of the servers, each this test binary unless its
// entry says otherwise, and returns its path.
func configFile(t *testing.T, dir, text string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "signalbox.yaml")
	text = strings.ReplaceAll(text, "SELF", fmt.Sprintf("command: %q, env: {%s: '1'}", exe, childMode))
	next := path + ".next" // renamed into place, as editors do
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func serveFile(t *testing.T, path string, flags ...string) (r *running, base string) {
	t.Helper()
	r = start(t, append([]string{"serve", "--listen", "127.0.0.1:0", "--config", path}, flags...)...)
	return r, r.await(`Streamable HTTP  (http://[^/]+)/`)
}

func openAt(t *testing.T, url string) (session string) {
	t.Helper()
	status, answer, header := post(t, url, "", initialize)
	if session = header.Get("Mcp-Session-Id"); status != 200 || session == "" {
		t.Fatalf("initialize at %s: %d %s", url, status, answer)
	}
	return session
}

// echo sends a call and tells whether its answer is right.
func echo(t *testing.T, url, session string) (status int, answer string, right bool) {
	t.Helper()
	status, answer, _ = post(t, url, session, `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"v":1}}`)
	return status, answer, status == 200 && answer == `{"jsonrpc":"2.0","id":5,"result":{"v":1}}`
}

// One server that cannot start and one that cannot be reached stop nobody else.
func TestConfigServesManyAndBadOnesStopNobody(t *testing.T) {
	path := configFile(t, t.TempDir(), `
mcpServers:
  good: {SELF}
  none: {command: no-such-command-anywhere}
  far: {url: "http://127.0.0.1:1/mcp"}
  off: {disabled: true, command: "${SIGNALBOX_UNSET_ANYWHERE}"}
`)
	r, base := serveFile(t, path, "--admin-listen", "127.0.0.1:0")
	admin := strings.TrimSuffix(r.await(`metrics          (http://\S+)`), "/metrics")
	if got := get(t, admin+"/api/v1/servers"); strings.Count(got, `"state":"unused"`) != 3 {
		t.Errorf("before any session: %s", got)
	}
	for _, name := range []string{"none", "far"} {
		status, answer, header := post(t, base+"/servers/"+name+"/mcp", "", initialize)
		if status != 200 || !strings.Contains(answer, `"error"`) || header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	url := base + "/servers/good/mcp"
	if _, answer, right := echo(t, url, openAt(t, url)); !right {
		t.Errorf("got %s", answer)
	}
	for _, path := range []string{"/mcp", "/servers/off/mcp"} {
		if status, answer, _ := post(t, base+path, "", initialize); status != 404 || !strings.Contains(answer, "/servers/good/mcp") {
			t.Errorf("%s: %d %s", path, status, answer)
		}
	}
	got := get(t, admin+"/api/v1/servers")
	for _, want := range []string{
		`"name":"good","kind":"stdio","isolation":"auto","era":"handshake","state":"working","sessions":1,"started":1`,
		`"name":"none","kind":"stdio","isolation":"auto","state":"failing"`,
		`"name":"far","kind":"http","state":"failing"`,
		`no-such-command-anywhere`,
		`"addresses":[{"address":"http://127.0.0.1:1","down":true`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}

func TestLoneServerOfAFileIsAtTheRootToo(t *testing.T) {
	_, base := serveFile(t, configFile(t, t.TempDir(), `mcpServers: {only: {SELF}}`))
	for _, path := range []string{"/mcp", "/servers/only/mcp"} {
		if _, answer, right := echo(t, base+path, openAt(t, base+path)); !right {
			t.Errorf("%s: %s", path, answer)
		}
	}
}

// New sessions use the new settings, live ones keep theirs, and a wrong file
// changes nothing.
func TestReload(t *testing.T) {
	dir := t.TempDir()
	path := configFile(t, dir, `
mcpServers:
  changed: {SELF, call-timeout: 1m}
  removed: {SELF}
  same: {SELF}
`)
	r, base := serveFile(t, path)
	at := func(name string) string { return base + "/servers/" + name + "/mcp" }
	sessions := map[string]string{}
	for _, name := range []string{"changed", "removed", "same"} {
		sessions[name] = openAt(t, at(name))
	}
	alive := func() {
		t.Helper()
		for name, session := range sessions {
			if status, answer, right := echo(t, at(name), session); !right {
				t.Errorf("the session of %s got %d %s", name, status, answer)
			}
		}
	}

	configFile(t, dir, "mcpServers:\n  changed: {comand: x}\n")
	r.await(`configuration not reloaded(?s:.*)did you mean command`)
	alive()
	openAt(t, at("removed"))

	configFile(t, dir, `
drain: 3s
mcpServers:
  same: {SELF}
  changed: {SELF, max-sessions: 1}
  added: {SELF}
`)
	r.await(`configuration reloaded"?[^\n]*count"?[:=]3`)
	r.await(`need a restart"?[^\n]*settings"?[:=]"?drain`)
	alive()
	openAt(t, at("added"))
	openAt(t, at("changed")) // its bound counts the new settings' sessions only
	if status, answer, header := post(t, at("changed"), "", initialize); status != 503 || header.Get("Retry-After") == "" || !strings.Contains(answer, "--max-sessions") {
		t.Errorf("beyond max-sessions of the server: %d %s", status, answer)
	}
	if status, answer, _ := post(t, at("removed"), "", initialize); status != 404 {
		t.Errorf("a session of the removed server: %d %s", status, answer)
	}

	configFile(t, dir, `mcpServers: {lone: {SELF}}`)
	hangUp(t)
	r.await(`configuration reloaded"?[^\n]*count"?[:=]1`)
	alive()
	openAt(t, base+"/mcp")
}

func TestCheck(t *testing.T) {
	for name, value := range map[string]string{"HOME": "/home/ada", "GITHUB_TOKEN": "ghp_test", "CRM_TOKEN": "s3cret", "PORT": "9000", "EMPTY": ""} {
		t.Setenv(name, value)
	}
	files, err := filepath.Glob("../../internal/config/testdata/good/*")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, path := range files {
		if strings.HasSuffix(path, ".golden") || filepath.Base(path) == "signalbox.yaml" || filepath.Base(path) == "settings-only.json" {
			continue // settings are flags of issues to come; see the package's own test
		}
		checked++
		t.Run(filepath.Base(path), func(t *testing.T) {
			r := start(t, "check", "--config", path)
			code := r.exit()
			out, log := r.text()
			if code != exitOK || !strings.Contains(out, " is right: ") {
				t.Errorf("exit code %d, %s%s", code, out, log)
			}
			if strings.Contains(out+log, "s3cret") || strings.Contains(out+log, "ghp_test") {
				t.Error("it shows a secret")
			}
		})
	}
	if checked < 10 {
		t.Errorf("only %d files", checked)
	}
}

func TestCheckSaysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []string
		code int
	}{
		"unknown key":      {"mcpServers:\n  a:\n    comand: x\n", []string{":3:5: ", "comand", "did you mean command?"}, exitUsage},
		"contradiction":    {"call-timeout: 3h\ncall-limit: 1h\nmcpServers: {a: {command: cat}}\n", []string{"--call-timeout", "contradict"}, exitUsage},
		"of one server":    {"mcpServers:\n  a: {command: cat, call-limit: 1m, call-timeout: 1h}\n", []string{":2: mcpServers.a: ", "contradict"}, exitUsage},
		"open to all":      {"listen: 0.0.0.0:80\nmcpServers: {a: {command: cat}}\n", []string{"--listen", "--insecure"}, exitUsage},
		"command missing":  {"mcpServers: {a: {command: no-such-command-anywhere}}\n", []string{"is right: 1 servers", "warning: mcpServers.a.command: ", "not found"}, exitOK},
		"meaningless keys": {"mcpServers: {a: {command: cat, alwaysAllow: [x]}}\n", []string{"is right: 1 servers", "mcpServers.a.alwaysAllow"}, exitOK},
		"proxies":          {"trusted-proxy: 10.0.0.0/33\nmcpServers: {a: {command: cat}}\n", []string{"--trusted-proxy", "10.0.0.0/8"}, exitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, "check", "--config", configFile(t, t.TempDir(), c.file))
			if code := r.exit(); code != c.code {
				t.Errorf("exit code %d", code)
			}
			out, log := r.text()
			for _, want := range c.want {
				if !strings.Contains(out+log, want) {
					t.Errorf("no %q in %s%s", want, out, log)
				}
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	path := configFile(t, t.TempDir(), "keepalive: 1s\ndrain: 1s\nallowed-host: [a.example, b.example]\nmax-sessions: 7\nmcpServers: {a: {command: cat}}\n")
	t.Setenv("SIGNALBOX_DRAIN", "2s")
	t.Setenv("SIGNALBOX_SESSION_IDLE", "2m")
	t.Setenv("SIGNALBOX_ALLOWED_HOST", "c.example")
	grammar, _, _, err := parse([]string{"serve", "--config", path, "--max-sessions", "9", "--drain", "3s"}, streams{})
	if err != nil {
		t.Fatal(err)
	}
	c := grammar.Serve
	got := fmt.Sprintln(c.Keepalive, c.Drain, c.SessionIdle, c.AllowedHost, c.MaxSessions, c.Listen)
	if want := "1s 3s 2m0s [c.example] 9 127.0.0.1:8080\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	t.Setenv("SIGNALBOX_CONFIG", path)
	if grammar, _, _, err = parse([]string{"serve"}, streams{}); err != nil || grammar.Serve.MaxSessions != 7 || len(grammar.Serve.file.Servers) != 1 {
		t.Errorf("by the environment: %+v, %v", grammar.Serve, err)
	}
}

// The rule that filters the list guards the call.
func TestToolsAreFiltered(t *testing.T) {
	_, base := serveFile(t, configFile(t, t.TempDir(), `
mcpServers:
  own: {SELF, tools: {allow: [read*], deny: [read_all]}}
  shared: {SELF, isolation: shared, disabledTools: [write, read_all]}
  all: {SELF}
`))
	for name, want := range map[string]string{"own": `[{"name":"read", "n":1.0}]`, "shared": `[{"name":"read", "n":1.0}]`, "all": `[{"name":"read", "n":1.0},{"name":"write"},{"name":"read_all"}]`} {
		url := base + "/servers/" + name + "/mcp"
		session := openAt(t, url)
		_, list, _ := post(t, url, session, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if list != `{"jsonrpc":"2.0","id":1,"result":{"tools":`+want+`,"x":1e400}}` {
			t.Errorf("%s: %s", name, list)
		}
		for tool, allowed := range map[string]bool{"read": true, "write": name == "all", `r\u0065ad_all`: name == "all"} {
			_, answer, _ := post(t, url, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"`+tool+`"}}`)
			if strings.Contains(answer, `"result"`) != allowed || !allowed && !strings.Contains(answer, `"reason":"policy"`) {
				t.Errorf("%s, call of %s: %s", name, tool, answer)
			}
		}
	}
}
