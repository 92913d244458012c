package doctor

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/child"
)

// TestStarts: what cannot be started has its sentence.
func TestStarts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("these are what Unix says")
	}
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	r := newRig(t)
	got := make(map[string]string)
	for name, spec := range map[string]child.Spec{
		"command missing":     {Args: []string{"no-such-program", "x"}},
		"file missing":        {Args: []string{"./no/such/file"}},
		"one word":            {Args: []string{"npx -y some-server --key s3cret-value"}},
		"line for a shell":    {Args: []string{"cd /opt/s && node server.js"}},
		"assignment":          {Args: []string{"API_KEY=s3cret-value node server.js"}},
		"not executable":      {Args: []string{file("plain.js", "#!/bin/sh\n", 0o644)}},
		"directory":           {Args: []string{dir}},
		"no first line":       {Args: []string{file("script", "import mcp\n", 0o755)}},
		"other machine":       {Args: []string{file("elf", "\x7fELF\x02\x01\x01\x00nothing", 0o755)}},
		"bad interpreter":     {Args: []string{file("bad", "#!/no/such/python3\n", 0o755)}},
		"interpreter with CR": {Args: []string{file("crlf", "#!/bin/sh\r\nexit\r\n", 0o755)}},
		"no directory":        {Args: []string{"/bin/sh"}, Dir: filepath.Join(dir, "gone")},
	} {
		spec.Name, spec.Env = "fake", []string{"PATH=/usr/bin:/bin"}
		report := Examine(context.Background(), Server{Name: "fake", Program: spec, StartTimeout: time.Minute, MaxMessage: 1 << 20}, r.o)
		got[name] = strings.ReplaceAll(sentence(report), dir, "DIR")
		if strings.Contains(got[name]+report.Target, "s3cret") {
			t.Errorf("%s: a secret is shown: %s %s", name, report.Target, got[name])
		}
	}
	golden(t, "starts.golden", got)
}

// TestEras: a server of the per-request era is well, and one that is said to be, and
// is not, is not.
func TestEras(t *testing.T) {
	r := newRig(t)
	if report := Examine(context.Background(), r.fake("per-request"), r.o); !report.Well {
		t.Errorf("%+v", report)
	}
	got := map[string]string{}
	modern := r.fake("good")
	modern.Era = "modern"
	got["era: modern, and it is not"] = sentence(Examine(context.Background(), modern, r.o))
	golden(t, "eras.golden", got)
}

// TestReport: all that is known of a good server.
func TestReport(t *testing.T) {
	r := newRig(t)
	got := Examine(context.Background(), r.fake("good with noise", "--api-key", "other-secret"), r.o)
	if got.StartMillis == 0 || !strings.HasSuffix(got.Target, ", 2 arguments") {
		t.Errorf("start %d ms, target %s", got.StartMillis, got.Target)
	}
	got.StartMillis, got.Target = 1234, "fake, 2 arguments"
	var text strings.Builder
	Print(&text, got)
	golden(t, "report.golden", map[string]string{"good with noise": text.String()})
	both := Examine(context.Background(), r.fake("per-request, handshake too"), r.o)
	if strings.Join(both.Eras, " ") != "per-request handshake" || strings.Join(both.Revisions, " ") != "2026-07-28 2025-06-18" || both.Name != "modern" || both.Tools.Count != 2 {
		t.Errorf("%+v", both)
	}
	if line := Summary([]Report{got, {}}); line != "2 servers: 1 well, 1 unwell" {
		t.Error(line)
	}
}

// TestStopped: an examination that is stopped leaves nothing behind.
func TestStopped(t *testing.T) {
	r := newRig(t)
	ctx, stop := context.WithCancel(context.Background())
	r.o.limit = func(ctx context.Context, _ string, _ time.Duration) (context.Context, context.CancelFunc) {
		go func() {
			<-r.settled
			stop()
		}()
		return context.WithCancel(ctx)
	}
	report := Examine(ctx, r.fake("silent"), r.o)
	if report.Well || report.Finding.Case != "stopped" || r.o.Supervisor.Running() != 0 {
		t.Errorf("%+v, %d processes", report.Finding, r.o.Supervisor.Running())
	}
}

// TestVeil: secrets are taken out in every spelling.
func TestVeil(t *testing.T) {
	s := Server{
		Secrets: []string{`pa"ss&word`, "-----BEGIN KEY-----\nMIIabcdef\n", "abc"},
		Header:  map[string][]string{"Authorization": {"Bearer tok.en-1"}, "Host": {"mcp.example.com"}},
		Program: child.Spec{Args: []string{"x", "--token", "argsecret", "--db-password=dbsecret", "plainarg"}},
	}
	for in, want := range map[string]string{
		`value pa"ss&word here`:                         "value *** here",
		`json pa\"ss\u0026word`:                         "json ***",
		"query pa%22ss%26word":                          "query ***",
		"MIIabcdef":                                     "***",
		"abc plainarg mcp.example.com":                  "abc plainarg mcp.example.com",
		"got tok.en-1":                                  "got ***",
		"argsecret dbsecret":                            "*** ***",
		"Authorization: Bearer unknown12345":            "Authorization: Bearer ***",
		"postgres://u:p@db/x?sslmode=1":                 "postgres://***@db/x?sslmode=***",
		"key sk-abcdefgh12 ghp_abcdefgh12":              "key *** ***",
		"API_KEY=abc12345":                              "API_KEY=***",
		"API_KEY: required by the server":               "API_KEY: required by the server",
		"red \x1b[31mtext\x1b[0m and \x07bell\tok":      "red text and ?bell ok",
		"a\x00r\x00g\x00s\x00e\x00c\x00r\x00e\x00t\x00": "***", // UTF-16
	} {
		if got := newVeil(s).text(in, 100); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if got := newVeil(s).text(strings.Repeat("x", 300), 10); got != "xxxxxxxxxx..." {
		t.Error(got)
	}
}

// TestNoise: a line of nothing is noise like any other.
func TestNoise(t *testing.T) {
	for name, line := range map[string][]byte{"zeros": make([]byte, 16), "blanks": []byte(strings.Repeat(" ", 16))} {
		var seen evidence
		seen.noise(newVeil(Server{}), line, nil)
		if seen.lines != 1 || len(seen.first) != 1 || seen.first[0] != "" {
			t.Errorf("%s: %+v", name, seen)
		}
	}
}
