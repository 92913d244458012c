package policy

import "strings"

// maxTemplate bounds the templates that are compared, in bytes: that costs the
// product of their length with that of a pattern.
const maxTemplate = 4 << 10

// allowsTemplate is allows for a URI template.
func (f *Filter) allowsTemplate(template []byte) bool {
	switch {
	case f == nil:
		return true
	case !strings.ContainsAny(string(template), "{}"):
		return f.allowsURI(template)
	case !isName(template) || len(template) > maxTemplate:
		return false
	}
	t, ok := parseTemplate(string(template))
	if !ok || strays(t.sample()) {
		return false
	}
	covered := func(g glob) bool { return covers(g.written, t) }
	met := func(g glob) bool { return meets(g.written, t) || g.decoded != nil && meets(g.decoded, t) }
	return !some(f.deny, met) && (f.all || some(f.allow, covered))
}

// expansion is what a template can become: code points that stand for
// themselves, and anything.
type expansion []rune

// anything is no code point.
const anything rune = -1

// parseTemplate reads a template (RFC 6570 section 2). Beside the expressions,
// what is not copied literally (section 3.1) can become anything, too, for
// implementations differ; and so can what is percent-encoded already, which has
// several readings. It returns false if the braces do not match.
func parseTemplate(s string) (expansion, bool) {
	var t expansion
	open, escape := false, false
	for _, r := range s {
		escape = escape && r < 0x80 && hexDigit(byte(r)) >= 0
		switch {
		case r == '{' && !open:
			open = true
			t = append(t, anything)
		case r == '}' && open:
			open = false
		case r == '{' || r == '}':
			return nil, false
		case open || escape:
		case isURIChar(r):
			t = append(t, r)
		default:
			escape = r == '%'
			t = append(t, anything)
		}
	}
	return t, !open
}

// isURIChar is for the reserved and unreserved characters of RFC 3986 section 2.
func isURIChar(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
		strings.ContainsRune("-._~:/?#[]@!$&'()*+,;=", r)
}

// sample is one expansion, for a look at the literal segments.
func (t expansion) sample() []byte {
	out := make([]byte, 0, len(t))
	for _, r := range t {
		if r == anything {
			r = 'x'
		}
		out = append(out, byte(r))
	}
	return out
}

// covers tells whether pattern matches whatever t becomes. Only a * can stand
// for anything.
func covers(pattern []byte, t expansion) bool { return product(pattern, t, false) }

// meets tells whether pattern matches something that t can become.
func meets(pattern []byte, t expansion) bool { return product(pattern, t, true) }

// product walks a pattern and an expansion together, in all ways at once, and
// tells whether one leads to both ends. A * takes any piece of t; with wild,
// anything takes any piece of the pattern.
func product(pattern []byte, t expansion, wild bool) bool {
	reach := make([]bool, len(t)+1) // by how much of t is used, after the pattern so far
	next := make([]bool, len(t)+1)
	reach[0] = true
	spread(reach, t, wild)
	for _, p := range string(pattern) {
		clear(next)
		for j, here := range reach {
			switch {
			case !here:
			case p == '*':
				for ; j < len(next) && !next[j]; j++ {
					next[j] = true
				}
			case j == len(t):
			case t[j] == anything:
				next[j] = next[j] || wild
			case p == t[j] || p == '?':
				next[j+1] = true
			}
		}
		spread(next, t, wild)
		reach, next = next, reach
	}
	return reach[len(t)]
}

// spread lets anything become nothing.
func spread(reach []bool, t expansion, wild bool) {
	for j, r := range t {
		if wild && r == anything && reach[j] {
			reach[j+1] = true
		}
	}
}
