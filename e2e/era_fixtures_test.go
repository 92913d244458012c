//lint:file-ignore SA1019 Sampling and roots are deprecated as of 2026-07-28; here are clients that still have them.

package e2e

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// The newest revision of each era.
const (
	handshake  = "2025-11-25"
	perRequest = "2026-07-28"
)

// built is the command line of a fixture.
func built(t testing.TB, build func() (string, error), args ...string) []string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{path}, args...)
}

// randomName is a name that nothing can know.
func randomName() string { return "n" + strings.ToLower(rand.Text()[:12]) }

// eraClient is a client of the Go SDK whose answers say what was asked.
type eraClient struct {
	*mcp.ClientSession
	logs     chan string
	progress chan string
	changes  chan string // "tools", or the URI of a resource
}

// connectEra connects a client called who, which speaks a revision.
func connectEra(t *testing.T, transport mcp.Transport, revision, who string) *eraClient {
	t.Helper()
	c := &eraClient{logs: make(chan string, 100), progress: make(chan string, 100), changes: make(chan string, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: who, Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			text := who + " on " + r.Params.Messages[0].Content.(*mcp.TextContent).Text
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: text}}, nil
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": who + " on " + r.Params.Message}}, nil
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) { c.logs <- fmt.Sprint(r.Params.Data) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.progress <- r.Params.Message
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changes <- "tools" },
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
			c.changes <- r.Params.URI
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///" + who})
	session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("negotiated %s, want %s", got, revision)
	}
	c.ClientSession = session
	return c
}

// planned is what randomnames answers.
type planned struct {
	Tag, Name string
	PID       int
	Answers   []json.RawMessage
}

// checkPlanned compares an answer with what a client called who says to the questions of
// a plan.
func checkPlanned(t testing.TB, text, who, name, tag, plan string) {
	t.Helper()
	if wrong := wrongPlanned(text, who, name, tag, plan); wrong != "" {
		t.Error(wrong)
	}
}

func wrongPlanned(text, who, name, tag, plan string) string {
	var got planned
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		return fmt.Sprintf("%s of %s: %v: %.300s", plan, tag, err, text)
	}
	want := expectedAnswers(who, tag, plan)
	if got.Tag != tag || got.Name != name || len(got.Answers) != len(want) {
		return fmt.Sprintf("%s of %s at %s: got %s", plan, tag, name, text)
	}
	for i, answer := range got.Answers {
		if !strings.Contains(string(answer), want[i]) {
			return fmt.Sprintf("%s of %s: answer %d is %s, which does not say %q", plan, tag, i+1, answer, want[i])
		}
	}
	return ""
}

// expectedAnswers are what each answer to the questions of a plan has to contain.
func expectedAnswers(who, tag, plan string) []string {
	var want []string
	for i, step := range strings.Split(plan, ",") {
		for j, kind := range strings.Split(step, "+") {
			switch kind {
			case "elicitation", "sampling":
				want = append(want, fmt.Sprintf("%q", fmt.Sprintf("%s on %s %d.%d", who, tag, i+1, j+1)))
			case "roots":
				want = append(want, fmt.Sprintf("%q", "file:///"+who))
			}
		}
	}
	return want
}

// plans have every kind of question, one after the other and at the same time.
var plans = []string{
	"", "elicitation", "sampling", "roots", "progress,elicitation",
	"elicitation,sampling,roots", "elicitation+sampling", "roots,elicitation+elicitation+sampling,sampling",
}

// runPlan calls the tool of a random name and returns the text of its answer.
func (c *eraClient) runPlan(ctx context.Context, name, tag, plan string) (string, error) {
	result, err := c.CallTool(ctx, &mcp.CallToolParams{
		Name: name, Arguments: map[string]any{"tag": tag, "plan": plan}, Meta: mcp.Meta{"progressToken": tag},
	})
	if err != nil {
		return "", err
	}
	if len(result.Content) != 1 {
		return "", fmt.Errorf("%d parts", len(result.Content))
	}
	return result.Content[0].(*mcp.TextContent).Text, nil
}

// testPlans uses all that a server of random names has.
func (c *eraClient) testPlans(t *testing.T, who, name string) {
	t.Helper()
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(tools.Tools) != 2 || tools.Tools[0].Name != name {
		t.Fatalf("the tools are %v", tools.Tools)
	}
	for i, plan := range plans {
		tag := fmt.Sprintf("%s-%d", who, i)
		text, err := c.runPlan(t.Context(), name, tag, plan)
		if err != nil {
			t.Errorf("%s: %v", plan, err)
			continue
		}
		checkPlanned(t, text, who, name, tag, plan)
		if strings.Contains(plan, "progress") {
			if got := receive(t, c.progress); got != tag {
				t.Errorf("progress of %s, want %s", got, tag)
			}
		}
	}
	plan := "sampling,elicitation"
	prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"tag": who, "plan": plan}})
	if err != nil {
		t.Fatal(err)
	}
	checkPlanned(t, prompt.Messages[0].Content.(*mcp.TextContent).Text, who, name, who, plan)
	resource, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: name + "://" + who + "/" + plan})
	if err != nil {
		t.Fatal(err)
	}
	checkPlanned(t, resource.Contents[0].Text, who, name, who, plan)
}

// TestEraFixtures has a client that nobody here wrote use the fixtures of both eras,
// without Signalbox.
func TestEraFixtures(t *testing.T) {
	for era, revision := range map[string]string{"legacy": handshake, "modern": perRequest} {
		name := randomName()
		t.Run(era+" stdio", func(t *testing.T) {
			t.Parallel()
			command := built(t, box.RandomNames, "-era", era, "-name", name)
			start := func() mcp.Transport {
				return &mcp.CommandTransport{Command: exec.Command(command[0], command[1:]...)}
			}
			connectEra(t, start(), revision, "stdio").testPlans(t, "stdio", name)
			testNotifications(t, start(), revision, name)
		})
		t.Run(era+" HTTP", func(t *testing.T) {
			t.Parallel()
			p := randomNamesHTTP(t, era, name)
			endpoint := &mcp.StreamableClientTransport{Endpoint: p.url()}
			connectEra(t, endpoint, revision, "http").testPlans(t, "http", name)
			testNotifications(t, endpoint, revision, name)
		})
	}
	t.Run("the others over stdio", testStdioFixtures)
}

// testStdioFixtures looks at the servers that the suite, which speaks HTTP only, cannot
// see directly.
func testStdioFixtures(t *testing.T) {
	for name, fixture := range map[string]struct {
		command  []string
		revision string
	}{
		"legacyfilter": {legacyFilter(t), handshake},
		"modernonly":   {modernOnly(t), perRequest},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(fixture.command[0], fixture.command[1:]...)
			c := connectEra(t, &mcp.CommandTransport{Command: cmd}, fixture.revision, "f")
			tools, err := c.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(tools.Tools, func(t *mcp.Tool) bool { return t.Name == "test_input_required_result_multi_round" }) {
				t.Errorf("a fixture is missing: %v", tools.Tools)
			}
			result, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "test_input_required_result_list_roots"})
			if err != nil {
				t.Fatal(err)
			}
			if text := result.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, "file:///f") {
				t.Errorf("the tool that asks for roots says %q", text)
			}
		})
	}
}
