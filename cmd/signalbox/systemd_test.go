package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const unitFile = deployDir + "/systemd/signalbox.service"

// unit reads a unit file: [Section]Key to its values.
func unit(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	settings, section := make(map[string][]string), ""
	for n, line := range strings.Split(string(text), "\n") {
		switch key, value, ok := strings.Cut(line, "="); {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line
		case !ok || section == "":
			t.Errorf("%s:%d: %q is no setting", unitFile, n+1, line)
		default:
			settings[section+key] = append(settings[section+key], value)
		}
	}
	return settings
}

func TestSystemdUnit(t *testing.T) {
	u := unit(t)
	one := func(key string) string {
		if len(u[key]) != 1 {
			t.Fatalf("%s has the values %q", key, u[key])
		}
		return u[key][0]
	}
	// Its commands are what signalbox takes, with a configuration in the place of that in /etc.
	config := configFile(t, t.TempDir(), "mcpServers: {a: {command: cat}}")
	command := func(key string) []string {
		words := strings.Fields(strings.ReplaceAll(one(key), "/etc/signalbox/signalbox.yaml", config))
		if words[0] != "/usr/local/bin/signalbox" {
			t.Errorf("%s runs %s", key, words[0])
		}
		return words[1:]
	}
	r := start(t, command("[Service]ExecStartPre")...)
	if code := r.exit(); code != exitOK {
		_, text := r.text()
		t.Errorf("ExecStartPre: exit code %d: %s", code, text)
	}
	grammar, _, _, err := parse(command("[Service]ExecStart"), streams{})
	if err == nil {
		_, err = grammar.Serve.check()
	}
	if err != nil {
		t.Errorf("ExecStart: %v", err)
	}
	stop, err := time.ParseDuration(one("[Service]TimeoutStopSec"))
	if need := grammar.Serve.Drain + 2*flushTime + stopTime; err != nil || stop <= need {
		t.Errorf("TimeoutStopSec: %v, it may need %v: %v", stop, need, err)
	}
	if one("[Service]RestartPreventExitStatus") != "2" || exitUsage != 2 {
		t.Error("a wrong configuration is tried again and again")
	}
	for key, want := range map[string]string{
		"DynamicUser": "yes", "NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict", "ProtectHome": "yes",
		"PrivateTmp": "yes", "PrivateDevices": "yes", "RestrictNamespaces": "yes", "SystemCallFilter": "@system-service", "KillMode": "mixed", "Type": "exec",
	} {
		if got := one("[Service]" + key); got != want {
			t.Errorf("%s=%s, want %s", key, got, want)
		}
	}
	if home := one("[Service]Environment"); !slices.Contains(strings.Fields(home), "HOME=%S/"+one("[Service]StateDirectory")) {
		t.Errorf("servers get %s, which is not the folder that they may write to", home)
	}
}

// TestSystemdVerifies: systemd itself knows every setting. The program that it
// looks for is not installed here, so the unit names this test's.
func TestSystemdVerifies(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here")
	}
	text, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "signalbox.service")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), "/usr/local/bin/signalbox", self)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", "--recursive-errors=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "signalbox.service:") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
