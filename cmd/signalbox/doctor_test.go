package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/doctor"
)

// examined runs signalbox doctor and returns its exit code and output.
func examined(t *testing.T, args ...string) (int, string, string) {
	t.Helper()
	r := start(t, append([]string{"doctor"}, args...)...)
	code := r.exit()
	out, err := r.text()
	return code, out, err
}

// TestDoctorCommand: a real process, with the environment that serve would give.
func TestDoctorCommand(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, out, _ := examined(t, "--env", childMode+"=1", "--", exe)
	for _, want := range []string{": well\n", "handshake, 2025-06-18", "server     t 1", "1 server: 1 well, 0 unwell"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestDoctorFile: every server of a file in its order, its variables expanded,
// and no secret in what is printed.
func TestDoctorFile(t *testing.T) {
	t.Setenv("SIGNALBOX_TEST_TOKEN", "s3cret-token")
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte("not with " + r.Header.Get("Authorization")))
	}))
	defer denied.Close()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "servers.yaml")
	if err := os.WriteFile(file, []byte(`
mcpServers:
  crm:
    url: `+denied.URL+`/mcp?key=s3cret-key
    headers: {Authorization: "Bearer ${SIGNALBOX_TEST_TOKEN}"}
    endpoints: [`+denied.URL+`]
  good: {command: "`+exe+`", env: {`+childMode+`: "1"}}
  gone: {command: no-such-program, args: [--token, s3cret-arg]}
  off: {command: no-such-program, disabled: true}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := examined(t, "--json", "--config", file)
	if code != exitError || strings.Contains(out, "s3cret") {
		t.Errorf("exit code %d, prints\n%s", code, out)
	}
	var all struct{ Servers []doctor.Report }
	if err := json.Unmarshal([]byte(out), &all); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range all.Servers {
		kind := "well"
		if r.Finding != nil {
			kind = r.Finding.Case
		}
		got = append(got, r.Server+" "+kind)
	}
	if text := strings.Join(got, ", "); text != "crm credential-refused, good well, gone command-missing" {
		t.Error(text)
	}
	code, text, errText := examined(t, "--config", file)
	if code != exitError || errText != "" || strings.Contains(text, "s3cret") || !strings.Contains(text, "3 servers: 1 well, 2 unwell\n") {
		t.Errorf("exit code %d, prints\n%s%s", code, text, errText)
	}
}

// TestDoctorWrongUsage: exit code 2, and nothing is started.
func TestDoctorWrongUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args string
		want string
	}{
		"no server":           {"", "signalbox doctor"},
		"mistyped flag":       {"--jsn -- cat", `"--json"`},
		"behind it":           {"cat --json", "signalbox doctor --json"},
		"URL with password":   {"http://u:s3cret@localhost/mcp", "--header"},
		"no such file":        {"--config /nowhere/at/all", "/nowhere/at/all"},
		"negative time":       {"--start-timeout=-5s -- cat", "more than 0"},
		"header that is none": {"--header K http://localhost/mcp", "Name: value"},
		"two servers":         {"http://localhost/mcp http://localhost/mcp", "only one server"},
	} {
		code, out, errText := examined(t, strings.Fields(c.args)...)
		if code != exitUsage || out != "" || !strings.Contains(errText, c.want) || strings.Contains(errText, "s3cret") {
			t.Errorf("%s: exit code %d, %q %q", name, code, out, errText)
		}
	}
}
