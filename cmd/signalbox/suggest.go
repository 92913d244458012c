package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/signalbox-mcp/signalbox/internal/config"
)

// strayFlag finds a flag that the parser took for part of the server's command:
// a mistyped one where the command should begin, or one of signalbox's own
// behind a command that "--" does not set apart, where it would do nothing.
func strayFlag(parsed *kong.Context, command []string) error {
	if len(command) == 0 || command[0] == "--" {
		return nil
	}
	known := flagNames(parsed)
	if name, _, _ := strings.Cut(command[0], "="); strings.HasPrefix(name, "-") {
		return fmt.Errorf("unknown flag %s, did you mean %q?", name, config.Nearest(name, known))
	}
	for _, word := range command {
		if name, _, _ := strings.Cut(word, "="); slices.Contains(known, name) {
			return fmt.Errorf("%s stands behind the command and would go to the server; write signalbox %s %s ... -- %s, or -- before the command if the server is meant", name, parsed.Selected().Name, name, command[0])
		}
	}
	return nil
}

func flagNames(parsed *kong.Context) []string {
	var known []string
	for _, f := range parsed.Flags() {
		known = append(known, "--"+f.Name)
	}
	return known
}

// mistypedEnv names the variables that are all but one of a flag. Others that
// begin alike may be anybody's: Kubernetes makes some for a service called
// signalbox.
func mistypedEnv(parsed *kong.Context, environ []string) []string {
	var known, found []string
	for _, f := range flagNames(parsed) {
		known = append(known, "SIGNALBOX_"+strings.ToUpper(strings.ReplaceAll(f[2:], "-", "_")))
	}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, "SIGNALBOX_") || slices.Contains(known, name) {
			continue
		}
		if near := config.Nearest(name, known); near != "" && editDistance(near, name) <= 2 {
			found = append(found, fmt.Sprintf("the environment has %s, which means nothing; did you mean %s?", name, near))
		}
	}
	return found
}

// editDistance is how many bytes must be inserted, removed or replaced to make a
// of b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
