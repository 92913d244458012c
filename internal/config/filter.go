package config

// Filter says which tools of a server are offered. In a pattern * stands for
// any characters and ? for one; all else stands for itself.
type Filter struct {
	Allow []string // empty: all
	Deny  []string // wins
}

// Allows tells whether the tool called name is offered. A nil Filter offers all.
func (f *Filter) Allows(name string) bool {
	if f == nil {
		return true
	}
	return !matchAny(f.Deny, name) && (len(f.Allow) == 0 || matchAny(f.Allow, name))
}

func matchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if match([]rune(p), []rune(name)) {
			return true
		}
	}
	return false
}

// match goes back to the last * only, so its time is at worst the product of
// the two lengths.
func match(pattern, name []rune) bool {
	p, n := 0, 0
	star, mark := -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
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
