package header

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// learn parses the schema of a tool with these properties.
func learn(t testing.TB, props string) Schema {
	t.Helper()
	s, err := parse(`{"type":"object","properties":` + props + `}`)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(schema string) (Schema, error) {
	raw := []byte(`{"tools":[{"name":"t","inputSchema":` + schema + `}]}`)
	if _, ok := wire.Lookup(raw); !ok {
		return Schema{}, fmt.Errorf("no JSON: %s", schema)
	}
	schemas, invalid := ParseTools(raw)
	return schemas["t"], invalid["t"]
}

func TestAnnotations(t *testing.T) {
	nested := learn(t, `{"a":{"type":"string","x-mcp-header":"region"},
		"b":{"x-mcp-header":"Deep-Er","type":"integer"},
		"c":{"properties":{"d":{"properties":{"\u0065":{"type":"boolean","\u0078-mcp-header":"e!"}}},"f":true},"type":"object"},
		"x-mcp-header":{"type":"object","properties":{"default":{"type":"string","x-mcp-header":"D"}},"default":{"x-mcp-header":"no"}},
		"g":{"enum":[{"x-mcp-header":1}],"const":{"x-mcp-header":""},"examples":[[{"x-mcp-header":1}]],"type":"string"},
		"h":{"type":"array","items":{"properties":{"x-mcp-header":{"type":"string"}},"$defs":{"x-mcp-header":{}}}}}`)
	want := []param{
		{"Mcp-Param-Region", []string{"a"}},
		{"Mcp-Param-Deep-Er", []string{"b"}},
		{"Mcp-Param-E!", []string{"c", "d", "e"}},
		{"Mcp-Param-D", []string{"x-mcp-header", "default"}},
	}
	if !reflect.DeepEqual(nested.params, want) {
		t.Errorf("got %v, want %v", nested.params, want)
	}
	for _, plain := range []string{`{}`, `true`, `null`, `{"type":"object","description":"say \"x-mcp-header\" twice"}`, `{"properties":[{"x":1}],"a":"\\"}`} {
		if s, err := parse(plain); err != nil || len(s.params) != 0 {
			t.Errorf("%s: %v %v", plain, s, err)
		}
	}
}

func TestInvalidAnnotations(t *testing.T) {
	property := func(p string) string { return `{"type":"object","properties":{"p":` + p + `}}` }
	at := func(where string) string {
		return property(strings.Replace(`{"type":"object",`+where+`}`, "HERE", `{"type":"string","x-mcp-header":"X"}`, 1))
	}
	deep := `{"type":"string","x-mcp-header":"X"}`
	for range maxPath + 1 {
		deep = `{"properties":{"p":` + deep + `}}`
	}
	var many []string
	for i := range maxParams + 1 {
		many = append(many, fmt.Sprintf(`"p%d":{"type":"string","x-mcp-header":"X%d"}`, i, i))
	}
	for name, tt := range map[string]struct{ schema, want string }{
		"empty":           {property(`{"type":"string","x-mcp-header":""}`), "is empty"},
		"space":           {property(`{"type":"string","x-mcp-header":"My Region"}`), "no name of a header"},
		"colon":           {property(`{"type":"string","x-mcp-header":"a:b"}`), "no name of a header"},
		"not ASCII":       {property(`{"type":"string","x-mcp-header":"Région"}`), "no name of a header"},
		"line end":        {property(`{"type":"string","x-mcp-header":"a\r\nb"}`), "no name of a header"},
		"no string":       {property(`{"type":"string","x-mcp-header":7}`), "no string"},
		"number":          {property(`{"type":"number","x-mcp-header":"X"}`), "another type"},
		"object":          {property(`{"type":"object","x-mcp-header":"X"}`), "another type"},
		"null":            {property(`{"type":"null","x-mcp-header":"X"}`), "another type"},
		"list of types":   {property(`{"type":["string","null"],"x-mcp-header":"X"}`), "another type"},
		"no type":         {property(`{"x-mcp-header":"X"}`), "another type"},
		"two annotations": {property(`{"type":"string","x-mcp-header":"X","x-mcp-header":"Y"}`), "twice"},
		"two types":       {property(`{"type":"string","x-mcp-header":"X","type":"integer"}`), "twice"},
		"root":            {`{"type":"string","x-mcp-header":"X"}`, "no property"},
		"duplicate":       {`{"properties":{"a":{"type":"string","x-mcp-header":"X"},"b":{"type":"string","x-mcp-header":"X"}}}`, "more than one"},
		"duplicate case":  {`{"properties":{"a":{"type":"string","x-mcp-header":"MyField"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"myfield"}}}}}`, "more than one"},
		"items":           {at(`"items":HERE`), "do not lead"},
		"list of items":   {at(`"prefixItems":[true,HERE]`), "do not lead"},
		"oneOf":           {at(`"oneOf":[{"type":"string"},HERE]`), "do not lead"},
		"oneOf deeper":    {at(`"oneOf":[{"properties":{"q":HERE}}]`), "do not lead"},
		"if":              {at(`"if":HERE`), "do not lead"},
		"not":             {at(`"not":HERE`), "do not lead"},
		"additional":      {at(`"additionalProperties":HERE`), "do not lead"},
		"$defs":           {at(`"$defs":{"d":HERE}`), "do not lead"},
		"patterns":        {at(`"patternProperties":{".*":HERE}`), "do not lead"},
		"unknown keyword": {at(`"x-own":HERE`), "do not lead"},
		"properties list": {at(`"properties":[HERE]`), "do not lead"},
		"no name":         {`{"properties":{"":{"type":"string","x-mcp-header":"X"}}}`, "no name"},
		"long property":   {`{"properties":{"` + strings.Repeat("p", maxName+1) + `":{"type":"string","x-mcp-header":"X"}}}`, "more than 256 bytes"},
		"long":            {property(`{"type":"string","x-mcp-header":"` + strings.Repeat("x", maxToken+1) + `"}`), "beyond the limits"},
		"deep":            {deep, "beyond the limits"},
		"many":            {`{"properties":{` + strings.Join(many, ",") + `}}`, "beyond the limits"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := parse(tt.schema)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v %v, want %q", s, err, tt.want)
			}
		})
	}
}

