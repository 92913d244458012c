package policy

import (
	"math/rand/v2"
	"strings"
	"testing"
)

type filterCase struct {
	allow, deny []string
	name        string
	want        bool
}

func (c *filterCase) run(t *testing.T, what string, allows func(*Filter, []byte) bool) {
	t.Helper()
	if got := allows(NewFilter(c.allow, c.deny), []byte(c.name)); got != c.want {
		t.Errorf("%s: allow %q deny %q: %q is %v", what, c.allow, c.deny, c.name, got)
	}
}

func only(patterns ...string) []string { return patterns }

func TestFilterOfNames(t *testing.T) {
	for _, c := range []filterCase{
		{nil, nil, "anything", true},
		{[]string{}, nil, "anything", false},
		{nil, []string{}, "anything", true},
		{only("read_*"), nil, "read_file", true},
		{only("read_*"), nil, "read_", true},
		{only("read_*"), nil, "write_file", false},
		{only("read_*"), nil, "xread_file", false},
		{only("read_*"), nil, "Read_file", false},
		{only("*"), only("delete_*"), "delete_all", false},
		{only("delete_all"), only("delete_*"), "delete_all", false},
		{nil, only("delete_*"), "deleted", true},
		{nil, only("*"), "", false},
		{nil, only(""), "a", true},
		{nil, only(""), "", false},
		{only("a?c"), nil, "aäc", true},
		{only("a?c"), nil, "ac", false},
		{only("a??c"), nil, "aäc", false},
		{only("*??"), nil, "ä", false},
		{only("*?c"), nil, "😀c", true},
		{only("*??b*"), nil, "日bz", false},
		{only("a*b*c"), nil, "a1b2b3c", true},
		{only("a*b*c"), nil, "a1b2b3", false},
		{only("**a**"), nil, "a", true},
		{only("a.c", "[ab]"), nil, "abc", false},
		{only("[ab]"), nil, "[ab]", true},
		{only(`a\*`), nil, `a\b`, true},
		{only("a/*"), nil, "a/b/c", true},
		{only("é"), nil, "e\u0301", false}, // not normalised
		{nil, only("danger"), "danger\x00", false},
		{nil, only("danger"), "dang\uFFFDr", false},
		{only("%41"), nil, "A", false}, // names have no escapes
		{nil, only("x"), strings.Repeat("a", maxName), true},
		{nil, only("x"), strings.Repeat("a", maxName+1), false},
		{only("\xff"), nil, "\uFFFD", false},
	} {
		c.run(t, "name", (*Filter).allows)
		if got := NewFilter(c.allow, c.deny).Allows(c.name); got != c.want {
			t.Errorf("Allows(%q) is %v", c.name, got)
		}
	}
}

func TestFilterOfURIs(t *testing.T) {
	docs := only("file:///docs/*")
	for _, c := range []filterCase{
		{nil, nil, "..", true},
		{docs, nil, "file:///docs/a/b", true},
		{docs, nil, "file:///doc", false},
		{docs, nil, "file:///docs/../etc/passwd", false},
		{docs, nil, "file:///docs/%2e%2E/etc", false},
		{docs, nil, "file:///docs/..%2fetc", false},
		{docs, nil, "file:///docs/%252e%252e/etc", false},
		{docs, nil, `file:///docs\..\etc`, false},
		{docs, nil, "file:///docs/a/..", false},
		{docs, nil, "file:///docs/a/..;x/etc", false},
		{docs, nil, "file:///docs/.", false},
		{docs, nil, "file:///docs/a...b", true},
		{docs, nil, "file:///docs/.git", true},
		{docs, nil, "file:///docs/a%00.md", false},
		{docs, nil, "file:///docs/a\n", false},
		{docs, nil, "file:///docs/100%", true},
		{docs, nil, "file:///docs/caf%E9", true},
		{docs, nil, "file:///docs/a%20b", true},
		{docs, nil, "file:///docs/%252525", true},
		{docs, nil, "file:///docs/%25252541", false}, // too many readings
		{docs, nil, "file:///%64ocs/a", false},       // as written it is elsewhere
		{only("file:///my%20docs/*"), nil, "file:///my%20docs/a", true},
		{only("file:///my docs/*"), nil, "file:///my%20docs/a", false}, // as it is written
		{only("file:///my%20docs/*"), nil, "file:///my docs/a", true},
		{nil, only("file:///secret*"), "file:///%73ecret", false},
		{nil, only("file:///secret*"), "file:///%2573ecret", false},
		{nil, only("file:///%73ecret*"), "file:///secret", false},
		{nil, only("file:///secret*"), "file:///other", true},
		{only("x:100%2A"), nil, "x:100%2A", false}, // decoded it is not what was allowed
		{only("x:100%2A"), nil, "x:1000", false},
		{nil, only("x:100%2A"), "x:100%2A", false},
	} {
		c.run(t, "URI", (*Filter).allowsURI)
	}
}

