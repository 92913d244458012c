package header

import (
	"errors"
	"net/http"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Headers are those that repeat arguments, the raw object in params.arguments of
// a call (nil: none); nil where there are none. An absent or null argument has no
// header, nor has an object or array, which no schema allows there. Any other value
// goes by its own type, whatever the schema says: its server tells what is wrong.
// One that stands there twice, or again in other letters, has none either: readers
// would not agree on it, and Check refuses it.
func (s Schema) Headers(arguments []byte) http.Header {
	var h http.Header
	for i := range s.params {
		p := &s.params[i]
		value, err := p.value(arguments)
		if err != nil || value == nil {
			continue
		}
		if h == nil {
			h = make(http.Header, len(s.params))
		}
		h[p.key] = []string{line(value)}
	}
	return h
}

// line is a string, number or boolean as a header carries it.
func line(value []byte) string {
	switch value[0] {
	case '"':
		text, _ := wire.Unquote(value)
		return Encode(string(text))
	case 't', 'f':
		return string(value)
	}
	return numeral(string(value))
}

// Check compares the headers of the annotated arguments with those, as Headers
// describes them. Integers are compared as numbers. A header of no annotated
// argument does not count. The error is that of the function Check.
func (s Schema) Check(h http.Header, arguments []byte) error {
	for i := range s.params {
		p := &s.params[i]
		value, err := p.value(arguments)
		if err != nil {
			return mismatch(p.key, h[p.key], "one value: "+err.Error())
		}
		if err := p.check(h, value); err != nil {
			return err
		}
	}
	return nil
}

func (p *param) check(h http.Header, value []byte) error {
	values := h[p.key]
	switch {
	case value == nil:
		if len(values) > 0 {
			return mismatch(p.key, values, "absent: the arguments have no value for it")
		}
		return nil
	case value[0] == '"':
		text, _ := wire.Unquote(value)
		return carries(h, p.key, string(text), true)
	case len(values) == 1:
		if got, ok := Decode(values[0]); ok && sameNumber(got, string(value)) {
			return nil
		}
	}
	return mismatch(p.key, values, quote(line(value)))
}

// value is the raw argument; nil if it is absent, null, an object or an array.
func (p *param) value(arguments []byte) ([]byte, error) {
	at := wire.Span{End: uint32(len(arguments))}
	for _, name := range p.path {
		if !at.Present() || arguments[at.Start] != '{' {
			return nil, nil
		}
		var found [1]wire.Span
		if _, err := wire.Pick(found[:], arguments, at.Start, name); err != nil {
			return nil, errTwice
		}
		at = found[0]
	}
	if !at.Present() {
		return nil, nil
	}
	switch arguments[at.Start] {
	case '{', '[', 'n':
		return nil, nil
	}
	return at.Of(arguments), nil
}

var errTwice = errors.New("the arguments have it twice, or again in other letters")
