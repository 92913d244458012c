package front

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/refusals.md anew")

const (
	refusalsPath = "../../docs/refusals.md"
	authPath     = "../auth/"
)

// TestRefusalsDocument: docs/refusals.md lists what the tests send.
func TestRefusalsDocument(t *testing.T) {
	want := refusalsDocument(t)
	if *update {
		if err := os.WriteFile(refusalsPath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(refusalsPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != want {
		t.Errorf("%s is not up to date; run go test ./internal/front -run TestRefusalsDocument -update", refusalsPath)
	}
}

func refusalsDocument(t *testing.T) string {
	t.Helper()
	credentials, requests := authRefusals(t), refusals()
	var b strings.Builder
	fmt.Fprintf(&b, `# What is refused

Each row is a test. This page is written by
`+"`go test ./internal/front -run TestRefusalsDocument -update`"+` and a test fails where it
is out of date. [security.md](security.md) says what the rows are for.

## Requests

%d requests, sent as bytes to the whole of Signalbox, with a session of somebody else
open. After each of them the tests also hold that nothing reached the server, that no
session began, and that the open session still works. "closed" is a connection that is
closed without an answer; a row without a reason was refused before there was a message.
A refusal of a tool is the server's own answer for a tool that it does not have, in a
response with 200; a notification, and what is posted to `+"`/messages`"+`, is accepted with
202 first.

| request | status | reason |
|---|---|---|
`, len(requests))
	for _, c := range requests {
		status := strconv.Itoa(c.status)
		if c.status == 0 {
			status = "closed"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", docCell(c.name), status, c.reason)
	}
	fmt.Fprintf(&b, `
## Credentials

%d credentials, each checked twice beside a good one that stays good.

| credential | status | reason |
|---|---|---|
`, len(credentials))
	for _, c := range credentials {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", docCell(c.name), c.status, c.reason)
	}
	return b.String()
}

func docCell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace(s)
}

// authRefusals reads the table of package auth from the source of its test, which
// nothing can import.
func authRefusals(t *testing.T) (rows []refused) {
	t.Helper()
	reasons := stringConstants(t, authPath+"failure.go")
	statuses := map[string]int{"bad": http.StatusUnauthorized, "no": http.StatusBadRequest}
	file := parseFile(t, authPath+"refusals_test.go")
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "refusals" {
			return true
		}
		for _, e := range spec.Values[0].(*ast.CompositeLit).Elts {
			row := e.(*ast.CompositeLit).Elts
			name, err := strconv.Unquote(row[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			c := refused{name: name, status: statuses[row[1].(*ast.Ident).Name], reason: reasons[row[2].(*ast.Ident).Name]}
			if c.status == 0 || c.reason == "" {
				t.Fatalf("the row %q of package auth cannot be read", name)
			}
			rows = append(rows, c)
		}
		return false
	})
	if len(rows) < 60 {
		t.Fatalf("only %d rows of package auth were found", len(rows))
	}
	return rows
}

func stringConstants(t *testing.T, path string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	ast.Inspect(parseFile(t, path), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if ok && len(spec.Values) == 1 {
			if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
				found[spec.Names[0].Name], _ = strconv.Unquote(lit.Value)
			}
		}
		return true
	})
	return found
}

func parseFile(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// TestSecurityDocument: docs/security.md names no test that does not exist.
func TestSecurityDocument(t *testing.T) {
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	for _, pattern := range []string{"../*/*_test.go", "../../e2e/*_test.go", "../../cmd/signalbox/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(page), -1)
	if len(names) < 20 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if !strings.Contains(source.String(), "\nfunc "+name[1]+"(") {
			t.Errorf("there is no test %s", name[1])
		}
	}
}

// TestPolicyRefusalsOverSSE: what /messages only accepts is refused on the stream.
func TestPolicyRefusalsOverSSE(t *testing.T) {
	i := slices.IndexFunc(policyRefusals, func(c refused) bool { return c.name == "policy: over HTTP+SSE" })
	inAuthBubble(t, setup{}, func(t *testing.T, r *authRig) {
		endpoint, s := r.legacyAs(r.alice)
		r.do("POST", endpoint, initBody("2025-03-26"), bearer(r.alice))
		s.next()
		_, danger, _ := strings.Cut(policyRefusals[i].send, "\r\n\r\n")
		for _, body := range []string{danger, "[" + danger + "]"} {
			if got := r.do("POST", endpoint, body, bearer(r.alice)); got.status != 202 {
				t.Errorf("got %d %s", got.status, got.body)
			}
			if e := s.next(); !strings.Contains(string(e.Data), `"id":1,"error"`) || !strings.Contains(string(e.Data), `"reason":"policy"`) {
				t.Errorf("got %s", e.Data)
			}
		}
		s.close()
	})
}
