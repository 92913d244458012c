//lint:file-ignore SA1019 Logging is deprecated as of 2026-07-28; here are clients that still have it.

package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// startRandomNames starts Signalbox in front of a server of one era, whose names nothing
// can know.
func startRandomNames(t *testing.T, era, transport string, flags ...string) (b *box.Box, name string) {
	t.Helper()
	name = randomName()
	if transport == "http" {
		return box.StartURL(t, randomNamesHTTP(t, era, name, flags...).url()+"/mcp"), name
	}
	return box.Start(t, nil, built(t, box.RandomNames, append([]string{"-era", era, "-name", name}, flags...)...)...), name
}

// inEveryCell runs a test with clients of both eras in front of servers of both eras, of
// both transports.
func inEveryCell(t *testing.T, test func(t *testing.T, b *box.Box, revision, name string), flags ...string) {
	for _, transport := range []string{"stdio", "http"} {
		for _, era := range []string{"legacy", "modern"} {
			for _, revision := range []string{handshake, perRequest} {
				t.Run(fmt.Sprintf("%s client, %s %s server", revision, era, transport), func(t *testing.T) {
					b, name := startRandomNames(t, era, transport, flags...)
					test(t, b, revision, name)
				})
			}
		}
	}
}

func goEndpoint(b *box.Box) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: b.URL + "/mcp"}
}

// TestEraRandomNames has every kind of question pass in all four cells, in sequence and
// at the same time, from tools, prompts and resources.
func TestEraRandomNames(t *testing.T) {
	inEveryCell(t, func(t *testing.T, b *box.Box, revision, name string) {
		c := connectEra(t, goEndpoint(b), revision, "ada")
		c.testPlans(t, "ada", name)
	})
}

// TestEraQuestionsApart has an HTTP server of the handshake era ask on the session's own
// stream, as what is made of the TypeScript SDK does unless told which call it is for.
func TestEraQuestionsApart(t *testing.T) {
	for _, revision := range []string{handshake, perRequest} {
		t.Run(revision, func(t *testing.T) {
			b, name := startRandomNames(t, "legacy", "http", "-apart")
			c := connectEra(t, goEndpoint(b), revision, "ada")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			plan := "elicitation,sampling+roots"
			text, err := c.runPlan(ctx, name, "t", plan)
			if err != nil {
				t.Fatal(err)
			}
			checkPlanned(t, text, "ada", name, "t", plan)
		})
	}
}

// TestEraManyClients has clients that use the same ids and tokens ask and be asked at the
// same time. Nobody sees a question of another.
func TestEraManyClients(t *testing.T) {
	inEveryCell(t, func(t *testing.T, b *box.Box, revision, name string) {
		var all sync.WaitGroup
		for i := range 6 {
			who := fmt.Sprintf("client%d", i)
			c := connectEra(t, goEndpoint(b), revision, who)
			all.Go(func() {
				for _, plan := range plans {
					text, err := c.runPlan(t.Context(), name, "tag", plan) // the same tag and token for all
					if err != nil {
						t.Errorf("%s: %s: %v", who, plan, err)
						continue
					}
					checkPlanned(t, text, who, name, "tag", plan)
				}
			})
		}
		all.Wait()
	})
}

// TestEraNotifications has a server say what belongs to a call and what does not.
func TestEraNotifications(t *testing.T) {
	inEveryCell(t, func(t *testing.T, b *box.Box, revision, name string) {
		testNotifications(t, goEndpoint(b), revision, name)
	})
}

// testNotifications subscribes and calls, and waits for what that brings.
func testNotifications(t *testing.T, transport mcp.Transport, revision, name string) {
	t.Helper()
	c := connectEra(t, transport, revision, "ada")
	uri := name + "://ada"
	if err := c.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}); err != nil {
		t.Fatal(err)
	}
	// The SDK does not say when its subscription has been acknowledged, so the change
	// happens until it is seen.
	for plan, want := range map[string]string{"updated": uri, "list-changed": "tools"} {
		box.Eventually(t, "the client is told of "+want, func() string {
			if _, err := c.runPlan(t.Context(), name, "ada", plan); err != nil {
				t.Fatal(err)
			}
			select {
			case got := <-c.changes:
				if got == want {
					return ""
				}
				return "told of " + got
			case <-time.After(time.Second):
				return "told of nothing"
			}
		})
	}
	meta := mcp.Meta{"io.modelcontextprotocol/logLevel": "debug"}
	if revision == handshake {
		meta = nil
		if err := c.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Meta: meta, Name: name, Arguments: map[string]any{"tag": "said", "plan": "log"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := receive(t, c.logs); got != "said" {
		t.Errorf("the log says %q", got)
	}
}
