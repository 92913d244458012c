package e2e

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// keyFile is a file of static keys that may change under a running Box.
type keyFile struct {
	t       *testing.T
	path    string
	entries map[string]string // name → entry
}

func newKeyFile(t *testing.T) *keyFile {
	return &keyFile{t: t, path: filepath.Join(t.TempDir(), "keys.yaml"), entries: make(map[string]string)}
}

// add has `signalbox key new` make a key, and writes the file anew.
func (f *keyFile) add(name string, flags ...string) (key string) {
	f.t.Helper()
	out, stderr, code := box.Run(f.t, append([]string{"key", "new", name}, flags...)...)
	lines := strings.SplitN(out, "\n", 3)
	if code != 0 || len(lines) != 3 || lines[1] != "" {
		f.t.Fatalf("key new: code %d, stdout %q, stderr %q", code, out, stderr)
	}
	f.entries[name] = lines[2]
	f.write()
	return lines[0]
}

func (f *keyFile) remove(name string) {
	f.t.Helper()
	delete(f.entries, name)
	f.write()
}

// write replaces the file in one step, as editors and Kubernetes do.
func (f *keyFile) write() {
	f.t.Helper()
	var text strings.Builder
	for _, entry := range f.entries {
		text.WriteString(entry)
	}
	next := f.path + ".new"
	if err := os.WriteFile(next, []byte(text.String()), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, f.path); err != nil {
		f.t.Fatal(err)
	}
}

// clientOf is a client that sends a credential with each request.
func clientOf(t *testing.T, b *box.Box, key string) *rawclient.Client {
	c := rawclient.New(b.URL)
	c.Header.Set("Authorization", "Bearer "+key)
	t.Cleanup(c.Close)
	return c
}

