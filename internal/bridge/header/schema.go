package header

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Schema says which arguments of one tool are repeated in headers. The zero Schema
// is that of a tool without annotations. It never changes.
type Schema struct{ params []param }

type param struct {
	key  string   // canonical: Mcp-Param-...
	path []string // of names, from the arguments on
}

// annotation is the keyword by which a property's schema names its header.
const annotation = "x-mcp-header"

// What one tool may have, lest a cache of schemas grows without bound.
const (
	maxParams = 64
	maxToken  = 128
	maxPath   = 32
	maxName   = 256
)

// parseSchema finds the annotations in the inputSchema at a place of valid JSON,
// in one pass.
func parseSchema(raw []byte, at wire.Span) (Schema, error) {
	if raw[at.Start] != '{' || !mentions(at.Of(raw)) {
		return Schema{}, nil
	}
	w := walker{raw: raw}
	if err := w.walk(at); err != nil {
		return Schema{}, err
	}
	return Schema{w.found}, nil
}

// mentions: there may be an annotation.
func mentions(raw []byte) bool {
	return bytes.Contains(raw, []byte(annotation)) || bytes.IndexByte(raw, '\\') >= 0
}

// place is what an object is by where it stands.
type place uint8

const (
	data       place = iota // a value, whatever it holds
	schema                  // the schema itself, or one of a property, by "properties" alone
	properties              // names and schemas of those
	apart                   // a schema that is reached otherwise: items, oneOf, $defs, ...
	named                   // names and schemas of those
)

// frame is one open object or array.
type frame struct {
	place  place
	array  bool
	depth  int       // how many names lead to it
	header wire.Span // value of the annotation
	kind   wire.Span // value of "type"
	twice  bool      // one of the two stands there twice
}

type walker struct {
	raw   []byte
	open  []frame
	path  []wire.Span // names, as tokens
	found []param
}

func (w *walker) walk(at wire.Span) error {
	next := schema
	for i := at.Start; i < at.End; {
		switch w.raw[i] {
		case '{':
			w.open = append(w.open, frame{place: next, depth: len(w.path)})
		case '[':
			if next != data {
				next = apart
			}
			w.open = append(w.open, frame{place: next, array: true, depth: len(w.path)})
		case '}', ']':
			f := &w.open[len(w.open)-1]
			if err := w.close(f); err != nil {
				return err
			}
			w.open = w.open[:len(w.open)-1]
		case ',':
			if f := &w.open[len(w.open)-1]; f.array {
				next = f.place
			}
		case '"':
			s := wire.Span{Start: i, End: wire.SkipValue(w.raw, i)}
			i = s.End
			if i = wire.SkipSpace(w.raw, i); w.raw[i] != ':' {
				continue
			}
			i = wire.SkipSpace(w.raw, i+1)
			var err error
			if next, err = w.key(s, i); err != nil {
				return err
			}
			continue
		}
		i++
	}
	return nil
}

// key tells what the value at i is, which is the member under a name.
func (w *walker) key(name wire.Span, i uint32) (place, error) {
	f := &w.open[len(w.open)-1]
	w.path = w.path[:f.depth]
	switch f.place {
	case data:
		return data, nil
	case properties:
		w.path = append(w.path, name)
		return schema, nil
	case named:
		return apart, nil
	}
	keyword, _ := wire.Unquote(name.Of(w.raw))
	switch string(keyword) {
	case annotation:
		if f.place == apart {
			return data, errors.New(annotation + " stands where properties alone do not lead")
		}
		f.note(&f.header, w.raw, i)
		return data, nil
	case "type":
		f.note(&f.kind, w.raw, i)
		return data, nil
	case "properties":
		if f.place == schema {
			return properties, nil
		}
		return named, nil
	case "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies":
		return named, nil
	case "default", "const", "enum", "example", "examples":
		return data, nil
	}
	return apart, nil
}

func (f *frame) note(s *wire.Span, raw []byte, i uint32) {
	f.twice = f.twice || s.Present()
	*s = wire.Span{Start: i, End: wire.SkipValue(raw, i)}
}

// close enters the annotation that the schema had which ends here.
func (w *walker) close(f *frame) error {
	if !f.header.Present() {
		return nil
	}
	text, isString := wire.Unquote(f.header.Of(w.raw))
	kind, _ := wire.Unquote(f.kind.Of(w.raw))
	name := string(text)
	switch {
	case f.twice:
		return errors.New(annotation + " or type stands twice in one schema")
	case f.depth == 0:
		return errors.New(annotation + " stands at no property")
	case !isString:
		return errors.New(annotation + " is no string")
	case name == "":
		return errors.New(annotation + " is empty")
	case !token(name):
		return fmt.Errorf("%s %s is no name of a header", annotation, quote(name))
	case string(kind) != "string" && string(kind) != "integer" && string(kind) != "boolean":
		return fmt.Errorf("%s %s is at a property of another type than string, integer and boolean", annotation, quote(name))
	case len(name) > maxToken || f.depth > maxPath || len(w.found) == maxParams:
		return fmt.Errorf("%s %s is beyond the limits: %d bytes, nested %d deep, %d to a tool", annotation, quote(name), maxToken, maxPath, maxParams)
	}
	p := param{key: http.CanonicalHeaderKey(mcp.HeaderParamPrefix + name)}
	for _, q := range w.found {
		if strings.EqualFold(p.key, q.key) {
			return fmt.Errorf("%s %s stands at more than one property", annotation, quote(name))
		}
	}
	for _, tok := range w.path[:f.depth] {
		part, _ := wire.Unquote(tok.Of(w.raw))
		if len(part) == 0 || len(part) > maxName {
			return fmt.Errorf("%s %s is at a property with no name, or one of more than %d bytes", annotation, quote(name), maxName)
		}
		p.path = append(p.path, string(part))
	}
	w.found = append(w.found, p)
	return nil
}
