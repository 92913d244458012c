package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// TestEraSDKs has clients of three SDKs and both eras use server-everything, which speaks
// the handshake era only, through one Signalbox at the same time. Each answers
// elicitation and sampling.
func TestEraSDKs(t *testing.T) {
	b := box.Start(t, nil, npmServer(t, "server-everything", "stdio")...)
	t.Run("at once", func(t *testing.T) {
		for _, transport := range []string{"streamable", "sse"} {
			t.Run("typescript v1, "+transport, func(t *testing.T) {
				t.Parallel()
				var seen everything
				typescript(t, "everything.mjs", transport, b, &seen)
				seen.check(t)
			})
		}
		for mode, revision := range map[string]string{"legacy": handshake, perRequest: perRequest} {
			t.Run("typescript v2, "+mode, func(t *testing.T) {
				t.Parallel()
				testTypescriptV2(t, b, mode, revision)
			})
		}
		for _, revision := range []string{handshake, perRequest} {
			t.Run("go, "+revision, func(t *testing.T) {
				t.Parallel()
				testGoOnEverything(t, goEndpoint(b), revision)
			})
		}
	})
}

// TestEraSDKsDirect has those of the clients that can speak to server-everything without
// Signalbox do so, over its own HTTP transport.
func TestEraSDKsDirect(t *testing.T) {
	b := &box.Box{URL: httpServer(t, "server-everything", "streamableHttp")}
	t.Run("typescript v2", func(t *testing.T) { testTypescriptV2(t, b, "legacy", handshake) })
	t.Run("go", func(t *testing.T) { testGoOnEverything(t, goEndpoint(b), handshake) })
}

func testTypescriptV2(t *testing.T, b *box.Box, mode, revision string) {
	t.Helper()
	var seen struct {
		everything
		Revision string
	}
	runTypescript(t, "v2.mjs", &seen, "--url", b.URL, "--mode", mode)
	if seen.Revision != revision {
		t.Errorf("negotiated %s, want %s", seen.Revision, revision)
	}
	for what, is := range map[string]bool{
		"server":     seen.Server == "mcp-servers/everything",
		"echo":       seen.Echo == "Echo: héllo\u2028🚦",
		"sum":        seen.Sum == "The sum of 2 and 40 is 42.",
		"structured": string(seen.Structured) == `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`,
		"prompt":     seen.Prompt == "This is a simple prompt without arguments.",
		"resource":   seen.Resource == "demo://resource/dynamic/text/7",
		"long":       strings.HasPrefix(seen.Long, "Long running operation completed."),
		// The SDK forgets a call's progress handler as soon as it reads the response.
		"progress":    len(seen.Progress) >= 2,
		"sampling":    strings.Contains(seen.Sampling, "sampled: Resource trigger-sampling-request context: why?"),
		"elicitation": strings.Contains(seen.Elicitation, "Ada Lovelace"),
		"asked":       slices.Contains(seen.Asked, "elicitation/create") && slices.Contains(seen.Asked, "sampling/createMessage"),
	} {
		if !is {
			t.Errorf("%s: %+v", what, seen)
		}
	}
}

func testGoOnEverything(t *testing.T, transport mcp.Transport, revision string) {
	t.Helper()
	c := connectGoAt(t, transport, revision)
	defer c.session.Close()
	if got := c.session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("negotiated %s, want %s", got, revision)
	}
	// The server adds tools a moment after it has seen the client's capabilities.
	box.Eventually(t, "the server lists the tools that ask", func() string {
		tools, err := c.session.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools.Tools {
			if tool.Name == "trigger-sampling-request" {
				return ""
			}
		}
		return "not there"
	})
	for name, call := range map[string]struct {
		arguments map[string]any
		want      string
	}{
		"echo":                        {map[string]any{"message": "\u2028🚦"}, "Echo: \u2028🚦"},
		"get-sum":                     {map[string]any{"a": 2, "b": 40}, "The sum of 2 and 40 is 42."},
		"trigger-sampling-request":    {map[string]any{"prompt": "why?", "maxTokens": 5}, "sampled"},
		"trigger-elicitation-request": {map[string]any{}, "Ada"},
	} {
		text := c.text(t, name, call.arguments)
		if !strings.Contains(text, call.want) {
			t.Errorf("%s says %q, which does not contain %q", name, text, call.want)
		}
	}
}
