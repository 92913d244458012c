package config

import (
	"bytes"
	"errors"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// parseYAML reads one YAML document. Only its tree is asked of the library:
// what a key means, and which may stand twice, is decided on nodes.
func parseYAML(text []byte) (n *node, err *Error) {
	defer func() {
		if e := recover(); e != nil { // the library has inputs that it panics on
			n, err = nil, &Error{Line: 1, Column: 1, Msg: "this cannot be read as YAML"}
		}
	}()
	text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	if e := flowDepth(text); e != nil {
		return nil, e
	}
	file, perr := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if perr != nil {
		return nil, yamlError(perr)
	}
	c := &converter{anchors: map[string]ast.Node{}}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			return nil, &Error{Line: line(doc.Body), Column: 1, Msg: "a second YAML document begins here", Hint: "a file holds one"}
		}
		if root = c.convert(doc.Body, 0); c.err != nil {
			return nil, c.err
		}
	}
	if root == nil {
		root = &node{pos: pos{1, 1}}
	}
	return root, nil
}

// flowDepth keeps brackets that nest without end from the library's recursion.
func flowDepth(text []byte) *Error {
	depth, at := 0, pos{1, 1}
	for _, c := range string(text) {
		switch c {
		case '[', '{':
			depth++
		case ']', '}':
			depth--
		case '\n':
			at = pos{at.line + 1, 0}
		}
		if depth > 4*maxDepth {
			return &Error{Line: at.line, Column: at.col, Msg: "nested too deep"}
		}
		at.col++
	}
	return nil
}

// yamlError keeps the library's message and drops its excerpt of the source,
// which may hold a secret.
func yamlError(err error) *Error {
	e := &Error{Line: 1, Column: 1, Msg: "this cannot be read as YAML"}
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) {
		e.Msg = "YAML: " + syntax.Message
		if tk := syntax.Token; tk != nil && tk.Position != nil {
			e.Line, e.Column = max(1, tk.Position.Line), max(1, tk.Position.Column)
		}
	}
	switch {
	case strings.Contains(e.Msg, "\t") || strings.Contains(e.Msg, "tab character"):
		e.Msg, e.Hint = "YAML: a tab stands where a line is indented", "use spaces"
	case strings.HasSuffix(e.Msg, "value is not allowed in this context"):
		e.Hint = "check the indentation, and quote a value with a colon and space in it"
	case strings.HasSuffix(e.Msg, "unexpected scalar value type"):
		e.Hint = "quote a value that begins with *, &, !, % or @"
	}
	return e
}

func line(n ast.Node) int {
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return max(1, tk.Position.Line)
	}
	return 1
}

// converter makes nodes of the library's tree. An alias is a copy of what its
// anchor named, so that the result is a tree, and of bounded size.
type converter struct {
	anchors map[string]ast.Node
	nodes   int
	err     *Error // the first
}

func (c *converter) fail(at pos, msg, hint string) *node {
	if c.err == nil {
		c.err = &Error{Line: at.line, Column: at.col, Msg: msg, Hint: hint}
	}
	return &node{pos: at}
}

func position(n ast.Node) pos {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return position(m.Values[0].Key)
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return pos{max(1, tk.Position.Line), max(1, tk.Position.Column)}
	}
	return pos{1, 1}
}

func (c *converter) convert(in ast.Node, depth int) *node {
	if in == nil {
		return &node{pos: pos{1, 1}}
	}
	at := position(in)
	c.nodes++
	switch {
	case c.err != nil:
		return &node{pos: at}
	case depth > maxDepth:
		return c.fail(at, "nested too deep", "")
	case c.nodes > maxNodes:
		return c.fail(at, "the aliases of this file expand to too much", "")
	}
	n := &node{pos: at}
	switch v := in.(type) {
	case *ast.MappingNode:
		n.kind = kindMap
		for _, mv := range v.Values {
			c.field(n, mv, depth)
		}
		c.merge(n)
	case *ast.MappingValueNode:
		n.kind = kindMap
		c.field(n, v, depth)
		c.merge(n)
	case *ast.SequenceNode:
		n.kind = kindList
		for _, item := range v.Values {
			n.items = append(n.items, c.convert(item, depth+1))
		}
	case *ast.AnchorNode:
		n = c.convert(v.Value, depth+1)
		c.anchors[v.Name.GetToken().Value] = v.Value // known from here on, so never within itself
	case *ast.AliasNode:
		target, ok := c.anchors[v.Value.GetToken().Value]
		if !ok {
			return c.fail(at, "this alias names no anchor above it", "quote a value that begins with *")
		}
		n = c.convert(target, depth+1)
	case *ast.TagNode:
		return c.tagged(v, depth)
	default:
		return c.scalar(in)
	}
	return n
}

func (c *converter) tagged(v *ast.TagNode, depth int) *node {
	n := c.convert(v.Value, depth+1)
	switch v.Start.Value {
	case "!!str":
		if n.kind.scalar() {
			n.kind = kindString
		}
	case "!!int", "!!float", "!!bool", "!!null", "!!map", "!!seq":
	default:
		return c.fail(position(v), "a tag that is not known here", "quote a value that begins with !")
	}
	return n
}

func (c *converter) scalar(in ast.Node) *node {
	n := &node{pos: position(in), kind: kindString}
	tk := in.GetToken()
	switch v := in.(type) {
	case *ast.NullNode:
		n.kind = kindNull
	case *ast.BoolNode:
		n.kind, n.text = kindBool, strings.ToLower(tk.Value)
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		n.kind, n.text = kindNumber, tk.Value
	case *ast.LiteralNode:
		n.text = v.Value.Value
	case *ast.StringNode:
		n.text = v.Value
		// The library takes some numbers, as 1e5, for strings.
		if !quotedToken(tk.Origin) && jsonNumber.MatchString(n.text) {
			n.kind = kindNumber
		}
	default:
		return c.fail(n.pos, "this kind of YAML is not known here", "")
	}
	return n
}

func quotedToken(origin string) bool {
	return strings.ContainsAny(strings.TrimSpace(origin), `"'`)
}

func (c *converter) field(n *node, mv *ast.MappingValueNode, depth int) {
	at := position(mv.Key)
	value := c.convert(mv.Value, depth+1)
	if mv.Key.IsMergeKey() {
		n.fields = append(n.fields, field{pos: at, name: mergeKey, value: value})
		return
	}
	key := c.scalar(mv.Key)
	if key.kind == kindNull {
		key.text = mv.Key.GetToken().Value
	}
	n.fields = append(n.fields, field{pos: at, name: key.text, value: value})
}

// mergeKey cannot be a key of a file: clean refuses NUL.
const mergeKey = "\x00<<"

// merge puts the fields of << behind a map's own, which win.
func (c *converter) merge(n *node) {
	var own, merged []field
	for _, f := range n.fields {
		switch {
		case f.name != mergeKey:
			own = append(own, f)
		case f.value.kind == kindList:
			for _, item := range f.value.items {
				merged = append(merged, item.fields...)
			}
		case f.value.kind == kindMap:
			merged = append(merged, f.value.fields...)
		default:
			c.fail(f.pos, "<< takes a map or a list of maps", "")
		}
	}
	n.fields = own
	for _, f := range merged {
		if !n.has(f.name) {
			n.fields = append(n.fields, f)
		}
	}
}

func (n *node) has(name string) bool {
	for _, f := range n.fields {
		if f.name == name {
			return true
		}
	}
	return false
}
