package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// TestMixedConfiguration has the reference server three times in one file, by a command
// and over both HTTP transports. Clients of both SDKs use all three over both transports
// at the same time.
func TestMixedConfiguration(t *testing.T) {
	command := npmServer(t, "server-everything", "stdio")
	names := []string{"by-command", "by-http", "by-sse"}
	b := box.StartConfig(t, fmt.Sprintf(`{"mcpServers": {
		"by-command": {"command": %q, "args": [%q, %q]},
		"by-http": {"type": "http", "url": "%s/mcp"},
		"by-sse": {"type": "sse", "url": "%s/sse"},
	}}`, command[0], command[1], command[2],
		httpServer(t, "server-everything", "streamableHttp"), httpServer(t, "server-everything", "sse")))
	t.Run("clients", func(t *testing.T) {
		for _, name := range names {
			url := b.URL + "/servers/" + name
			for transport, connect := range goTransports {
				t.Run(name+", typescript, "+transport, func(t *testing.T) {
					t.Parallel()
					var seen everything
					runTypescript(t, "everything.mjs", &seen, "--transport", transport, "--url", url)
					seen.check(t)
				})
				t.Run(name+", go, "+transport, func(t *testing.T) {
					t.Parallel()
					testGoEverything(t, connectGo(t, connect(url)))
				})
			}
		}
	})
	b.EventuallyMetric(t, box.MetricSessions, 0)
	b.EventuallyMetric(t, box.MetricProcesses, 0)
}

func testGoEverything(t *testing.T, c *goClient) {
	tools, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "trigger-sampling-request" }) {
		t.Errorf("no tool for sampling among %d", len(tools.Tools))
	}
	for i := range 20 {
		message := fmt.Sprintf("%s %d", t.Name(), i)
		if got := c.text(t, "echo", map[string]any{"message": message}); got != "Echo: "+message {
			t.Errorf("echo %q: %q", message, got)
		}
	}
	got := c.text(t, "trigger-sampling-request", map[string]any{"prompt": "why?", "maxTokens": 5})
	if !strings.Contains(got, "sampled") {
		t.Errorf("sampling: %q", got)
	}
	if err := c.session.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// text calls a tool and returns the text of its result.
func (c *goClient) text(t *testing.T, name string, arguments map[string]any) string {
	t.Helper()
	result, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	var texts []string
	for _, part := range result.Content {
		if text, ok := part.(*mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}
