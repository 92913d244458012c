package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// TestAuthAuditLog: who called what stands in a file, which SIGHUP opens anew.
func TestAuthAuditLog(t *testing.T) {
	box.NeedProc(t) // and signals
	keys := newKeyFile(t)
	alice := keys.add("alice")
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	b := box.Start(t, []string{"--auth-keys", keys.path, "--audit-log", path}, fakeServer(t)...)
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	s, err := clientOf(t, b, alice).Streamable(ctx, rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	call := func(id, tool string) {
		t.Helper()
		if _, err := s.Call(ctx, id, "tools/call", `{"name":"`+tool+`","arguments":{"key":"hunter2"}}`); err != nil {
			t.Fatal(err)
		}
	}
	has := func(path string, want ...string) func() string {
		return func() string {
			text, err := os.ReadFile(path)
			if err != nil {
				return err.Error()
			}
			for _, secret := range []string{alice, s.ID, "hunter2"} {
				if strings.Contains(string(text), secret) {
					t.Errorf("a secret is in the audit log: %s", text)
				}
			}
			for _, w := range want {
				if !strings.Contains(string(text), w) {
					return string(text)
				}
			}
			return "all"
		}
	}
	call("1", "get")
	eventuallyWithin(t, 10*time.Second, "the call is in the file", "all",
		has(path, `"event":"opened","principal":"key alice"`, `"method":"tools/call","tool":"get","outcome":"ok"`))
	old := path + ".1"
	if err := os.Rename(path, old); err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(b.PID)
	if err == nil {
		err = process.Signal(syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
	eventuallyWithin(t, 10*time.Second, "there is a new file", "all", has(path))
	call("2", "no-such-tool")
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	eventuallyWithin(t, 10*time.Second, "the rest is in the new file", "all",
		has(path, `"tool":"no-such-tool","outcome":"error"`, `"event":"ended","principal":"key alice"`))
}
