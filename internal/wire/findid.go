package wire

import "bytes"

// FindID looks for the id of a message that was too long to keep, so that its
// sender can be told. head and tail are its first and last bytes; what stood
// between them is lost. The token aliases one of them.
//
// In head an id is found if it stands in the outermost object before the first
// member that head does not hold whole. In tail it is found if it is the last
// member of all. It is a guess only where the line was no JSON.
func FindID(head, tail []byte) ([]byte, bool) {
	tok, sure := headID(head)
	if tok == nil && !sure {
		tok = tailID(tail)
	}
	return tok, tok != nil
}

// headID is sure if no id can follow what it read: it met one, or the end of
// the object.
func headID(head []byte) (tok []byte, sure bool) {
	i := afterBOM(head)
	if at(head, i) != '{' {
		return nil, false
	}
	for sep := byte('{'); at(head, i) == sep; sep = ',' {
		key := skipSpace(head, i+1)
		nameEnd := scanString(head, key)
		if nameEnd < 0 {
			return nil, false
		}
		value := scanColon(head, nameEnd)
		if value < 0 {
			return nil, false
		}
		end := scanValue(head, value, 1)
		if end < 0 {
			return nil, false
		}
		if nameIs(head[key:nameEnd], names[envID]) {
			if end == len(head) && head[value] != '"' {
				return nil, false // a number may go on after the cut
			}
			if tok = head[value:end:end]; !ValidIDToken(tok) {
				return nil, true
			}
			return tok, true
		}
		i = skipSpace(head, end)
	}
	return nil, at(head, i) == '}'
}

// tailID reads `"id" : TOKEN }` backwards from the end of tail. The last brace
// of a JSON object is the outermost one, so a nested id is not taken for it.
func tailID(tail []byte) []byte {
	b := trimSpaceRight(tail)
	if len(b) == 0 || b[len(b)-1] != '}' {
		return nil
	}
	b = trimSpaceRight(b[:len(b)-1])
	start := tokenStart(b)
	tok := b[start:len(b):len(b)]
	if !ValidIDToken(tok) {
		return nil
	}
	b = trimSpaceRight(b[:start])
	if len(b) == 0 || b[len(b)-1] != ':' {
		return nil
	}
	b, ok := bytes.CutSuffix(trimSpaceRight(b[:len(b)-1]), []byte(`"id"`))
	if !ok {
		return nil
	}
	// Without what stands before it the name could be the end of another one: "x\"id".
	b = trimSpaceRight(b)
	if len(b) == 0 || b[len(b)-1] != ',' && b[len(b)-1] != '{' {
		return nil
	}
	return tok
}

// tokenStart returns where the string or integer token at the end of b can
// begin, len(b) if there is none.
func tokenStart(b []byte) int {
	i := len(b)
	if i == 0 || b[i-1] != '"' {
		for i > 0 && (b[i-1] == '-' || b[i-1]-'0' <= 9) {
			i--
		}
		return i
	}
	// The opening quote is the nearest one that no backslash can belong to:
	// what stands before it is a colon or white space.
	for i -= 2; i >= 0 && len(b)-i <= MaxIDLen+2; i-- {
		if b[i] == '"' && (i == 0 || b[i-1] != '\\') {
			return i
		}
	}
	return len(b)
}
