package wire

import (
	"errors"
	"strings"
	"testing"
)

const v = `"jsonrpc":"2.0"` // stands in nearly every message below

func mustParse(t *testing.T, in string) Message {
	t.Helper()
	m, err := Parse([]byte(in))
	if err != nil {
		t.Fatalf("Parse(%s): %v", in, err)
	}
	return m
}

func asError(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got error %v, want an *Error", err)
	}
	return e
}

var accepted = []struct {
	name, in string
	kind     Kind
	id       string
	method   string
}{
	{"request", `{` + v + `,"id":1,"method":"ping"}`, Request, `1`, "ping"},
	{"notification", `{` + v + `,"method":"notifications/initialized"}`, Notification, ``, "notifications/initialized"},
	{"result", `{` + v + `,"id":1,"result":{}}`, Response, `1`, ""},
	{"null result", `{` + v + `,"id":1,"result":null}`, Response, `1`, ""},
	{"error", `{` + v + `,"id":"x","error":{"code":1,"message":""}}`, Response, `"x"`, ""},
	{"error with id null", `{` + v + `,"id":null,"error":{}}`, Response, ``, ""},
	{"error without id", `{` + v + `,"error":{}}`, Response, ``, ""},
	{"params null", `{` + v + `,"id":1,"method":"ping","params":null}`, Request, `1`, "ping"},
	{"params array", `{` + v + `,"id":1,"method":"ping","params":[1,[2]]}`, Request, `1`, "ping"},
	{"id after the rest", `{"method":"ping","params":{"a":[{}]},"id":"z",` + v + `}`, Request, `"z"`, "ping"},
	{"version escaped", `{"jsonrpc":"\u0032.0","id":1,"method":"ping"}`, Request, `1`, "ping"},
	{"names escaped", `{"jsonr\u0070c":"2.0","\u0069d":1,"m\u0065thod":"p\u0069ng"}`, Request, `1`, "ping"},
	{"unknown members", `{` + v + `,"id":1,"method":"ping","zNew":{"k":[1,true,null]},"x":1e-5,"x":2}`, Request, `1`, "ping"},
	// Case 56: the token is the id, byte for byte.
	{"id string of a number", `{` + v + `,"id":"1","method":"ping"}`, Request, `"1"`, "ping"},
	{"id 0", `{` + v + `,"id":0,"method":"ping"}`, Request, `0`, "ping"},
	{"id empty string", `{` + v + `,"id":"","method":"ping"}`, Request, `""`, "ping"},
	{"id string with exponent", `{` + v + `,"id":"1e3","method":"ping"}`, Request, `"1e3"`, "ping"},
	{"id escaped", `{` + v + `,"id":"a\u002db\n","method":"ping"}`, Request, `"a\u002db\n"`, "ping"},
	// Case 59.
	{"id beyond 2^53", `{` + v + `,"id":9007199254740993,"method":"ping"}`, Request, `9007199254740993`, "ping"},
	{"id -1", `{` + v + `,"id":-1,"method":"ping"}`, Request, `-1`, "ping"},
	{"id beyond 2^64", `{` + v + `,"id":18446744073709551616,"method":"ping"}`, Request, `18446744073709551616`, "ping"},
	{"id as long as allowed", `{` + v + `,"id":"` + strings.Repeat("a", MaxIDLen) + `","method":"ping"}`,
		Request, `"` + strings.Repeat("a", MaxIDLen) + `"`, "ping"},
	// Case 62: the shape decides, not the id.
	{"server's request", `{` + v + `,"id":1,"method":"roots/list"}`, Request, `1`, "roots/list"},
	{"client's answer", `{` + v + `,"id":1,"result":{"roots":[]}}`, Response, `1`, ""},
	// Case 14: legal over HTTP.
	{"pretty", "{\r\n  \"jsonrpc\" : \"2.0\",\r\n\t\"id\" : 1 ,\n \"result\" : { }\n}\r\n", Response, `1`, ""},
	{"BOM and space", "\xef\xbb\xbf \t\r\n{" + v + `,"id":1,"method":"ping"}` + " \n", Request, `1`, "ping"},
	{"lone surrogates", `{` + v + `,"id":1,"method":"ping","params":{"a":"\ud800 \udc00\ud800"}}`, Request, `1`, "ping"},
	{"case variant alone in params", `{` + v + `,"id":1,"method":"ping","params":{"Name":1,"_meta":{"ProgressToken":1}}}`, Request, `1`, "ping"},
	{"two unknown in params", `{` + v + `,"id":1,"method":"ping","params":{"x":1,"x":1,"_meta":{"y":1,"y":1}}}`, Request, `1`, "ping"},
	{"read names deeper down", `{` + v + `,"id":1,"method":"ping","params":{"arguments":{"name":1,"name":2,"Method":3}}}`, Request, `1`, "ping"},
	{"two reserved names", `{` + v + `,"id":1,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/a":1,"io.modelcontextprotocol/b":1}}}`, Request, `1`, "ping"},
	{"as deep as allowed", `{` + v + `,"id":1,"method":"ping","params":` + strings.Repeat("[", 999) + strings.Repeat("]", 999) + `}`, Request, `1`, "ping"},
}

