package main

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// command runs signalbox to its end.
func command(t *testing.T, args ...string) (code int, out, err string) {
	t.Helper()
	r := start(t, args...)
	code = r.exit()
	out, err = r.text()
	return code, out, err
}

func TestOperate(t *testing.T) {
	r, base := serve(t, "--admin-listen", "127.0.0.1:0")
	admin := strings.TrimSuffix(r.await(`status page      (http://\S+)`), "/status")
	if code, out, err := command(t, "sessions", "--admin", admin); code != exitOK || out != "no sessions\n" || err != "" {
		t.Errorf("before any: %d %q %q", code, out, err)
	}
	ended, kept := open(t, base), open(t, base)
	hash := session.ShortHash(ended)
	code, out, _ := command(t, "sessions", "--admin", admin+"/")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitOK || len(lines) != 3 || !strings.HasPrefix(lines[0], "SESSION ") || !strings.HasPrefix(lines[1], hash+"  ") || !strings.Contains(lines[1], " t 1 ") || !strings.Contains(lines[1], " 2025-06-18 ") {
		t.Errorf("sessions: %d\n%s", code, out)
	}
	for _, args := range [][]string{{"sessions", "--json"}, {"sessions", "list", "--json"}} {
		var list struct {
			Sessions []struct{ Session, Client string }
		}
		if code, out, _ := command(t, append(args, "--admin", admin)...); code != exitOK || json.Unmarshal([]byte(out), &list) != nil || len(list.Sessions) != 2 || list.Sessions[1].Session != session.ShortHash(kept) {
			t.Errorf("%v: %d %s", args, code, out)
		}
	}
	if code, out, _ := command(t, "servers", "--admin", admin); code != exitOK || !strings.HasPrefix(out, "SERVER ") || !strings.Contains(out, "  stdio, auto  working  2  ") {
		t.Errorf("servers: %d\n%s", code, out)
	}
	if code, out, _ := command(t, "servers", "--json", "--admin", admin); code != exitOK || !strings.Contains(out, `"state": "working"`) {
		t.Errorf("servers: %d\n%s", code, out)
	}
	if code, out, _ := command(t, "sessions", "end", hash, "--admin", admin); code != exitOK || out != "session "+hash+" has ended\n" {
		t.Errorf("end: %d %s", code, out)
	}
	if code, _, err := command(t, "sessions", "end", hash, "--admin", admin); code != exitError || !strings.Contains(err, "no session of this hash") {
		t.Errorf("end it again: %d %s", code, err)
	}
	const echo = `{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}`
	if status, _, _ := post(t, base+"/mcp", ended, echo); status != http.StatusNotFound {
		t.Errorf("the session that was ended: %d", status)
	}
	if status, _, _ := post(t, base+"/mcp", kept, echo); status != http.StatusOK {
		t.Errorf("the other: %d", status)
	}
	if got := get(t, admin+"/api/v1/refusals"); !strings.Contains(got, `"reason":"session_not_found"`) {
		t.Errorf("refusals: %s", got)
	}
	if got := get(t, admin+"/status"); !strings.Contains(got, "<title>Signalbox status</title>") {
		t.Errorf("status: %.200s", got)
	}
}

func TestAdminToken(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a-token-of-some-length\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := serve(t, "--admin-listen", "0.0.0.0:0", "--admin-token-file", token)
	address := r.await(`status page      http://(\S+)/status`)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	admin := "http://127.0.0.1:" + port
	for _, path := range []string{"/status", "/metrics", "/api/v1/sessions"} {
		res, err := http.Get(admin + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without token: %d", path, res.StatusCode)
		}
	}
	if code, _, text := command(t, "servers", "--admin", admin); code != exitError || !strings.Contains(text, "--admin-token-file") {
		t.Errorf("without token: %d %s", code, text)
	}
	t.Setenv("SIGNALBOX_ADMIN_LISTEN", "0.0.0.0:"+port)
	t.Setenv("SIGNALBOX_ADMIN_TOKEN_FILE", token)
	if code, out, text := command(t, "servers"); code != exitOK || !strings.Contains(out, "unused") || text != "" {
		t.Errorf("with the environment of serve: %d %s %s", code, out, text)
	}
	if _, text := r.text(); strings.Contains(text, "a-token") {
		t.Error("the token stands in the log")
	}
}

func TestAdminMistakes(t *testing.T) {
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/sessions" {
			_, _ = w.Write([]byte("<html>"))
			return
		}
		http.Error(w, "\x1b[31mno", http.StatusTeapot)
	}))
	t.Cleanup(odd.Close)
	for name, c := range map[string]struct {
		args string
		code int
		want string
	}{
		"no URL":          {"servers --admin 127.0.0.1:9090", exitUsage, "--admin"},
		"a password":      {"servers --admin http://a:b@127.0.0.1:9090", exitUsage, "--admin"},
		"no hash":         {"sessions end", exitUsage, "hash"},
		"no hash of ours": {"sessions end ../../status", exitUsage, "eight hex digits"},
		"no token file":   {"servers --admin-token-file /nonexistent", exitUsage, "--admin-token-file"},
		"a mistyped flag": {"sessions --jsn", exitUsage, "--json"},
		"nobody there":    {"sessions --admin http://127.0.0.1:1", exitError, "no signalbox answers at http://127.0.0.1:1: "},
		"something else":  {"sessions --admin " + odd.URL, exitError, "no signalbox"},
		"something odd":   {"servers --admin " + odd.URL, exitError, "418 I'm a teapot: \ufffd[31mno"},
	} {
		code, out, err := command(t, strings.Fields(c.args)...)
		if code != c.code || out != "" || !strings.Contains(err, c.want) || strings.Contains(err, "\x1b") {
			t.Errorf("%s: %d %q %q", name, code, out, err)
		}
	}
}

func TestAdminAt(t *testing.T) {
	for listen, want := range map[string]string{
		"": defaultAdmin, ":9091": "http://127.0.0.1:9091", "0.0.0.0:1": "http://127.0.0.1:1", "[::]:2": "http://127.0.0.1:2",
		"[::1]:3": "http://[::1]:3", "localhost:4": "http://localhost:4", "10.0.0.7:5": "http://10.0.0.7:5",
	} {
		if got, err := adminAt(listen); got != want || err != nil {
			t.Errorf("%q: %s, %v, want %s", listen, got, err, want)
		}
	}
	if _, err := adminAt("9090"); err == nil {
		t.Error("a port alone is taken")
	}
}

func TestTextsOfPeersInTables(t *testing.T) {
	for text, want := range map[string]string{
		"": "-", "editor": "editor", "\x1b[2J\nx\t": "\ufffd[2J\ufffdx\ufffd", "a\u202eb": "a\ufffdb", strings.Repeat("ä", 70): strings.Repeat("ä", 59) + "…",
	} {
		if got := cell(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for seconds, want := range map[float64]string{0.4: "0s", 59.9: "59s", 61: "1m01s", 3 * 3600: "3h00m", 90000: "1d01h"} {
		if got := span(seconds); got != want {
			t.Errorf("%v s: %s, want %s", seconds, got, want)
		}
	}
}
