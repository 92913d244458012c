package dialog

import (
	"bytes"
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Until 2025-11-25 a tool's structuredContent is an object, and its outputSchema
// one of type "object"; since 2026-07-28 both are free. What is none is wrapped as
// {"result": ...} for the client.

// maxWrapped bounds the names of tools that a session remembers for that.
const maxWrapped = 4096

// wrapContent wraps the structuredContent of a result. A client that saw the
// schema of the tool wrapped checks the content against that, object or not.
func (k *call) wrapContent(raw []byte, value wire.Span) verdict {
	if isObject(raw, value) && !k.c.isWrapped(k.tool) {
		return stays
	}
	return replace(value, slices.Concat([]byte(`{"result":`), value.Of(raw), []byte(`}`)))
}

func (c *conn) isWrapped(tool string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.wrapped[tool]
	return ok
}

// wrapTools wraps the outputSchema of each tool of a list that needs it.
func (k *call) wrapTools(raw []byte, list wire.Span) verdict {
	if raw[list.Start] != '[' {
		return stays
	}
	var v verdict
	for tool := range wire.Elements(raw, list.Start) {
		schema, ok := member(raw, tool, "outputSchema")
		if !ok {
			continue
		}
		name, _ := member(raw, tool, "name")
		wrap := !isObjectSchema(raw, schema) && raw[schema.Start] != 'n' // null: there is none
		k.c.noteWrapped(name.Of(raw), wrap)
		if wrap {
			v.Edits = append(v.Edits, wire.Edit{Span: schema, New: wrapSchema(raw, schema)})
		}
	}
	return v
}

func (c *conn) noteWrapped(token []byte, wrap bool) {
	name, _ := wire.Unquote(token)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !wrap:
		delete(c.wrapped, string(name))
	case len(c.wrapped) < maxWrapped:
		if c.wrapped == nil {
			c.wrapped = make(map[string]struct{})
		}
		c.wrapped[string(name)] = struct{}{}
	}
}

func isObjectSchema(raw []byte, schema wire.Span) bool {
	kind, _ := member(raw, schema, "type")
	name, _ := wire.Unquote(kind.Of(raw))
	return string(name) == "object"
}

// wrapSchema makes a schema for {"result": ...}. Its dialect moves to the outer
// schema. References into the document by JSON pointer get the longer way, unless
// the schema has an $id, by which it stays a document of its own.
func wrapSchema(raw []byte, schema wire.Span) []byte {
	out := []byte(`{`)
	inner := schema.Of(raw)
	if _, own := member(raw, schema, "$id"); !own && isObject(raw, schema) {
		if dialect, ok := member(raw, schema, "$schema"); ok {
			out = append(out, quoted("$schema", dialect.Of(raw))...)
			out = append(out, ',')
		}
		edits, _ := wire.EditMembers(raw, schema.Start, func(name []byte, value wire.Span) verdict {
			if string(name) == "$schema" {
				return goes
			}
			return verdict{Edits: keyword(raw, string(name), value)}
		})
		inner = within(raw, schema, edits)
	}
	out = append(out, `"type":"object","properties":{"result":`...)
	out = append(out, inner...)
	return append(out, `},"required":["result"]}`...)
}

// references returns the edits of the references in the schema at s.
func references(raw []byte, s wire.Span) (edits []wire.Edit) {
	if _, own := member(raw, s, "$id"); own || !isObject(raw, s) {
		return nil
	}
	for key, value := range wire.Members(raw, s.Start) {
		name, _ := wire.Unquote(key.Of(raw))
		edits = append(edits, keyword(raw, string(name), value)...)
	}
	return edits
}

// keyword returns the edits of the references in one member of a schema
// (JSON Schema 2020-12, core).
func keyword(raw []byte, name string, value wire.Span) (edits []wire.Edit) {
	switch name {
	case "$ref", "$dynamicRef":
		return reference(raw, value)
	case "const", "enum", "default", "examples":
		return nil // data
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		if isObject(raw, value) { // of schemas, by any name
			for _, schema := range wire.Members(raw, value.Start) {
				edits = append(edits, references(raw, schema)...)
			}
		}
		return edits
	}
	if raw[value.Start] == '[' {
		for schema := range wire.Elements(raw, value.Start) {
			edits = append(edits, references(raw, schema)...)
		}
		return edits
	}
	return references(raw, value)
}

// reference is the edit of "#" and "#/...". Names ("#name") hold in the whole document.
func reference(raw []byte, value wire.Span) []wire.Edit {
	target, ok := wire.Unquote(value.Of(raw))
	if !ok || !bytes.Equal(target, []byte("#")) && !bytes.HasPrefix(target, []byte("#/")) {
		return nil
	}
	return []wire.Edit{{Span: value, New: wire.AppendQuote(nil, "#/properties/result"+string(target[1:]))}}
}
