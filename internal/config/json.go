package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// parseJSON reads JSON with // and /* */ comments and trailing commas.
func parseJSON(text []byte) (n *node, err *Error) {
	p := &jsonParser{text: string(text), at: pos{1, 1}}
	defer func() {
		if e, ok := recover().(syntaxError); ok {
			n, err = nil, e.Error
		}
	}()
	p.space()
	n = p.value(0)
	p.space()
	if p.rest() != "" {
		p.fail("something stands after the end", "a file holds one object")
	}
	return n, nil
}

type jsonParser struct {
	text string
	off  int
	at   pos // of off
}

// syntaxError unwinds to parseJSON: there is nothing to go on with after one.
type syntaxError struct{ *Error }

func (p *jsonParser) fail(msg, hint string) {
	panic(syntaxError{&Error{Line: p.at.line, Column: p.at.col, Msg: msg, Hint: hint}})
}

func (p *jsonParser) rest() string { return p.text[p.off:] }

// skip goes n bytes on, which end at a character.
func (p *jsonParser) skip(n int) {
	for _, c := range p.text[p.off : p.off+n] {
		if c == '\n' {
			p.at = pos{p.at.line + 1, 1}
		} else {
			p.at.col++
		}
	}
	p.off += n
}

// space skips white space and comments.
func (p *jsonParser) space() {
	for {
		rest := p.rest()
		switch {
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			p.skip(end)
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				p.fail("this comment is not closed", "")
			}
			p.skip(end + 4)
		case rest != "" && strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			p.skip(1)
		default:
			return
		}
	}
}

// word is true or a number: what stands without quotes.
var word = regexp.MustCompile(`^[-+.\pL\pN_$]+`)

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`)

func (p *jsonParser) value(depth int) *node {
	n := &node{pos: p.at}
	rest := p.rest()
	if rest == "" {
		p.fail("the file ends where a value is wanted", "")
	}
	switch rest[0] {
	case '{', '[':
		if depth == maxDepth {
			p.fail(fmt.Sprintf("nested deeper than %d levels", maxDepth), "")
		}
		p.container(n, depth)
	case '"':
		n.kind, n.text = kindString, p.quoted()
	case '\'':
		p.fail("a single quote", "JSON strings stand in double quotes")
	default:
		w := word.FindString(rest)
		n.text = w
		switch {
		case w == "true" || w == "false":
			n.kind = kindBool
		case w == "null":
			n.kind = kindNull
		case jsonNumber.MatchString(w):
			n.kind = kindNumber
		case w == "True" || w == "False" || w == "None":
			p.fail(fmt.Sprintf("%s is no JSON", w), "write true, false or null")
		case w == "":
			c, _ := utf8.DecodeRuneInString(rest)
			p.fail(fmt.Sprintf("%q stands where a value is wanted", c), "")
		default:
			p.fail("a value without quotes", "JSON strings stand in double quotes")
		}
		p.skip(len(w))
	}
	return n
}

// container reads a map or a list.
func (p *jsonParser) container(n *node, depth int) {
	n.kind = kindList
	end := byte(']')
	if p.rest()[0] == '{' {
		n.kind, end = kindMap, '}'
	}
	p.skip(1)
	for {
		p.space()
		if p.peek(n) == end {
			break
		}
		if n.kind == kindMap {
			n.fields = append(n.fields, p.member(n, depth))
		} else {
			n.items = append(n.items, p.value(depth+1))
		}
		p.space()
		switch c := p.peek(n); {
		case c == ',':
			p.skip(1)
		case c == end:
		case c == '}' || c == ']':
			p.fail(fmt.Sprintf("the %s of line %d is not closed before this %c", n.opening(), n.line, c), "")
		default:
			p.fail("a comma is missing before this", "")
		}
	}
	p.skip(1)
}

// peek is the next byte of the open container n.
func (p *jsonParser) peek(n *node) byte {
	if p.rest() == "" {
		p.fail(fmt.Sprintf("the file ends, and the %s of line %d is not closed", n.opening(), n.line), "")
	}
	return p.rest()[0]
}

func (n *node) opening() string {
	if n.kind == kindList {
		return "["
	}
	return "{"
}

func (p *jsonParser) member(n *node, depth int) field {
	f := field{pos: p.at}
	switch c := p.rest()[0]; {
	case c == '"':
		f.name = p.quoted()
	case c == ',':
		p.fail("a comma too many", "")
	default:
		p.fail("a key in double quotes is wanted here", "")
	}
	p.space()
	if p.peek(n) != ':' {
		p.fail("a colon is wanted after the key", "")
	}
	p.skip(1)
	p.space()
	p.peek(n)
	f.value = p.value(depth + 1)
	return f
}

// quoted reads a string. Escapes are the standard library's to decode; a lone
// surrogate becomes U+FFFD there.
func (p *jsonParser) quoted() string {
	rest := p.rest()
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			var s string
			if json.Unmarshal([]byte(rest[:i+1]), &s) != nil {
				p.fail("this string has an escape that JSON does not know", `a backslash is written \\`)
			}
			p.skip(i + 1)
			return s
		case c == '\n' || c == '\r':
			p.fail("this string is not closed in its line", "")
		case c < ' ':
			p.fail("this string holds a control character", `write it as an escape: \t, \u001b`)
		case c == '\\':
			i++
		}
	}
	p.fail("this string is not closed", "")
	return ""
}
