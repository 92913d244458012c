package policy

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Filter says which names are allowed. In a pattern * stands for any
// characters, / among them, and ? for one; all else stands for itself. Deny wins.
// A nil Filter allows everything.
//
// Of a URI all readings have to be allowed: as it is written, and with its
// percent-escapes decoded, again as long as there are any. One that has a segment
// "." or ".." or a control character in some reading, or escapes four deep, is
// allowed to nobody: a pattern says nothing of where it leads. Beyond that a server may
// take two URIs for one (case, "//"), so a list of what is allowed is safer than
// one of what is denied.
//
// A URI template (RFC 6570) is allowed if every URI that it can expand to is:
// some pattern of Allow covers all of them, and none of Deny meets any. Whatever
// stands in braces can become any text.
type Filter struct {
	allow, deny []glob
	all         bool // no allow list: everything that is not denied
}

// glob is one pattern: as written, and with percent-escapes decoded where that
// makes a difference. The second is for URIs only.
type glob struct{ written, decoded []byte }

// NewFilter makes a Filter. A nil allow allows all that is not denied; one that
// is empty but not nil allows nothing. The Filter is nil if both are nil.
func NewFilter(allow, deny []string) *Filter {
	if allow == nil && deny == nil {
		return nil
	}
	return &Filter{allow: globs(allow), deny: globs(deny), all: allow == nil}
}

func globs(patterns []string) []glob {
	out := make([]glob, 0, len(patterns))
	for _, p := range patterns {
		g := glob{written: []byte(strings.ToValidUTF8(p, "\uFFFD"))}
		if d, ok := unescape(g.written, isWildcard); ok {
			g.decoded = d
		}
		out = append(out, g)
	}
	return out
}

// isWildcard is for escapes that must not be decoded in a pattern, for they
// would mean more than they did.
func isWildcard(c byte) bool { return c == '*' || c == '?' }

// maxName bounds the names that are compared, in bytes.
const maxName = 64 << 10

// Allows tells whether a tool or prompt may be used by this name.
func (f *Filter) Allows(name string) bool { return f.allows([]byte(name)) }

func (f *Filter) allows(name []byte) bool {
	if f == nil {
		return true
	}
	plain := func(g glob) bool { return match(g.written, name) }
	return isName(name) && !some(f.deny, plain) && (f.all || some(f.allow, plain))
}

// allowsURI is allows for a resource.
func (f *Filter) allowsURI(uri []byte) bool {
	if f == nil {
		return true
	}
	if !isName(uri) {
		return false
	}
	all, ok := readings(uri)
	for _, r := range all {
		fits := func(g glob) bool { return match(g.written, r) || g.decoded != nil && match(g.decoded, r) }
		ok = ok && !some(f.deny, fits) && (f.all || some(f.allow, fits))
	}
	return ok
}

// isName tells whether all readers of a name take it for the same one.
func isName(name []byte) bool {
	return len(name) <= maxName && bytes.IndexByte(name, 0) < 0 && !bytes.ContainsRune(name, utf8.RuneError)
}

func some(list []glob, fits func(glob) bool) bool {
	for _, g := range list {
		if fits(g) {
			return true
		}
	}
	return false
}

// match goes back to the last * only, so its time is at worst the product of
// the two lengths.
func match(pattern, name []byte) bool {
	p, n := 0, 0
	star, mark := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			n += width(name[n:])
		case p < len(pattern) && pattern[p] == name[n]:
			p++
			n++
		case star >= 0:
			mark += width(name[mark:])
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

func width(s []byte) int {
	_, n := utf8.DecodeRune(s)
	return n
}