func TestFilterOfTemplates(t *testing.T) {
	docs := only("file:///docs/*")
	for _, c := range []filterCase{
		{nil, nil, "{", true},
		{docs, nil, "file:///docs/{name}", true},
		{docs, nil, "file:///docs/{+path}{?query*}", true},
		{docs, nil, "file:///docs{/path*}", false}, // "docs" alone may come out
		{docs, nil, "file:///{name}", false},
		{docs, nil, "{+uri}", false},
		{docs, nil, "file:///docs/../{name}", false},
		{docs, nil, "file:///docs/plain", true}, // no expression: a URI
		{docs, nil, "file:///docs/%2e%2e/plain", false},
		{docs, nil, "file:///docs/{a", false},
		{docs, nil, "file:///docs/a}", false},
		{docs, nil, "file:///docs/{a{b}}", false},
		{docs, nil, "file:///docs/{a}\x00", false},
		{only("x:?"), nil, "x:{a}", false}, // one character is not any text
		{only("x:?b"), nil, "x:ab{c}", false},
		{only("x:?b*"), nil, "x:ab{c}", true},
		{only("*/issues/*"), nil, "repo:{owner}/issues/{n}", true},
		{only("*/issues/*"), nil, "repo:{owner}/{kind}/{n}", false},
		{nil, only("file:///secret/*"), "file:///docs/{name}", true},
		{nil, only("file:///secret/*"), "file:///secret/{name}", false},
		{nil, only("file:///secret/*"), "file:///{+name}", false},
		{nil, only("file:///secret/*"), "{scheme}://{rest}", false},
		{nil, only("file:///secret/*"), "file:///s{x}t/{y}", false},
		{nil, only("file:///secret/*"), "file:///t{x}t/{y}", true},
		{nil, only("file:///secret"), "file:///secret{x}", false}, // nothing may come out
		{nil, only("*secret*"), "x:{a}", false},
		{nil, only("file:///a b/c"), "file:///a%20b/{x}", false},
		{nil, only("file:///a%20b/c"), "file:///a b/{x}", false},
		{nil, only("x:?ab"), "x:{a}b", false},
		{nil, only("x:ü*"), "x:%C3%BC{a}", false},
		{nil, only("x:y"), "x:" + strings.Repeat("z", maxTemplate) + "{a}", false},
	} {
		c.run(t, "template", (*Filter).allowsTemplate)
	}
}

// What an allowed template expands to is allowed.
func TestTemplateSpeaksForItsExpansions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	word := func(letters string, most int) string {
		var s strings.Builder
		for range rng.IntN(most + 1) {
			s.WriteByte(letters[rng.IntN(len(letters))])
		}
		return s.String()
	}
	allowed := 0
	for range 50_000 {
		var allow, deny []string
		if rng.IntN(3) > 0 {
			allow = only(word("ab*?/", 6), word("ab**", 5))
		}
		if rng.IntN(3) > 0 {
			deny = only(word("ab*?/", 6))
		}
		f := NewFilter(allow, deny)
		template := word("ab/{", 6)
		var uri strings.Builder
		for _, r := range template {
			if r == '{' {
				uri.WriteString(word("ab/", 3))
			} else {
				uri.WriteRune(r)
			}
		}
		if !f.allowsTemplate([]byte(strings.ReplaceAll(template, "{", "{x}"))) {
			continue
		}
		allowed++
		if !f.allowsURI([]byte(uri.String())) {
			t.Fatalf("allow %q deny %q: template %s is allowed, %s is not", allow, deny, template, uri.String())
		}
	}
	if allowed < 5_000 {
		t.Fatalf("only %d templates were allowed", allowed)
	}
}

// The long-name worst case of the matcher stays at the product of the lengths.
func TestMatchTakesNoExponentialTime(t *testing.T) {
	f := NewFilter(only(strings.Repeat("*a", 30)+"b"), nil)
	if f.Allows(strings.Repeat("a", maxName)) {
		t.Error("matched")
	}
	if f.allowsTemplate([]byte(strings.Repeat("a{x}", maxTemplate/4))) {
		t.Error("matched")
	}
}
