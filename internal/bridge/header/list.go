package header

import (
	"errors"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// ParseTools reads the annotations of all tools of a page: the response to
// tools/list, or the result in it. Tools without any have the zero Schema; invalid
// tells why one must not be used over HTTP (2026-07-28, streamable-http, "Custom
// Headers"). Of tools of one name the first one counts. Bytes that are no such page
// have no tools.
func ParseTools(list []byte) (schemas map[string]Schema, invalid map[string]error) {
	for _, t := range parseTools(list) {
		_, seen := schemas[t.name]
		_, bad := invalid[t.name]
		switch {
		case t.err != nil && !bad:
			if invalid == nil {
				invalid = make(map[string]error)
			}
			invalid[t.name] = t.err
		case t.err == nil && !seen:
			if schemas == nil {
				schemas = make(map[string]Schema)
			}
			schemas[t.name] = t.schema
		}
	}
	return schemas, invalid
}

// WithoutInvalid is a page without the tools that must not be used over HTTP, each
// of which log is told. All other bytes stay; if there are no such tools it is
// list itself.
func WithoutInvalid(list []byte, log func(tool, reason string)) []byte {
	if !mentions(list) {
		return list
	}
	tools := parseTools(list)
	var cuts []wire.Edit
	first := 0 // of those that stay
	for first < len(tools) && tools[first].err != nil {
		log(tools[first].name, tools[first].err.Error())
		first++
	}
	switch {
	case first == 0:
	case first < len(tools): // with the comma after the last
		cuts = append(cuts, wire.Edit{Span: wire.Span{Start: tools[0].at.Start, End: tools[first].at.Start}})
	default:
		cuts = append(cuts, wire.Edit{Span: wire.Span{Start: tools[0].at.Start, End: tools[first-1].at.End}})
	}
	for i := first; i < len(tools); i++ {
		if tools[i].err == nil {
			continue
		}
		log(tools[i].name, tools[i].err.Error())
		cuts = append(cuts, wire.Edit{Span: wire.Span{Start: tools[i-1].at.End, End: tools[i].at.End}}) // with the comma before
	}
	if cuts == nil {
		return list
	}
	return wire.Splice(nil, list, cuts...)
}

type tool struct {
	name   string
	at     wire.Span
	schema Schema
	err    error
}

// parseTools reads all elements of the array of tools, in their order.
func parseTools(list []byte) []tool {
	whole, ok := wire.Lookup(list) // from here on it is valid JSON
	if !ok || list[whole.Start] != '{' {
		return nil
	}
	at := whole.Start
	if result, ok := wire.Lookup(list, "result"); ok && list[result.Start] == '{' {
		at = result.Start
	}
	var found [1]wire.Span
	if _, err := wire.Pick(found[:], list, at, "tools"); err != nil || !found[0].Present() || list[found[0].Start] != '[' {
		return nil
	}
	var tools []tool
	for e := range wire.Elements(list, found[0].Start) {
		tools = append(tools, parseTool(list, e))
	}
	return tools
}

func parseTool(list []byte, at wire.Span) tool {
	t := tool{at: at}
	if list[at.Start] != '{' {
		return t
	}
	raw := at.Of(list)
	if span, ok := wire.Lookup(raw, "name"); ok {
		name, _ := wire.Unquote(span.Of(raw))
		t.name = string(name)
	}
	var found [1]wire.Span
	_, err := wire.Pick(found[:], list, at.Start, "inputSchema")
	switch {
	case err != nil && mentions(raw):
		t.err = errors.New("inputSchema stands twice, or again in other letters")
	case err == nil && found[0].Present():
		t.schema, t.err = parseSchema(list, found[0])
	}
	return t
}
