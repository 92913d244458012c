package wire

import (
	"strings"
	"testing"
)

func TestIsBatch(t *testing.T) {
	for in, want := range map[string]bool{
		`[]`: true, " \r\n\t[1": true, "\xef\xbb\xbf [": true,
		``: false, ` `: false, `{}`: false, `"["`: false, "\xef\xbb\xbf": false, " \xef\xbb\xbf[": false,
	} {
		if got := IsBatch([]byte(in)); got != want {
			t.Errorf("IsBatch(%q) = %v", in, got)
		}
	}
}

// Case 70.
func TestSplitBatch(t *testing.T) {
	tests := []struct {
		in   string
		want []string
		code int
	}{
		{"\xef\xbb\xbf\n[ {\"id\":1} , {\"id\":2} ]\n", []string{`{"id":1}`, `{"id":2}`}, 0},
		{`[1]`, []string{`1`}, 0},
		{`[[{"id":1}],"x",null]`, []string{`[{"id":1}]`, `"x"`, `null`}, 0},
		{`[]`, nil, codeInvalid},
		{`[ ]`, nil, codeInvalid},
		{`{}`, nil, codeInvalid},
		{`{`, nil, codeParse},
		{``, nil, codeParse},
		{`[`, nil, codeParse},
		{`[1`, nil, codeParse},
		{`[1,`, nil, codeParse},
		{`[1,]`, nil, codeParse},
		{`[,1]`, nil, codeParse},
		{`[1 2]`, nil, codeParse},
		{`[1}`, nil, codeParse},
		{`[1]]`, nil, codeParse},
		{`[1] [2]`, nil, codeParse},
		{`[] x`, nil, codeParse},
		{`[{"id":}]`, nil, codeParse},
		{"[\"\xff\"]", nil, codeParse},
		{strings.Repeat("[", 100_000), nil, codeInvalid},
		{strings.Repeat("[", 1000) + strings.Repeat("]", 1000), []string{strings.Repeat("[", 999) + strings.Repeat("]", 999)}, 0},
	}
	for _, tt := range tests {
		parts, err := SplitBatch([]byte(tt.in))
		if tt.code != 0 {
			if e := asError(t, err); e.Code != tt.code || e.ID != nil || parts != nil {
				t.Errorf("SplitBatch(%.40q) = %q, %v, want code %d", tt.in, parts, err, tt.code)
			}
			continue
		}
		if err != nil || len(parts) != len(tt.want) {
			t.Errorf("SplitBatch(%.40q) = %q, %v", tt.in, parts, err)
			continue
		}
		for i, part := range parts {
			if string(part) != tt.want[i] {
				t.Errorf("SplitBatch(%.40q)[%d] = %s, want %s", tt.in, i, part, tt.want[i])
			}
		}
	}
}

func TestFindID(t *testing.T) {
	long := strings.Repeat("x", 2000)
	tests := []struct{ name, head, tail, want string }{
		{"head", `{"jsonrpc":"2.0","id":7,"result":{"a":"xx`, `xx"}}`, `7`},
		{"head, BOM and space", "\xef\xbb\xbf {\n\"id\" : \"a\\\"b\" ,\"result\":{", `}}`, `"a\"b"`},
		{"head, escaped name", `{"\u0069d":7,"result":{`, `}}`, `7`},
		{"head, after whole values", `{"x":{"id":1},"y":[{"id":2}],"z":"\"id\":3","id":4,"r":`, `1}`, `4`},
		{"head, string up to the cut", `{"id":"ab"`, `}}`, `"ab"`},
		{"head, number up to the cut", `{"id":12`, `34}}`, ``},
		{"head, nested only", `{"result":{"id":7,"a":"`, `xx"}}`, ``},
		{"head, illegal", `{"id":null,"result":{`, `},"id":5}`, ``},
		{"head, too long", `{"id":"` + long + `","r":1`, `}`, ``},
		{"head, whole message", `{"a":{"id":1}}`, `,"id":5}`, ``},
		{"tail", `{"result":{"a":"xx`, `xx"},"id":7}`, `7`},
		{"tail, spaces", `{"result":{"a":"xx`, "xx\"}\n,\n \"id\" : -7 }\r\n", `-7`},
		{"tail, string", `{"result":"xx`, `xx","id":"a\"b\\"}`, `"a\"b\\"`},
		{"tail, empty string", `{"result":"xx`, `xx","id":""}`, `""`},
		{"tail, longest string", `{"result":"xx`, `xx","id":"` + long[:MaxIDLen] + `"}`, `"` + long[:MaxIDLen] + `"`},
		{"tail, string too long", `{"result":"xx`, `xx","id":"` + long[:MaxIDLen+1] + `"}`, ``},
		{"tail, nested", `{"result":{"a":"xx`, `xx","id":7}}`, ``},
		{"tail, value no id", `{"result":"xx`, `xx","id":[7]}`, ``},
		{"tail, fraction", `{"result":"xx`, `xx","id":1.5}`, ``},
		{"tail, other name", `{"result":"xx`, `xx","uid":7}`, ``},
		{"tail, in a string", `{"result":"xx`, `xx\"id":7}`, ``},
		{"tail, starts with the name", `{"result":"xx`, `"id":7}`, ``},
		{"tail, starts with the comma", `{"result":"xx`, `,"id":7}`, `7`},
		{"tail, starts with the number", `{"result":"xx`, `77}`, ``},
		{"tail, cut", `{"result":"xx`, `,"id":7`, ``},
		{"nothing", ``, ``, ``},
		{"no object", `[{"id":1}`, `]`, ``},
		{"no JSON", `garbage`, `garbage"`, ``},
	}
	for _, tt := range tests {
		got, ok := FindID([]byte(tt.head), []byte(tt.tail))
		if string(got) != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: got %s, %v, want %s", tt.name, got, ok, tt.want)
		}
	}
}
