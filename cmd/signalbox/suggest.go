package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// unknownFlag finds a mistyped flag: the parser takes it for the begin of the
// server's command.
func unknownFlag(parsed *kong.Context, command []string) error {
	if len(command) == 0 || command[0] == "--" || !strings.HasPrefix(command[0], "-") {
		return nil
	}
	name, _, _ := strings.Cut(command[0], "=")
	var known []string
	for _, f := range parsed.Flags() {
		known = append(known, "--"+f.Name)
	}
	return fmt.Errorf("unknown flag %s, did you mean %q?", name, nearest(name, known))
}

// nearest is the word of list that takes the fewest edits to become word.
func nearest(word string, list []string) (best string) {
	least := -1
	for _, s := range list {
		if d := distance(word, s); least < 0 || d < least {
			least, best = d, s
		}
	}
	return best
}

// distance is how many bytes must be inserted, removed or replaced to make a
// of b (Levenshtein).
func distance(a, b string) int {
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