const page = `{ "jsonrpc":"2.0", "id":1, "result": {"ttlMs":1e3, "tools" : [ %s ] ,"nextCursor":"c"} }`

const (
	good  = `{"name":"good","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}`
	none  = `{"name":"none", "n":1.50}`
	bad   = `{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}`
	twice = `{"name":"twice","inputSchema":{},"inputSchema":{"x-mcp-header":"A"}}`
)

func TestWithoutInvalid(t *testing.T) {
	for in, want := range map[string]string{
		good + " , " + none: good + " , " + none,
		bad:                 "",
		bad + " , " + bad:   "",
		bad + " , " + good:  good,
		good + " , " + bad:  good,
		bad + " ,\n" + bad + ",  " + good + " ,\t" + bad + " , " + none + " , " + twice: good + " , " + none,
		good + " , " + bad + " , " + none + ", 7":                                       good + " , " + none + ", 7",
	} {
		raw := fmt.Sprintf(page, in)
		var told []string
		got := WithoutInvalid([]byte(raw), func(tool, reason string) { told = append(told, tool+": "+reason) })
		if string(got) != fmt.Sprintf(page, want) {
			t.Errorf("%s became\n%s", raw, got)
		}
		if _, ok := wire.Lookup(got); !ok {
			t.Errorf("%s is no JSON", got)
		}
		if n := strings.Count(in, `"bad"`) + strings.Count(in, `"twice"`); n != len(told) {
			t.Errorf("%d tools told of, want %d: %q", len(told), n, told)
		}
	}
	if got := WithoutInvalid([]byte(`{"tools":[`+bad+`,`+none+`]}`), func(string, string) {}); string(got) != `{"tools":[`+none+`]}` {
		t.Errorf("the result alone: %s", got)
	}
}

func TestParseTools(t *testing.T) {
	schemas, invalid := ParseTools(fmt.Appendf(nil, page, strings.Join([]string{good, bad, twice, none, strings.Replace(good, `"A"`, `"B"`, 1)}, ",")))
	if len(schemas) != 2 || len(invalid) != 2 || schemas["good"].params[0].key != "Mcp-Param-A" || invalid["twice"] == nil || invalid["bad"] == nil {
		t.Errorf("%v %v", schemas, invalid)
	}
	for _, other := range []string{"", "x", "7", "[]", `{"result":7}`, `{"tools":{}}`, `{"tools":[],"Tools":[` + good + `]}`, `{"error":{}}`, `{"tools":[` + good} {
		if schemas, invalid := ParseTools([]byte(other)); len(schemas)+len(invalid) > 0 {
			t.Errorf("%s has tools: %v %v", other, schemas, invalid)
		}
	}
}

func FuzzParseTools(f *testing.F) {
	f.Add([]byte(fmt.Sprintf(page, good+","+bad+","+twice+","+none)))
	f.Add([]byte(`{"tools":[{"name":"\u0000","inputSchema":{"properties":{"a":{"\u0078-mcp-header":[]}}}}]}`))
	f.Fuzz(func(t *testing.T, list []byte) {
		ParseTools(list)
		less := WithoutInvalid(list, func(string, string) {})
		if _, ok := wire.Lookup(list); !ok {
			return
		}
		if _, ok := wire.Lookup(less); !ok {
			t.Errorf("%q became %q", list, less)
		}
		if again := WithoutInvalid(less, func(string, string) {}); string(again) != string(less) {
			t.Errorf("%q, once more: %q", less, again)
		}
	})
}
