package internal_test

import (
	"go/ast"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// logMethods are those of slog.Logger, and how many arguments stand before the fields.
var logMethods = map[string]int{"Debug": 1, "Info": 1, "Warn": 1, "Error": 1, "Log": 3, "With": 0}

// isLogger tells whether an expression can be a logger: by its last name.
func isLogger(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	return name == "log" || name == "Log" || name == "Logger"
}

// logField is one key of a log call.
type logField struct{ path, key string }

// logFields collects the fields of all log calls. Each has to be a constant.
func logFields(t *testing.T) (found []logField) {
	t.Helper()
	source(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			f, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !isLogger(f.X) {
				return true
			}
			before, ok := logMethods[f.Sel.Name]
			if !ok {
				return true
			}
			for i := before; i < len(call.Args); i += 2 {
				key, ok := literal(call.Args[i])
				if !ok || call.Ellipsis.IsValid() {
					t.Errorf("%s: a field of a log call is no constant", path)
					continue
				}
				found = append(found, logField{path, key})
			}
			return true
		})
	})
	return found
}

// TestLogFields: one thing has one name in all log lines, and docs/operating.md
// says what it is.
func TestLogFields(t *testing.T) {
	text, err := os.ReadFile("../docs/operating.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## Logs\n")
	if !ok {
		t.Fatal("docs/operating.md has no section Logs")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	_, section, _ = strings.Cut(section, "| field | what |\n")
	vocabulary := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| (`[a-z_]+`(?:, `[a-z_]+`)*) \\|").FindAllStringSubmatch(section, -1) {
		for _, key := range strings.Split(row[1], ", ") {
			vocabulary[strings.Trim(key, "`")] = false
		}
	}
	found := logFields(t)
	if len(found) < 80 {
		t.Errorf("only %d fields were found", len(found))
	}
	for _, f := range found {
		if _, ok := vocabulary[f.key]; !ok {
			t.Errorf("%s logs the field %q, which is not in the table of docs/operating.md", f.path, f.key)
		}
		vocabulary[f.key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(vocabulary)) {
		if !vocabulary[key] {
			t.Errorf("docs/operating.md tells of the field %q, which no log line has", key)
		}
	}
}
