package header

import (
	"net/http"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const props = `{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},"b":{"type":"boolean","x-mcp-header":"B"},"o":{"properties":{"s":{"type":"string","x-mcp-header":"Os"}}}}`

func TestHeaders(t *testing.T) {
	s := learn(t, props)
	for args, want := range map[string]http.Header{
		``:                                       nil,
		`{}`:                                     nil,
		`{"s":null,"i":null,"o":null}`:           nil,
		`{"s":{},"i":[],"o":"x"}`:                nil,
		`{"s":"","x":"y"}`:                       headers("Mcp-Param-S: "),
		`{"s":"\u00e9","i":42.0,"b":false}`:      headers("Mcp-Param-S: =?base64?w6k=?=", "Mcp-Param-I: 42", "Mcp-Param-B: false"),
		`{"o":{"s":"x","t":{}},"b":true}`:        headers("Mcp-Param-Os: x", "Mcp-Param-B: true"),
		`{"s":1.5,"i":"i","b":4e0}`:              headers("Mcp-Param-S: 1.5", "Mcp-Param-I: i", "Mcp-Param-B: 4"),
		`{"i":12345678901234567890}`:             headers("Mcp-Param-I: 12345678901234567890"),
		`{"s":"a","s":"b","i":1,"I":2,"b":true}`: headers("Mcp-Param-B: true"),
	} {
		got := s.Headers([]byte(args))
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s has %v, want %v", args, got, want)
		}
	}
	if got := (Schema{}).Headers([]byte(`{"s":"x"}`)); got != nil {
		t.Errorf("a tool without annotations has %v", got)
	}
}

func TestSchemaCheck(t *testing.T) {
	s := learn(t, props)
	for name, tt := range map[string]struct {
		args string
		h    http.Header
		want string
	}{
		"none":           {``, headers(), ""},
		"unknown":        {`{}`, headers("Mcp-Param-Other: 7"), ""},
		"all":            {`{"s":"a b","i":7,"b":true,"o":{"s":"x"}}`, headers("Mcp-Param-S: a b", "Mcp-Param-I: 7", "Mcp-Param-B: true", "Mcp-Param-Os: =?base64?eA==?="), ""},
		"missing":        {`{"s":"x"}`, headers(), `Mcp-Param-S is missing; by the request's body it must be "x"`},
		"missing number": {`{"i":7.0}`, headers(), `Mcp-Param-I is missing; by the request's body it must be "7"`},
		"of null":        {`{"s":null}`, headers("Mcp-Param-S: null"), "absent"},
		"of nothing":     {`{}`, headers("Mcp-Param-S: x"), "absent"},
		"of an object":   {`{"s":{}}`, headers("Mcp-Param-S: x"), "absent"},
		"nested nothing": {`{"o":[]}`, headers("Mcp-Param-Os: x"), "absent"},
		"other":          {`{"s":"x"}`, headers("Mcp-Param-S: X"), `Mcp-Param-S says "X"`},
		"more than once": {`{"s":"x"}`, headers("Mcp-Param-S: x", "Mcp-Param-S: x"), "more than once"},
		"bad encoding":   {`{"s":"x"}`, headers("Mcp-Param-S: =?base64?eA=?="), "no valid encoding"},
		"literal":        {`{"s":"eA=="}`, headers("Mcp-Param-S: eA=="), ""},
		"42.0":           {`{"i":42}`, headers("Mcp-Param-I: 42.0"), ""},
		"42 of 4.2e1":    {`{"i":4.2e1}`, headers("Mcp-Param-I: 42"), ""},
		"beyond floats":  {`{"i":9007199254740993}`, headers("Mcp-Param-I: 9007199254740992"), "Mcp-Param-I says"},
		"no number":      {`{"i":42}`, headers("Mcp-Param-I: 42x"), "Mcp-Param-I says"},
		"True":           {`{"b":true}`, headers("Mcp-Param-B: True"), "Mcp-Param-B says"},
		"wrong type":     {`{"i":"42"}`, headers("Mcp-Param-I: 42.0"), `must be "42"`},
		"twice":          {`{"s":"x","s":"y"}`, headers("Mcp-Param-S: x"), "twice"},
		"other letters":  {`{"s":"x","S":"y"}`, headers("Mcp-Param-S: x"), "other letters"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, s.Check(tt.h, []byte(tt.args)), tt.want) })
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add(props, `{"s":"é","i":1e2,"b":false,"o":{"s":"=?base64?eA==?="}}`)
	f.Add(`{"a":{"type":"string","x-mcp-header":"A"}}`, `{"a":1E99999999999999999999}`)
	f.Fuzz(func(t *testing.T, props, args string) {
		if a, ok := wire.Lookup([]byte(args)); !ok || args[0] != '{' || int(a.End) != len(args) || !utf8.ValidString(args) { // as of Parse
			return
		}
		s, err := parse(`{"properties":` + props + `}`)
		if err != nil {
			return
		}
		for i := range s.params {
			if _, err := s.params[i].value([]byte(args)); err != nil {
				return
			}
		}
		if err := s.Check(s.Headers([]byte(args)), []byte(args)); err != nil {
			t.Errorf("%s with %s: %v", props, args, err)
		}
	})
}
