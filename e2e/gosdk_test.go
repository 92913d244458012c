//lint:file-ignore SA1019 Sampling, roots and logging are deprecated as of 2026-07-28; here is a client of the revisions before.

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// goClient is a client of the Go SDK that answers every question.
type goClient struct {
	session  *mcp.ClientSession
	progress chan float64
	logs     chan *mcp.LoggingMessageParams
	updates  chan string // URIs
}

// connectGo connects a client of the handshake era.
func connectGo(t *testing.T, transport mcp.Transport) *goClient {
	t.Helper()
	return connectGoAt(t, transport, handshake)
}

// connectGoAt connects a client of a revision.
func connectGoAt(t *testing.T, transport mcp.Transport, revision string) *goClient {
	t.Helper()
	c := &goClient{
		progress: make(chan float64, 100),
		logs:     make(chan *mcp.LoggingMessageParams, 100),
		updates:  make(chan string, 100),
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "signalbox-e2e", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: "sampled"}}, nil
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			c.progress <- req.Params.Progress
		},
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { c.logs <- req.Params },
		ResourceUpdatedHandler: func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) {
			c.updates <- req.Params.URI
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///srv/go-root", Name: "go root"})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	c.session = session
	return c
}

// call returns the structured content of a tool's result.
func (c *goClient) call(t *testing.T, name string, arguments, meta map[string]any) string {
	t.Helper()
	result, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Meta: meta, Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return fmt.Sprint(result.StructuredContent)
}

// goTransports are the HTTP transports of the Go SDK.
var goTransports = map[string]func(url string) mcp.Transport{
	"streamable": func(url string) mcp.Transport { return &mcp.StreamableClientTransport{Endpoint: url + "/mcp"} },
	"sse":        func(url string) mcp.Transport { return &mcp.SSEClientTransport{Endpoint: url + "/sse"} },
}

func TestGoSDK(t *testing.T) {
	for name, transport := range goTransports {
		t.Run(name, func(t *testing.T) {
			b := box.Start(t, nil, fakeServer(t)...)
			c := connectGo(t, transport(b.URL))
			testGoSession(t, c)
			if err := c.session.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			b.EventuallyMetric(t, box.MetricSessions, 0)
			b.EventuallyMetric(t, box.MetricProcesses, 0)
		})
	}
}

func testGoSession(t *testing.T, c *goClient) {
	testGoCalls(t, c, true)
	testGoQuestions(t, c)
	c.testCancel(t)
}

// testGoCalls does what needs no session of the server.
func testGoCalls(t *testing.T, c *goClient, progress bool) {
	t.Helper()
	tools, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(tools.Tools) == 0 {
		t.Error("no tools")
	}
	if got := c.call(t, "echo", map[string]any{"text": "\u2028 🚦"}, nil); got != "map[text:\u2028 🚦]" {
		t.Errorf("echo: %s", got)
	}
	c.call(t, "progress", map[string]any{"n": 3}, map[string]any{"progressToken": "t"})
	for want := 1.0; progress && want <= 3; want++ {
		if got := receive(t, c.progress); got != want {
			t.Errorf("progress: got %v, want %v", got, want)
		}
	}
}

// testGoQuestions has the server speak first.
func testGoQuestions(t *testing.T, c *goClient) {
	t.Helper()
	for method, want := range map[string]string{
		"sampling/createMessage": "map[result:map[content:map[text:sampled type:text] model:none role:assistant]]",
		"elicitation/create":     "map[result:map[action:accept content:map[name:Ada]]]",
		"roots/list":             "map[result:map[roots:[map[name:go root uri:file:///srv/go-root]]]]",
	} {
		if got := c.call(t, "ask", map[string]any{"method": method}, nil); got != want {
			t.Errorf("%s: got %s, want %s", method, got, want)
		}
	}
	if err := c.session.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
		t.Fatal(err)
	}
	c.call(t, "log", map[string]any{"level": "warning", "data": "careful"}, nil)
	if got := receive(t, c.logs); got.Data != "careful" {
		t.Errorf("log message: %+v", got)
	}
	if err := c.session.Subscribe(t.Context(), &mcp.SubscribeParams{URI: "test://a"}); err != nil {
		t.Fatal(err)
	}
	c.call(t, "updated", map[string]any{"uri": "test://a"}, nil)
	if got := receive(t, c.updates); got != "test://a" {
		t.Errorf("updated: %s", got)
	}
}

// testCancel cancels a call at its first progress; the server has to notice.
func (c *goClient) testCancel(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.session.CallTool(ctx, &mcp.CallToolParams{
			Meta: mcp.Meta{"progressToken": "c"}, Name: "progress", Arguments: map[string]any{"n": 100000, "ms": 10},
		})
		ended <- err
	}()
	receive(t, c.progress)
	cancel()
	if err := receive(t, ended); err == nil {
		t.Error("a cancelled call returned a result")
	}
	box.Eventually(t, "only the call that asks is running", func() string {
		result, err := c.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "stats"})
		if err != nil {
			t.Fatal(err)
		}
		if running := result.StructuredContent.(map[string]any)["running"]; running != 1.0 {
			return fmt.Sprintf("%v running", running)
		}
		return ""
	})
}

// receive waits for the next item of a channel.
func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	select {
	case item := <-c:
		return item
	case <-ctx.Done():
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}
