package e2e

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// suiteArgs choose what the conformance suite runs for a revision.
var suiteArgs = map[string][]string{
	"2026-07-28": {"--requirements", "2026-07-28"},
	"2025-11-25": {"--requirements", "2025-11-25"},
	"2025-06-18": {"--suite", "all", "--spec-version", "2025-06-18"},
}

// eraServer is a server for the suite, and what passes on it.
type eraServer struct {
	name   string
	direct func(t *testing.T) string              // its URL; nil: it speaks stdio, which the suite does not
	box    func(t *testing.T, at string) *box.Box // in front of it, where direct put it
	// passes are the scored scenarios that pass at least, by revision.
	passesDirectly, passes map[string]int
}

var eraServers = []eraServer{
	{
		name:   "everything-stdio", // of both eras
		box:    func(t *testing.T, _ string) *box.Box { return box.Start(t, nil, installEverythingServer(t)) },
		passes: map[string]int{"2025-06-18": 27, "2025-11-25": 30, "2026-07-28": 37},
	}, {
		name:           "everything-http", // of both eras, without sessions
		direct:         func(t *testing.T) string { return everythingHTTP(t, false).url() },
		box:            startBoxAt,
		passesDirectly: map[string]int{"2025-06-18": 25, "2025-11-25": 26, "2026-07-28": 37},
		passes:         map[string]int{"2025-06-18": 25, "2025-11-25": 26, "2026-07-28": 37},
	}, {
		name:           "legacy-http",
		direct:         func(t *testing.T) string { return everythingHTTP(t, true).url() },
		box:            startBoxAt,
		passesDirectly: map[string]int{"2025-06-18": 27, "2025-11-25": 30},
		passes:         map[string]int{"2025-06-18": 27, "2025-11-25": 30, "2026-07-28": 35},
	}, {
		name:   "legacy-stdio",
		box:    func(t *testing.T, _ string) *box.Box { return box.Start(t, nil, legacyFilter(t)...) },
		passes: map[string]int{"2025-06-18": 27, "2025-11-25": 30, "2026-07-28": 35},
	}, {
		name:   "modern-stdio",
		box:    func(t *testing.T, _ string) *box.Box { return box.Start(t, nil, modernOnly(t)...) },
		passes: map[string]int{"2025-06-18": 27, "2025-11-25": 30, "2026-07-28": 37},
	}, {
		name:           "modern-http",
		direct:         func(t *testing.T) string { return modernOnlyHTTP(t).url() },
		box:            startBoxAt,
		passesDirectly: map[string]int{"2026-07-28": 37},
		passes:         map[string]int{"2025-06-18": 27, "2025-11-25": 30, "2026-07-28": 37},
	},
}

func startBoxAt(t *testing.T, at string) *box.Box { return box.StartURL(t, at+"/mcp") }

// TestEraDirect runs the suite against the servers themselves, for what follows is
// measured by that.
func TestEraDirect(t *testing.T) {
	expected := readReasons(t, "era-expected-failures.txt", 3)
	for _, s := range eraServers {
		if s.direct == nil {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			url := s.direct(t)
			for _, revision := range slices.Sorted(maps.Keys(s.passesDirectly)) {
				t.Run(revision, func(t *testing.T) {
					results := runConformance(t, url, suiteArgs[revision])
					judge(t, "direct/"+s.name, revision, s.passesDirectly[revision], results, expected)
				})
			}
		})
	}
}

// TestEraConformance runs the suite of each revision against one Signalbox in front of
// each server, all revisions at the same time. What fails has a reason in the list, either
// because it fails on the server itself too, or because no bridge could do it.
func TestEraConformance(t *testing.T) {
	expected := readReasons(t, "era-expected-failures.txt", 3)
	for _, s := range eraServers {
		t.Run(s.name, func(t *testing.T) {
			at := ""
			if s.direct != nil {
				at = s.direct(t)
			}
			b := s.box(t, at)
			t.Run("at once", func(t *testing.T) {
				for revision, atLeast := range s.passes {
					t.Run(revision, func(t *testing.T) {
						t.Parallel()
						results := runConformance(t, b.URL, suiteArgs[revision])
						// Signalbox may do what the server itself does not.
						for scenario, failure := range results {
							if expected["direct/"+s.name+" "+revision+" "+scenario] != "" && failure != nil {
								t.Logf("%s fails here as on the server itself: %v", scenario, failure)
								delete(results, scenario)
							}
						}
						judge(t, "through/"+s.name, revision, atLeast, results, expected)
					})
				}
			})
			testSuiteLeftNothing(t, b)
		})
	}
}

// testSuiteLeftNothing stops Signalbox, which the suite has left in the middle of much.
func testSuiteLeftNothing(t *testing.T, b *box.Box) {
	b.Terminate()
	if code := wait(t, b); code != 0 {
		t.Errorf("exit code %d, want 0 for a clean stop", code)
	}
	if left := b.Descendants(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// judge compares results with the list of expected failures, and counts.
func judge(t *testing.T, where, revision string, atLeast int, results map[string]error, expected map[string]string) {
	t.Helper()
	passed := 0
	scored := scoredScenarios(t, "server", revision)
	for _, scenario := range slices.Sorted(maps.Keys(results)) {
		if scored != nil && !scored[scenario] {
			continue
		}
		failure := results[scenario]
		reason, listed := expected[where+" "+revision+" "+scenario]
		switch {
		case failure != nil && listed:
			t.Logf("%s fails as expected (%s): %v", scenario, reason, failure)
		case failure != nil:
			t.Errorf("%s: %v", scenario, failure)
		case listed:
			t.Errorf("%s passes: take it off the list of expected failures", scenario)
		default:
			passed++
		}
	}
	t.Logf("%s, %s: %d scenarios pass", where, revision, passed)
	if passed < atLeast {
		t.Errorf("only %d scenarios pass, of at least %d", passed, atLeast)
	}
}

// scoredScenarios are those that a revision requires, of the kind server or client; nil
// for a revision that has no such list: all count.
func scoredScenarios(t *testing.T, kind, revision string) map[string]bool {
	t.Helper()
	if revision < "2025-11-25" {
		return nil
	}
	suite := npmFile(t, "@modelcontextprotocol", "conformance", "dist", "index.js")
	out, err := exec.CommandContext(t.Context(), node22(t), suite, "list", "--"+kind, "--requirements", revision).CombinedOutput()
	if err != nil {
		t.Fatalf("conformance suite: %v\n%s", err, out)
	}
	heading := strings.ToUpper(kind[:1]) + kind[1:] + " scenarios"
	scored := make(map[string]bool)
	inside := false
	for line := range strings.Lines(string(out)) {
		name, isItem := strings.CutPrefix(strings.TrimRight(line, "\n"), "  - ")
		switch {
		case isItem && inside:
			scored[name] = true
		case strings.HasPrefix(line, heading):
			inside = true
		case strings.TrimSpace(line) != "":
			inside = false
		}
	}
	if len(scored) == 0 {
		t.Fatal(fmt.Errorf("no scored scenarios in:\n%s", out))
	}
	return scored
}
