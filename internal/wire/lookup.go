package wire

import "bytes"

// place is where a member stands: from the opening quote of its name to the end
// of its value.
type place struct{ key, value, end int }

// nameIs reports whether a name token decodes to want.
func nameIs(token []byte, want string) bool {
	name := token[1 : len(token)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name, _ = Unquote(token)
	}
	return string(name) == want
}

// findMember finds the first member called name in the object at i.
func findMember(raw []byte, i int, name string) (place, bool) {
	if at(raw, i) != '{' {
		return place{}, false
	}
	for sep := byte('{'); at(raw, i) == sep; sep = ',' {
		key := skipSpace(raw, i+1)
		nameEnd := scanString(raw, key)
		if nameEnd < 0 {
			return place{}, false // '}' of an empty object, or no JSON
		}
		value := scanColon(raw, nameEnd)
		if value < 0 {
			return place{}, false
		}
		end := scanValue(raw, value, 0)
		if end < 0 {
			return place{}, false
		}
		if nameIs(raw[key:nameEnd], name) {
			return place{key, value, end}, true
		}
		i = skipSpace(raw, end)
	}
	return place{}, false
}

// findPath follows path from the value in raw. Its place has a key only if path
// is not empty.
func findPath(raw []byte, path []string) (place, bool) {
	p := place{value: skipSpace(raw, 0)}
	for _, name := range path {
		var ok bool
		if p, ok = findMember(raw, p.value, name); !ok {
			return place{}, false
		}
	}
	if len(path) == 0 {
		p.end = scanValue(raw, p.value, 0)
	}
	return p, p.end > 0
}

// Lookup finds a member of nested objects by the exact, decoded names on the
// way to it, the first of each name, and returns its value's span in raw. Without
// a path that is raw's own value. raw is one valid JSON text; in other bytes
// the result means nothing, but nothing breaks.
func Lookup(raw []byte, path ...string) (Span, bool) {
	p, ok := findPath(raw, path)
	if !ok {
		return Span{}, false
	}
	return span(p.value, p.end), true
}

// Remove returns a copy of raw without the member that Lookup would find, and
// without the comma after it (before it, if it is the last), and what white space
// lies between the two. All other bytes stay. It returns raw itself if there is
// no such member or path is empty.
func Remove(raw []byte, path ...string) []byte {
	p, ok := findPath(raw, path)
	if !ok || len(path) == 0 {
		return raw
	}
	from, to := p.key, p.end
	if next := skipSpace(raw, to); at(raw, next) == ',' {
		to = next + 1
	} else if before := len(trimSpaceRight(raw[:from])) - 1; raw[before] == ',' {
		from = before
	}
	return Splice(nil, raw, Edit{Span: span(from, to)})
}

// elements reads the array at i and returns the position after it, or a fault.
func elements(raw []byte, i int) ([]Span, int) {
	if at(raw, i) != '[' {
		return nil, ^i
	}
	if i = skipSpace(raw, i+1); at(raw, i) == ']' {
		return nil, i + 1
	}
	var spans []Span
	for {
		end := scanValue(raw, i, 1)
		if end < 0 {
			return nil, end
		}
		spans = append(spans, span(i, end))
		i = skipSpace(raw, end)
		switch at(raw, i) {
		case ']':
			return spans, i + 1
		case ',':
			i = skipSpace(raw, i+1)
		default:
			return nil, ^i
		}
	}
}

func trimSpaceRight(b []byte) []byte { return bytes.TrimRight(b, " \t\r\n") }
