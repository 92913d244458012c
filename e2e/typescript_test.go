package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// overBothTransports runs a test with each HTTP transport of the TypeScript SDK. The
// sessions of both end by themselves, and their processes with them.
func overBothTransports(t *testing.T, flags, command []string, test func(t *testing.T, b *box.Box, transport string)) {
	for _, transport := range []string{"streamable", "sse"} {
		t.Run(transport, func(t *testing.T) {
			b := box.Start(t, flags, command...)
			test(t, b, transport)
			b.EventuallyMetric(t, box.MetricSessions, 0)
			b.EventuallyMetric(t, box.MetricProcesses, 0)
		})
	}
}

func TestTypeScriptEverything(t *testing.T) {
	command := npmServer(t, "server-everything", "stdio")
	overBothTransports(t, nil, command, func(t *testing.T, b *box.Box, transport string) {
		var seen everything
		typescript(t, "everything.mjs", transport, b, &seen)
		seen.check(t)
	})
}

// everything is what clients/everything.mjs prints.
type everything struct {
	Server      string
	Tools       []string
	Echo        string
	Sum         string
	Structured  json.RawMessage
	Prompt      string
	Resource    string
	Progress    [][2]int
	Long        string
	Sampling    string
	Elicitation string
	Roots       string
	Asked       []string
	Log         struct{ Level, Data string }
	Updated     struct{ URI string }
	Cancelled   string
}

func (e everything) check(t *testing.T) {
	equal := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	contains := func(what, got, want string) {
		t.Helper()
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, which does not contain %q", what, got, want)
		}
	}
	equal("server", e.Server, "mcp-servers/everything")
	equal("echo", e.Echo, "Echo: héllo\u2028🚦")
	equal("get-sum", e.Sum, "The sum of 2 and 40 is 42.")
	equal("structured content", string(e.Structured), `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`)
	equal("prompt", e.Prompt, "This is a simple prompt without arguments.")
	equal("resource", e.Resource, "demo://resource/dynamic/text/7")
	equal("long call", e.Long, "Long running operation completed. Duration: 0.3 seconds, Steps: 3.")
	equal("updated resource", e.Updated.URI, "demo://resource/dynamic/text/1")
	contains("sampling", e.Sampling, "sampled: Resource trigger-sampling-request context: why?")
	contains("elicitation", e.Elicitation, "Ada Lovelace")
	contains("roots", e.Roots, "file:///srv/e2e-root")
	contains("log message", strings.ToLower(e.Log.Data), "level")
	contains("cancelled call", e.Cancelled, "enough")
	if want := []string{"elicitation/create", "roots/list", "sampling/createMessage"}; !slices.Equal(e.Asked, want) {
		t.Errorf("asked of the client: got %q, want %q", e.Asked, want)
	}
	// Registered only after the server has seen the client's capabilities.
	for _, tool := range []string{"get-roots-list", "trigger-elicitation-request", "trigger-sampling-request"} {
		if !slices.Contains(e.Tools, tool) {
			t.Errorf("the list of tools lacks %s: %q", tool, e.Tools)
		}
	}
	// The SDK forgets a call's progress handler as soon as it reads the response, also
	// where the last notification came right before it.
	all := [][2]int{{1, 3}, {2, 3}, {3, 3}}
	if n := len(e.Progress); n < 2 || n > 3 || !slices.Equal(e.Progress, all[:n]) {
		t.Errorf("progress: got %v, want %v, the last one at the SDK's discretion", e.Progress, all)
	}
}

func TestTypeScriptMemory(t *testing.T) {
	flags := []string{"--env", "MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.jsonl")}
	overBothTransports(t, flags, npmServer(t, "server-memory"), func(t *testing.T, b *box.Box, transport string) {
		var seen struct {
			Server string
			Tools  []string
			Found  struct {
				Entities []struct{ Name string }
			}
		}
		typescript(t, "memory.mjs", transport, b, &seen)
		if seen.Server != "memory-server" || !slices.Contains(seen.Tools, "create_entities") {
			t.Errorf("server %q has tools %q", seen.Server, seen.Tools)
		}
		if found := seen.Found.Entities; len(found) != 1 || found[0].Name != "signal box" {
			t.Errorf("found %v", found)
		}
	})
}

func TestTypeScriptFilesystem(t *testing.T) {
	directory, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	overBothTransports(t, nil, npmServer(t, "server-filesystem", directory), func(t *testing.T, b *box.Box, transport string) {
		var seen struct {
			Server  string
			Tools   []string
			Read    string
			Refused bool
			Asked   string
		}
		typescript(t, "filesystem.mjs", transport, b, &seen, "--directory", directory)
		if seen.Server != "secure-filesystem-server" || !slices.Contains(seen.Tools, "write_file") {
			t.Errorf("server %q has tools %q", seen.Server, seen.Tools)
		}
		if want := "écrit\r\nby a client\u2028"; seen.Read != want {
			t.Errorf("read %q, want %q", seen.Read, want)
		}
		if !seen.Refused {
			t.Error("a file outside of the roots was read")
		}
		if seen.Asked != "roots/list" {
			t.Errorf("the client was asked for %q, want roots/list", seen.Asked)
		}
	})
}