// answer is an HTTP answer without what differs by chance.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request and reads the answer to its end.
func ask(t *testing.T, c *rawclient.Client, method, path, body string, headers ...string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	for i := 0; i < len(headers); i += 2 {
		h[http.CanonicalHeaderKey(headers[i])] = []string{headers[i+1]}
	}
	resp, err := c.Do(ctx, method, path, h, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Header.Del("Date")
	return answer{resp.StatusCode, resp.Header, string(text)}
}

func (a answer) same(b answer) bool {
	return a.status == b.status && a.body == b.body && slices.EqualFunc(sorted(a.header), sorted(b.header), func(x, y string) bool { return x == y })
}

func sorted(h http.Header) (lines []string) {
	for name, values := range h {
		lines = append(lines, name+": "+strings.Join(values, ", "))
	}
	slices.Sort(lines)
	return lines
}

const (
	pingBody = `{"jsonrpc":"2.0","id":7,"method":"ping"}`
	initBody = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
)

// TestAuthOwnership: a session is its principal's alone. To anybody else it is one that
// does not exist, to the byte, whatever is asked and over whichever transport.
func TestAuthOwnership(t *testing.T) {
	keys := newKeyFile(t)
	alice, mallory := keys.add("alice"), keys.add("mallory")
	b := box.Start(t, []string{"--auth-keys", keys.path}, fakeServer(t)...)
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	hers, thief := clientOf(t, b, alice), clientOf(t, b, mallory)

	own, err := hers.Streamable(ctx, rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	held, err := own.Start(ctx, []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold","arguments":{"key":"k"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	position, err := held.NextEvent() // a stream of 2025-11-25 begins with an event id
	if err != nil || position.ID == "" {
		t.Fatalf("first event %+v, %v", position, err)
	}
	old, err := hers.Legacy(ctx, rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	oldID := old.Endpoint[strings.Index(old.Endpoint, "=")+1:]

	theirs, err := thief.Streamable(ctx, rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const unknown = "AAAAAAAAAAAAAAAAAAAAAA"
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string // ID is the session id
	}{
		{"POST of a request", "POST", "/mcp", pingBody, []string{"Mcp-Session-Id", "ID"}},
		{"POST of a notification", "POST", "/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, []string{"Mcp-Session-Id", "ID"}},
		{"POST of a response", "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"result":{}}`, []string{"Mcp-Session-Id", "ID"}},
		{"POST of a batch", "POST", "/mcp", "[" + pingBody + "]", []string{"Mcp-Session-Id", "ID"}},
		{"POST of rubbish", "POST", "/mcp", "{", []string{"Mcp-Session-Id", "ID"}},
		{"GET", "GET", "/mcp", "", []string{"Mcp-Session-Id", "ID", "Accept", "text/event-stream"}},
		{"resume", "GET", "/mcp", "", []string{"Mcp-Session-Id", "ID", "Accept", "text/event-stream", "Last-Event-ID", position.ID}},
		{"DELETE", "DELETE", "/mcp", "", []string{"Mcp-Session-Id", "ID"}},
		{"another path of the server", "POST", "/servers/fakeserver/mcp", pingBody, []string{"Mcp-Session-Id", "ID"}},
		{"its id at /messages", "POST", "/messages?session_id=ID", pingBody, nil},
		{"/messages", "POST", "/messages?session_id=OLD", pingBody, nil},
		{"/messages, the other name", "POST", "/messages?sessionId=OLD", pingBody, nil},
		{"the id of /messages as Mcp-Session-Id", "POST", "/mcp", pingBody, []string{"Mcp-Session-Id", "OLD"}},
		{"DELETE with the id of /messages", "DELETE", "/mcp", "", []string{"Mcp-Session-Id", "OLD"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			with := func(own, old string) answer {
				put := strings.NewReplacer("ID", own, "OLD", old)
				headers := slices.Clone(c.headers)
				for i := 1; i < len(headers); i += 2 {
					if headers[i] == "ID" || headers[i] == "OLD" {
						headers[i] = put.Replace(headers[i])
					}
				}
				path := strings.NewReplacer("=ID", "="+own, "=OLD", "="+old).Replace(c.path)
				return ask(t, thief, c.method, path, c.body, headers...)
			}
			stolen, nobodys := with(own.ID, oldID), with(unknown, unknown)
			if !stolen.same(nobodys) {
				t.Errorf("somebody else's session is answered with\n%+v, an unknown one with\n%+v", stolen, nobodys)
			}
			if stolen.status != http.StatusNotFound || !strings.Contains(stolen.body, `"code":-32001`) {
				t.Errorf("got %d %s", stolen.status, stolen.body)
			}
		})
	}
	t.Run("her position in a session of the thief", func(t *testing.T) {
		got := ask(t, thief, "GET", "/mcp", "", "Mcp-Session-Id", theirs.ID, "Accept", "text/event-stream", "Last-Event-ID", position.ID)
		if got.status != http.StatusBadRequest {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})

	// Nothing of this touched her: the call ends with its answer, on both transports.
	if _, err := own.Call(ctx, "2", "tools/call", `{"name":"release","arguments":{"key":"k"}}`); err != nil {
		t.Errorf("her session: %v", err)
	}
	for {
		m, err := held.Next()
		if err != nil {
			t.Fatalf("her call has no answer: %v", err)
		}
		if m.IsResponse() {
			if m.Result == nil {
				t.Errorf("her call ended with %s", m.Raw)
			}
			break
		}
	}
	if m, err := old.Call(ctx, "3", "ping", "{}"); err != nil || m.Result == nil {
		t.Errorf("her session over HTTP+SSE: %s, %v", m.Raw, err)
	}
	for _, close := range []func(context.Context) error{own.Close, old.Close, theirs.Close} {
		if err := close(ctx); err != nil {
			t.Error(err)
		}
	}
	b.EventuallyMetric(t, box.MetricSessions, 0)
}

// TestAuthKeyFile: keys come and go while clients work, and a key is one however it
// is sent.
func TestAuthKeyFile(t *testing.T) {
	keys := newKeyFile(t)
	alice := keys.add("alice")
	b := box.Start(t, []string{"--auth-keys", keys.path}, fakeServer(t)...)
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	hers := clientOf(t, b, alice)
	own, err := hers.Streamable(ctx, rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain := rawclient.New(b.URL)
	defer plain.Close()
	if got := ask(t, plain, "POST", "/mcp", pingBody, "Mcp-Session-Id", own.ID, "X-API-Key", alice); got.status != http.StatusOK {
		t.Errorf("the same key as X-API-Key: %d %s", got.status, got.body)
	}
	if got := ask(t, plain, "POST", "/mcp", pingBody, "Mcp-Session-Id", own.ID); got.status != http.StatusUnauthorized {
		t.Errorf("the session id alone: %d %s", got.status, got.body)
	}

	status := func(key string) func() string {
		return func() string {
			return http.StatusText(ask(t, plain, "POST", "/mcp", pingBody, "Mcp-Session-Id", own.ID, "Authorization", "Bearer "+key).status)
		}
	}
	bob := keys.add("bob")
	eventuallyWithin(t, 10*time.Second, "bob's key is known, and the session not his", "Not Found", status(bob))
	// A second key of the same name would be the same principal; a replaced one is.
	again := keys.add("alice")
	eventuallyWithin(t, 10*time.Second, "the new key of alice keeps her session", "OK", status(again))
	eventuallyWithin(t, 10*time.Second, "the old key of alice is no more", "Unauthorized", status(alice))
	keys.remove("bob")
	eventuallyWithin(t, 10*time.Second, "bob's key is no more", "Unauthorized", status(bob))

	if err := os.WriteFile(keys.path, []byte("- name: [broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.AwaitLog(keyFileBad); err != nil {
		t.Error(err)
	}
	if got := status(again)(); got != "OK" {
		t.Errorf("with a broken key file: %s", got)
	}
	for _, line := range b.Log() {
		for _, secret := range []string{alice, again, bob, own.ID} {
			if strings.Contains(line, secret) {
				t.Errorf("a secret is in the log: %s", line)
			}
		}
	}
}