func TestParseAccepts(t *testing.T) {
	for _, tt := range accepted {
		t.Run(tt.name, func(t *testing.T) {
			m := mustParse(t, tt.in)
			if m.Kind != tt.kind {
				t.Errorf("Kind = %v, want %v", m.Kind, tt.kind)
			}
			if got := string(m.Bytes(m.ID)); got != tt.id || m.ID.Present() != (tt.id != "") {
				t.Errorf("id = %s, want %s", got, tt.id)
			}
			if got := string(m.MethodName()); got != tt.method {
				t.Errorf("method = %s, want %s", got, tt.method)
			}
			if want := strings.TrimSpace(strings.TrimPrefix(tt.in, "\xef\xbb\xbf")); string(m.Raw) != want {
				t.Errorf("Raw = %s, want %s", m.Raw, want)
			}
		})
	}
}

// call is a request with id 7 and more members.
func call(rest string) string { return `{` + v + `,"id":7,"method":"tools/call",` + rest + `}` }

var refused = []struct {
	name, in string
	code     int
	id       string
}{
	{"empty", ``, codeParse, ``},
	{"only space", " \n", codeParse, ``},
	{"only BOM", "\xef\xbb\xbf", codeParse, ``},
	{"two BOMs", "\xef\xbb\xbf\xef\xbb\xbf{" + v + `,"id":1,"method":"ping"}`, codeParse, ``},
	{"case 5", `{oops`, codeParse, ``},
	{"noise", `✅ fetched 10 rows`, codeParse, ``},
	{"cut", `{` + v + `,"id":1,"method":"pi`, codeParse, ``},
	{"comma at the end", `{` + v + `,"id":1,"method":"ping",}`, codeParse, ``},
	{"comma at the end of an array", call(`"params":[1,]`), codeParse, ``},
	{"no comma", `{` + v + ` "id":1}`, codeParse, ``},
	{"wrong closer", call(`"params":{"a":[1}]`), codeParse, ``},
	{"name without quotes", `{jsonrpc:"2.0"}`, codeParse, ``},
	{"raw LF in a string", call("\"x\":\"a\nb\""), codeParse, ``},
	{"raw NUL in a string", call("\"x\":\"a\x00b\""), codeParse, ``},
	{"NUL between tokens", call("\x00\"x\":1"), codeParse, ``},
	{"bad escape", call(`"x":"\a"`), codeParse, ``},
	{"short escape", call(`"x":"\u12"`), codeParse, ``},
	{"invalid UTF-8", call("\"x\":\"\xff\""), codeParse, ``},
	{"invalid UTF-8 after the value", `{` + v + `,"id":1,"method":"ping"}` + "\xff", codeParse, ``},
	{"surrogate in UTF-8", call("\"x\":\"\xed\xa0\x80\""), codeParse, ``},
	{"leading zero", call(`"x":01`), codeParse, ``},
	{"plus", call(`"x":+1`), codeParse, ``},
	{"minus alone", call(`"x":-`), codeParse, ``},
	{"no digit before the point", call(`"x":.5`), codeParse, ``},
	{"no digit after the point", call(`"x":1.`), codeParse, ``},
	{"no exponent", call(`"x":1e`), codeParse, ``},
	{"NaN", call(`"x":NaN`), codeParse, ``},
	{"half a literal", call(`"x":tru`), codeParse, ``},
	{"comment", call(`/* */"x":1`), codeParse, ``},
	{"vertical tab", call("\v\"x\":1"), codeParse, ``},
	{"syntax after a breach", `{"id":7,"id":8,"method":"ping","x":tru}`, codeParse, ``},

	{"two values", `{` + v + `,"id":7,"method":"ping"}{` + v + `,"id":8,"method":"ping"}`, codeInvalid, ``},
	{"noise after", `{` + v + `,"id":7,"method":"ping"} oops`, codeInvalid, ``},
	{"case 70: batch", `[{` + v + `,"id":7,"method":"ping"}]`, codeInvalid, ``},
	{"scalar", `42`, codeInvalid, ``},
	{"string", `"2.0"`, codeInvalid, ``},
	{"empty object", `{}`, codeInvalid, ``},
	{"no version", `{"id":7,"method":"ping"}`, codeInvalid, `7`},
	{"version 1.0", `{"jsonrpc":"1.0","id":7,"method":"ping"}`, codeInvalid, `7`},
	{"version number", `{"jsonrpc":2.0,"id":7,"method":"ping"}`, codeInvalid, `7`},
	{"method no string", `{` + v + `,"id":7,"method":1}`, codeInvalid, `7`},
	{"method empty", `{` + v + `,"id":7,"method":""}`, codeInvalid, `7`},
	{"method null", `{` + v + `,"id":7,"method":null}`, codeInvalid, `7`},
	{"nothing to do", `{` + v + `,"id":7}`, codeInvalid, `7`},
	{"method and result", call(`"result":1`), codeInvalid, `7`},
	{"method and error", call(`"error":{}`), codeInvalid, `7`},
	{"result and error", `{` + v + `,"id":7,"result":{},"error":{}}`, codeInvalid, `7`},
	{"error no object", `{` + v + `,"id":7,"error":"x"}`, codeInvalid, `7`},
	{"error null", `{` + v + `,"id":7,"error":null}`, codeInvalid, `7`},
	{"error with id true", `{` + v + `,"id":true,"error":{}}`, codeInvalid, ``},
	{"result without id", `{` + v + `,"result":{}}`, codeInvalid, ``},
	{"result with id null", `{` + v + `,"id":null,"result":{}}`, codeInvalid, ``},
	{"params string", call(`"params":"x"`), codeInvalid, `7`},
	{"params number", call(`"params":1`), codeInvalid, `7`},
	{"params bool", call(`"params":true`), codeInvalid, `7`},
	{"id after the breach", `{` + v + `,"method":1,"id":"late"}`, codeInvalid, `"late"`},
	// Case 58 and 59.
	{"id null", `{` + v + `,"id":null,"method":"ping"}`, codeInvalid, ``},
	{"id true", `{` + v + `,"id":true,"method":"ping"}`, codeInvalid, ``},
	{"id fraction", `{` + v + `,"id":1.5,"method":"ping"}`, codeInvalid, ``},
	{"id exponent", `{` + v + `,"id":1E3,"method":"ping"}`, codeInvalid, ``},
	{"id array", `{` + v + `,"id":[1],"method":"ping"}`, codeInvalid, ``},
	{"id object", `{` + v + `,"id":{},"method":"ping"}`, codeInvalid, ``},
	{"id of 10 KiB", `{` + v + `,"id":"` + strings.Repeat("a", 10<<10) + `","method":"ping"}`, codeInvalid, ``},
	{"id one byte too long", `{` + v + `,"id":"` + strings.Repeat("a", MaxIDLen+1) + `","method":"ping"}`, codeInvalid, ``},
	{"id of too many digits", `{` + v + `,"id":` + strings.Repeat("1", MaxIDLen+1) + `,"method":"ping"}`, codeInvalid, ``},
	// Case 67.
	{"two methods", call(`"method":"ping"`), codeInvalid, `7`},
	{"two methods, one escaped", call(`"m\u0065thod":"ping"`), codeInvalid, `7`},
	{"two ids", call(`"id":8`), codeInvalid, ``},
	{"two versions", call(v), codeInvalid, `7`},
	{"two params", call(`"params":{},"params":{}`), codeInvalid, `7`},
	{"two results", `{` + v + `,"id":7,"result":1,"result":1}`, codeInvalid, `7`},
	{"Method", call(`"Method":"ping"`), codeInvalid, `7`},
	{"Method before method", `{"Method":"ping",` + v + `,"id":7,"method":"x"}`, codeInvalid, `7`},
	{"ID", call(`"ID":8`), codeInvalid, `7`},
	{"ID before id", `{"ID":8,` + v + `,"id":7,"method":"x"}`, codeInvalid, `7`},
	{"long s", call(`"paramſ":{}`), codeInvalid, `7`},
	{"long s escaped", call(`"param\u017f":{}`), codeInvalid, `7`},
	{"two names", call(`"params":{"name":"safe","name":"danger"}`), codeInvalid, `7`},
	{"two names, one escaped", call(`"params":{"name":"safe","n\u0061me":"danger"}`), codeInvalid, `7`},
	{"name and Name", call(`"params":{"name":"safe","Name":"danger"}`), codeInvalid, `7`},
	{"Name and name", call(`"params":{"Name":"safe","name":"danger"}`), codeInvalid, `7`},
	{"Name and NAME", call(`"params":{"Name":"safe","NAME":"danger"}`), codeInvalid, `7`},
	{"Kelvin sign", call(`"params":{"task":{},"tas` + "\u212a" + `":{}}`), codeInvalid, `7`},
	{"two _meta", call(`"params":{"_meta":{},"x":1,"_meta":{}}`), codeInvalid, `7`},
	{"two tokens", call(`"params":{"_meta":{"progressToken":1,"progressToken":2}}`), codeInvalid, `7`},
	{"two known reserved names", call(`"params":{"_meta":{"io.modelcontextprotocol/logLevel":1,"io.modelcontextprotocol/LogLevel":2}}`), codeInvalid, `7`},
	{"two unknown reserved names", call(`"params":{"_meta":{"io.modelcontextprotocol/x":1,"io.modelcontextprotocol/\u0078":2}}`), codeInvalid, `7`},
	{"two unknown reserved names by case", call(`"params":{"_meta":{"io.modelcontextprotocol/sk":1,"IO.modelcontextprotocol/ſ` + "\u212a" + `":2}}`), codeInvalid, `7`},

	{"too deep", call(`"params":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)), codeInvalid, ``},
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range refused {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Parse([]byte(tt.in))
			e := asError(t, err)
			if e.Code != tt.code {
				t.Errorf("code = %d (%s), want %d", e.Code, e.Msg, tt.code)
			}
			if string(e.ID) != tt.id || (e.ID == nil) != (tt.id == "") {
				t.Errorf("ID = %q, want %q", e.ID, tt.id)
			}
			if m.Raw != nil || m.Kind != 0 {
				t.Errorf("a refused message came out: %+v", m)
			}
		})
	}
}
