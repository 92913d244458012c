package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// source is a file of the product, tests and tools left out.
func source(t *testing.T, each func(path string, file *ast.File)) {
	t.Helper()
	files := token.NewFileSet()
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && (d.Name() == "mutants" || d.Name() == "archive" || strings.HasSuffix(d.Name(), "test") || d.Name() == "testdata") {
				return filepath.SkipDir
			}
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(files, path, nil, 0)
			if err == nil {
				each(path, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

var word = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// literal is a string constant's value.
func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// makers are functions with a reason among their arguments, and which one it is.
var makers = map[string]int{"refuse": 2, "busy": 1, "over": 2, "Errorf": 1, "invalid": 0}

// reasons collects what a client, a log line or a metric calls a reason, with
// the place where it is: arguments of makers, fields called Reason, constants
// called reason..., refused... or Drop..., and errors of the registration.
func reasons(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	add := func(path string, e ast.Expr) {
		if s, ok := literal(e); ok && word.MatchString(s) {
			found[s] = path
		}
	}
	source(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if i, ok := makers[called(n)]; ok && i < len(n.Args) {
					add(path, n.Args[i])
					if path == "guard/guard.go" {
						add(path, n.Args[0])
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Reason" || key.Name == "reason") {
					add(path, n.Value)
				}
			case *ast.ValueSpec:
				for i, name := range n.Names {
					if i < len(n.Values) && reasonName.MatchString(name.Name) {
						add(path, n.Values[i])
						if call, ok := n.Values[i].(*ast.CallExpr); ok && path == "cluster/registration.go" {
							add(path, call.Args[0])
						}
					}
				}
			}
			return true
		})
	})
	return found
}

var reasonName = regexp.MustCompile(`^(reason|refused|Drop)[A-Z]|^err(Version|Malformed|MAC|OtherID)$`)

// explained are the pages that say what a reason means.
func explained(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, page := range []string{"troubleshooting.md", "routing.md"} {
		text, err := os.ReadFile("../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// TestReasonsAreExplained: whatever Signalbox gives as a reason, the
// documentation says what it means.
func TestReasonsAreExplained(t *testing.T) {
	found, pages := reasons(t), explained(t)
	for _, sure := range []string{"timeout", "session_not_found", "session_limit", "rate_limit", "audience", "host", "origin", "policy", "foreign_id", "registration_mac", "pin", "access", "body_budget"} {
		if found[sure] == "" {
			t.Errorf("the reason %s is not found in the code: this test sees nothing any more", sure)
		}
	}
	for reason, path := range found {
		if !strings.Contains(pages, "`"+reason+"`") {
			t.Errorf("%s has the reason %q, which docs/troubleshooting.md does not explain", path, reason)
		}
	}
}

// TestLogLinesAreExplained: every warning and error that is logged has an entry.
func TestLogLinesAreExplained(t *testing.T) {
	pages, found := explained(t), 0
	source(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !slices.Contains([]string{"Warn", "Error"}, called(call)) || len(call.Args) == 0 {
				return true
			}
			text := call.Args[0]
			// "what: " + more
			for sum, ok := text.(*ast.BinaryExpr); ok; sum, ok = text.(*ast.BinaryExpr) {
				text = sum.X
			}
			line, ok := literal(text)
			if !ok {
				return true
			}
			found++
			if !strings.Contains(pages, "`"+strings.TrimSuffix(line, " its ")) {
				t.Errorf("%s logs %q, which docs/troubleshooting.md does not explain", path, line)
			}
			return true
		})
	})
	if found < 40 {
		t.Errorf("only %d log lines were found", found)
	}
}
