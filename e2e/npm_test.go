package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// npmFile is the path of a file in one of the installed packages.
func npmFile(t testing.TB, elem ...string) string {
	t.Helper()
	path := filepath.Join(append([]string{box.E2E(), "npm", "node_modules"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; hint: run `npm ci` in e2e/npm", err)
	}
	return path
}

// npmServer is the command line of one of the reference servers.
func npmServer(t testing.TB, name string, args ...string) []string {
	t.Helper()
	return append([]string{"node", npmFile(t, "@modelcontextprotocol", name, "dist", "index.js")}, args...)
}

// typescript runs a client script against a Box and decodes what it prints.
func typescript(t *testing.T, script, transport string, b *box.Box, into any, args ...string) {
	t.Helper()
	runTypescript(t, script, into, append([]string{"--transport", transport, "--url", b.URL}, args...)...)
}

func runTypescript(t *testing.T, script string, into any, args ...string) {
	t.Helper()
	npmFile(t, "@modelcontextprotocol", "sdk", "package.json")
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("clients", script)}, args...)...)
	cmd.Dir = filepath.Join(box.E2E(), "npm")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := errors.Join(cmd.Run(), ctx.Err()); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", script, strings.Join(args, " "), err, stdout.String(), stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
		t.Fatalf("%s printed %q: %v", script, stdout.String(), err)
	}
}
