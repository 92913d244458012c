package config

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// kind is what a value is in JSON's terms.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindList
	kindMap
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "a list", "a map"}[k]
}

func (k kind) scalar() bool { return k == kindBool || k == kindNumber || k == kindString }

type pos struct{ line, col int }

// node is a value of either syntax. The text of a scalar is as it is written: a
// number keeps its digits.
type node struct {
	pos
	kind   kind
	text   string
	items  []*node
	fields []field
}

type field struct {
	pos   // of the key
	name  string
	value *node
}

// maxDepth is far above what a configuration has. maxNodes bounds what the
// aliases of a YAML file expand to.
const (
	maxDepth = 64
	maxNodes = 100_000
)

// duplicates finds keys that stand twice in one map, in every part of the file.
func (r *reader) duplicates(n *node, path string) {
	seen := make(map[string]int, len(n.fields))
	for _, f := range n.fields {
		if line, ok := seen[f.name]; ok {
			r.fail(f.pos, join(path, f.name), "this key stands twice, first in line %d", line)
		} else {
			seen[f.name] = f.line
		}
		r.duplicates(f.value, join(path, f.name))
	}
	for i, item := range n.items {
		r.duplicates(item, fmt.Sprintf("%s[%d]", path, i))
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// read is the syntax of a file, told by its content.
func read(data []byte) (*node, *Error) {
	text, err := clean(data)
	if err != nil {
		return nil, err
	}
	if looksLikeJSON(text) {
		return parseJSON(text)
	}
	return parseYAML(text)
}

// clean drops a byte order mark and refuses what is no UTF-8 text.
func clean(data []byte) ([]byte, *Error) {
	if len(data) > MaxSize {
		return nil, &Error{Line: 1, Column: 1, Msg: fmt.Sprintf("the file is larger than %d MiB", MaxSize>>20)}
	}
	if bytes.HasPrefix(data, []byte{0xFF, 0xFE}) || bytes.HasPrefix(data, []byte{0xFE, 0xFF}) {
		return nil, &Error{Line: 1, Column: 1, Msg: "the file is UTF-16", Hint: "save it as UTF-8"}
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	at := pos{1, 1}
	for i := 0; i < len(data); {
		c, size := utf8.DecodeRune(data[i:])
		switch {
		case c == utf8.RuneError && size == 1:
			return nil, &Error{Line: at.line, Column: at.col, Msg: "this is no UTF-8 text", Hint: "save the file as UTF-8"}
		case c == 0:
			return nil, &Error{Line: at.line, Column: at.col, Msg: "a NUL character stands here"}
		case c == '\n':
			at = pos{at.line + 1, 1}
		default:
			at.col++
		}
		i += size
	}
	return data, nil
}

func looksLikeJSON(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	for _, start := range []string{"{", "[", "//", "/*"} {
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}
