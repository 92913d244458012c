package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// docsPath is the page for users. Its part below the marker is made of the golden
// files.
const docsPath = "../../docs/doctor.md"

const docsMarker = "<!-- The list below is written by: go test ./internal/doctor -run TestDocumentation -update -->\n"

func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	head, list, found := strings.Cut(string(page), docsMarker)
	if !found {
		t.Fatalf("no marker in %s", docsPath)
	}
	want := findingsList(t)
	if *update {
		if err := os.WriteFile(docsPath, []byte(head+docsMarker+want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if list != want {
		t.Errorf("%s is not up to date; run go test ./internal/doctor -run TestDocumentation -update", docsPath)
	}
}

func findingsList(t *testing.T) string {
	var b strings.Builder
	for _, part := range []struct{ title, files string }{
		{"Commands that do not start", "starts.golden"},
		{"Processes", "commands.golden eras.golden"},
		{"URLs", "addresses.golden network.golden"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n", part.title)
		var lines []string
		for file := range strings.FieldsSeq(part.files) {
			text, err := os.ReadFile(filepath.Join("testdata", file))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				said, isSentence := strings.CutPrefix(line, "    ")
				for finding := range strings.SplitSeq(strings.TrimSuffix(said, "\n"), " | ") {
					if kind, sentence, ok := strings.Cut(finding, ": "); ok && isSentence {
						lines = append(lines, "- `"+kind+"`: "+strings.ReplaceAll(sentence, "<", "&lt;")+"\n")
					}
				}
			}
		}
		slices.Sort(lines)
		b.WriteString(strings.Join(slices.Compact(lines), ""))
	}
	return b.String()
}
