package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	seals "github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/config"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A state that was sealed before the key was changed is good for as long as the old
// key is given.
func TestOldStateKey(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Repeat(name, 32)), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ring := func(c serveCmd) *seals.Ring {
		t.Helper()
		keys, err := c.secrets()
		if err != nil {
			t.Fatal(err)
		}
		e, err := newEras(keys.state, keys.old)
		if err != nil {
			t.Fatal(err)
		}
		return e.ring
	}
	msg, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}`))
	if err != nil {
		t.Fatal(err)
	}
	req := upstream.NewRequest(msg)
	b := seals.Bind("s", &req)
	sealed := []byte(ring(serveCmd{StateKeyFile: file("a")}).Seal(b, seals.Parked, []byte("x"), 0))
	if _, _, err := ring(serveCmd{StateKeyFile: file("b")}).Open(b, sealed); err != seals.ErrState {
		t.Errorf("without the old key: %v", err)
	}
	if _, got, err := ring(serveCmd{StateKeyFile: file("b"), OldStateKeyFile: file("a")}).Open(b, sealed); err != nil || string(got) != "x" {
		t.Errorf("with the old key: %q %v", got, err)
	}
}

// What a server is told of who asks keeps sessions and processes apart.
func TestScope(t *testing.T) {
	s := spec{Server: config.Server{ForwardHeaders: []string{"X-Tenant"}, HeaderEnv: map[string]string{"TOKEN": "X-Token"}}}
	of := func(headers ...string) string {
		h := make(http.Header)
		for _, kv := range headers {
			k, v, _ := strings.Cut(kv, ": ")
			h.Add(k, v)
		}
		return scope(s, upstream.Request{Header: h})
	}
	seen := make(map[string]string)
	for _, headers := range [][]string{{}, {"X-Tenant: a"}, {"X-Tenant: b"}, {"X-Token: a"}, {"X-Tenant: a", "X-Token: a"}, {"X-Tenant: a", "X-Tenant: a"}, {"X-Tenant: aa"}} {
		text := of(headers...)
		if other, twice := seen[text]; twice {
			t.Errorf("%v and %s have one scope", headers, other)
		}
		seen[text] = strings.Join(headers, ", ")
	}
	if of("X-Tenant: a") != of("X-Tenant: a", "X-Other: b") {
		t.Error("a header that the server is not told makes another scope")
	}
	if scope(spec{}, upstream.Request{Header: http.Header{"X-Tenant": {"a"}}}) != "" {
		t.Error("a server that is told nothing has scopes")
	}
}
