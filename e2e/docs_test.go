package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// The pages whose commands are tested, from the top of the tree.
var docPages = []string{"README.md", "CONTRIBUTING.md", "deploy/README.md", "docs/*.md"}

// docBlock is a fenced block of commands. A comment above it says what the test does with
// it; docs/README.md tells writers the same:
//
//	(nothing)                        run by sh -eu, in the page's folder and shell: variables
//	                                 of a block are there in the next
//	<!-- test: background [redis] --> serves until the next such block or the page's end, after
//	                                 it has answered initialize; redis: with a Redis
//	<!-- test: tree -->              run from the top of the tree; may stand with background
//	<!-- test: names WHY -->         not run, WHY says what it would need; signalbox's flags, make's
//	                                 targets and the files that it names are real
//	<!-- test: foreign -->           commands of another product, not run
type docBlock struct {
	page  string // its path from the top of the tree
	line  int    // of the fence
	words []string
	text  string
}

func (b docBlock) is(word string) bool { return slices.Contains(b.words, word) }

var (
	docFence      = regexp.MustCompile("^( *)```(\\S*)$")
	docAnnotation = regexp.MustCompile(`^ *<!-- test: (.*) -->$`)
)

// docBlocks reads the blocks of commands of a page.
func docBlocks(t *testing.T, page string) (blocks []docBlock) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(box.Root(), page))
	if err != nil {
		t.Fatal(err)
	}
	var open *docBlock
	var words []string
	indent, lang := "", ""
	for i, line := range strings.Split(string(text), "\n") {
		fence := docFence.FindStringSubmatch(line)
		switch {
		case open == nil && fence != nil:
			open, indent, lang = &docBlock{page: page, line: i + 1, words: words}, fence[1], fence[2]
		case open != nil && strings.TrimSpace(line) == "```":
			if lang == "sh" {
				blocks = append(blocks, *open)
			} else if len(open.words) > 0 || docCommand.MatchString(open.text) && !strings.Contains(open.text, "[flags]") {
				t.Errorf("%s:%d: commands stand in a block that is not marked sh", page, open.line)
			}
			open, words = nil, nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		default:
			words = nil
			if m := docAnnotation.FindStringSubmatch(line); m != nil {
				words = strings.Fields(m[1])
			}
		}
	}
	if open != nil {
		t.Errorf("%s:%d: the block has no end", page, open.line)
	}
	return blocks
}

// docCommand is a line that a reader may paste.
var docCommand = regexp.MustCompile(`(?m)^(\$ |signalbox (serve|check|connect|key|completion)\b)`)

func docFiles(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range docPages {
		files, err := filepath.Glob(filepath.Join(box.Root(), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no such page: %v", pattern, err)
		}
		for _, file := range files {
			page, err := filepath.Rel(box.Root(), file)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, filepath.ToSlash(page))
		}
	}
	return pages
}

// TestDocsNames looks at every command of every page, run or not: what it names exists.
func TestDocsNames(t *testing.T) {
	known := make(map[string]map[string]bool)
	commands, _, _ := box.Run(t, "--help")
	for _, m := range docHelp.FindAllStringSubmatch(commands, -1) {
		help, _, code := box.Run(t, append(strings.Fields(m[1]), "--help")...)
		if code != 0 {
			t.Fatalf("%s --help: exit code %d", m[1], code)
		}
		known[m[1]] = make(map[string]bool)
		for _, flag := range docFlag.FindAllString(help, -1) {
			known[m[1]][flag] = true
		}
	}
	known["sessions"] = known["sessions list"] // what it does alone
	makefile, err := os.ReadFile(filepath.Join(box.Root(), "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for _, page := range docFiles(t) {
		text, err := os.ReadFile(filepath.Join(box.Root(), page))
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range docSpan.FindAllStringSubmatch(string(text), -1) {
			calls += checkDocFlags(t, page, span[1], known)
		}
		for _, b := range docBlocks(t, page) {
			if b.is("foreign") {
				continue
			}
			calls += checkDocFlags(t, page, b.text, known)
			for _, m := range docMake.FindAllStringSubmatch(b.text, -1) {
				if !regexp.MustCompile(`(?m)^` + m[1] + `:`).Match(makefile) {
					t.Errorf("%s:%d: make has no target %q", page, b.line, m[1])
				}
			}
			for _, m := range docPath.FindAllStringSubmatch(b.text, -1) {
				if _, err := os.Stat(filepath.Join(box.Root(), m[1])); err != nil {
					t.Errorf("%s:%d: %v", page, b.line, err)
				}
			}
			if b.is("names") && len(b.words) < 2 {
				t.Errorf("%s:%d: the annotation does not say why it is not run", page, b.line)
			}
		}
	}
	if calls < 40 {
		t.Errorf("only %d calls of signalbox were found", calls)
	}
}

var (
	docHelp = regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?)  +\S`) // a command in the help of signalbox
	docFlag = regexp.MustCompile(`--[a-z][a-z-]*`)
	docSpan = regexp.MustCompile("`(signalbox [^`\n]*)`")
	docMake = regexp.MustCompile(`(?m)^make ([a-z-]+)`)
	docPath = regexp.MustCompile(`(?:^|[ =/])((?:deploy|scripts|cmd)/[A-Za-z0-9./_-]*[A-Za-z0-9_-])`)
	docCall = regexp.MustCompile(`(?:^|[ \n/(])signalbox ((?:key )?[a-z]+)((?:[^\n]|\\\n)*)`)
)

// checkDocFlags checks the flags of each call of signalbox in a text, and counts the calls.
func checkDocFlags(t *testing.T, page, text string, known map[string]map[string]bool) (calls int) {
	t.Helper()
	for _, m := range docCall.FindAllStringSubmatch(text, -1) {
		flags, ok := known[m[1]]
		if !ok {
			t.Errorf("%s: signalbox has no command %q", page, m[1])
			continue
		}
		calls++
		ours, _, _ := strings.Cut(strings.ReplaceAll(m[2], "\\\n", " ")+" ", " -- ") // what follows is the server's
		ours, _, _ = strings.Cut(ours, " | ")
		ours, _, _ = strings.Cut(ours, " #")
		for _, flag := range docFlag.FindAllString(ours, -1) {
			if !flags[flag] {
				t.Errorf("%s: signalbox %s has no flag %s", page, m[1], flag)
			}
		}
	}
	return calls
}

var (
	docLink    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	docHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	notInSlug  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// TestDocsLinks: links between the pages lead to files and headings that exist.
func TestDocsLinks(t *testing.T) {
	links := 0
	for _, page := range append(docFiles(t), "DESIGN.md", "SECURITY.md") {
		text, err := os.ReadFile(filepath.Join(box.Root(), page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range docLink.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(box.Root(), filepath.Dir(page), file)
			if file == "" {
				target = filepath.Join(box.Root(), page)
			}
			there, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr == nil && info.IsDir() {
				err = nil
			}
			if err != nil || anchor != "" && !slices.Contains(slugs(string(there)), anchor) {
				t.Errorf("%s: the link %s leads nowhere: %v", page, m[1], err)
			}
		}
	}
	if links < 30 {
		t.Errorf("only %d links were found", links)
	}
}

// slugs are the anchors of a page's headings, as GitHub makes them.
func slugs(text string) (list []string) {
	for _, m := range docHeading.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(notInSlug.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}
