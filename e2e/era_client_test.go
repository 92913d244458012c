package e2e

import (
	"context"
	"errors"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// everythingClient passes every scored scenario that is there for clients.
const everythingClient = "github.com/modelcontextprotocol/go-sdk/conformance/everything-client@v1.8.0"

// TestEraClient has the suite judge what reaches a server: a client itself, and then the
// same client with Signalbox between. Scenarios of authorization are left out, for there
// Signalbox is the resource server, and the client's tokens end at it.
func TestEraClient(t *testing.T) {
	client := install(t, everythingClient)
	signalbox, err := box.Signalbox()
	if err != nil {
		t.Fatal(err)
	}
	expected := readReasons(t, "era-expected-failures.txt", 3)
	wrapped := strings.Join(append(built(t, box.ClientWrapper), signalbox, client), " ")
	for _, revision := range []string{handshake, perRequest} {
		t.Run(revision, func(t *testing.T) {
			for _, scenario := range slices.Sorted(maps.Keys(scoredScenarios(t, "client", revision))) {
				if strings.HasPrefix(scenario, "auth/") {
					continue
				}
				t.Run(scenario, func(t *testing.T) {
					if err := runClientScenario(t, client, scenario, revision); err != nil {
						t.Fatalf("fails without Signalbox: %v", err)
					}
					failure := runClientScenario(t, wrapped, scenario, revision)
					reason, listed := expected["through/client "+revision+" "+scenario]
					switch {
					case failure != nil && listed:
						t.Logf("fails as expected (%s): %v", reason, failure)
					case failure != nil:
						t.Error(failure)
					case listed:
						t.Error("passes: take it off the list of expected failures")
					}
				})
			}
		})
	}
}

// runClientScenario returns what failed.
func runClientScenario(t *testing.T, command, scenario, revision string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), box.Patience)
	defer cancel()
	out := t.TempDir()
	suite := npmFile(t, "@modelcontextprotocol", "conformance", "dist", "index.js")
	log, err := exec.CommandContext(ctx, node22(t), suite, "client", "--command", command,
		"--scenario", scenario, "--spec-version", revision, "-o", out).CombinedOutput()
	failure := readReports(t, out, log)[scenario]
	if err != nil {
		failure = errors.Join(failure, err)
	}
	if failure != nil {
		t.Logf("%s", lastLines(string(log), 60))
	}
	return failure
}
