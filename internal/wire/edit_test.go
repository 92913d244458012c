package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSplice(t *testing.T) {
	raw := []byte(`{"id":1,"a":2}`)
	tests := []struct {
		name  string
		edits []Edit
		want  string
	}{
		{"none", nil, `{"id":1,"a":2}`},
		{"absent", []Edit{{Span{}, []byte("X")}}, `{"id":1,"a":2}`},
		{"one", []Edit{{Span{6, 7}, []byte(`"x"`)}}, `{"id":"x","a":2}`},
		{"two", []Edit{{Span{6, 7}, []byte(`"x"`)}, {}, {Span{12, 13}, nil}}, `{"id":"x","a":}`},
		{"insert", []Edit{{Span{1, 1}, []byte(`"b":0,`)}}, `{"b":0,"id":1,"a":2}`},
		{"all", []Edit{{Span{0, 14}, []byte(`null`)}}, `null`},
	}
	for _, tt := range tests {
		if got := string(Splice([]byte("> "), raw, tt.edits...)); got != "> "+tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
		if got := Splice(nil, raw, tt.edits...); string(got) != tt.want || cap(got) > cap(make([]byte, 0, len(tt.want))) {
			t.Errorf("%s: got %s of capacity %d", tt.name, got, cap(got))
		}
	}
	if string(raw) != `{"id":1,"a":2}` {
		t.Errorf("raw was changed: %s", raw)
	}
}

func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"\n":                          " ",
		"{\r\n\t\"a\" : \"\\n\"\n\n}": "{  \t\"a\" : \"\\n\"  }",
		"\r{}\r":                      " {} ",
		"{}":                          "{}",
	} {
		b := []byte(in)
		if OneLine(b); string(b) != want {
			t.Errorf("OneLine(%q) = %q, want %q", in, b, want)
		}
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`""`:                     "",
		`"a<b>"`:                 "a<b>",
		`"\"\\\/\b\f\n\r\t"`:     "\"\\/\b\f\n\r\t",
		`"\u0041\u00e9\u20AC"`:   "Aé€",
		`"\ud83d\ude00"`:         "😀",
		`"\ud800"`:               "\ufffd",
		`"\ud800x\udc00"`:        "\ufffdx\ufffd",
		`"\ud800\ud83d\ude00"`:   "\ufffd😀",
		`"\ud800\n\ud800\u0041"`: "\ufffd\n\ufffdA",
		`"\udc00\ud800\\u"`:      "\ufffd\ufffd\\u",
	} {
		got, ok := Unquote([]byte(in))
		if !ok || string(got) != want {
			t.Errorf("Unquote(%s) = %q, %v, want %q", in, got, ok, want)
		}
		var ref string
		if err := json.Unmarshal([]byte(in), &ref); err != nil || ref != want {
			t.Errorf("encoding/json reads %s as %q (%v), the table says %q", in, ref, err, want)
		}
	}
	for _, in := range []string{``, `"`, `a`, `1`, `null`, `"a`, `"a"b`, `"a""`, `"\x"`, `"\u12"`, "\"\t\"", ` "a"`} {
		if got, ok := Unquote([]byte(in)); ok || got != nil {
			t.Errorf("Unquote(%s) = %q, %v", in, got, ok)
		}
	}
	tok := []byte(`"plain"`)
	if got, _ := Unquote(tok); &got[0] != &tok[1] {
		t.Error("a token without escapes was copied")
	}
}

func TestAppendQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":                     `""`,
		"a<b>&c":               `"a<b>&c"`,
		"\"\\/":                `"\"\\/"`,
		"\n\r\t\x00\x1f\b\x7f": `"\n\r\t\u0000\u001f\u0008` + "\x7f" + `"`,
		"\u2028\u2029é😀":       "\"\u2028\u2029é😀\"",
		"a\xffb\xc3":           "\"a\ufffdb\ufffd\"",
	} {
		got := AppendQuote([]byte("x"), in)
		if string(got) != "x"+want {
			t.Errorf("AppendQuote(%q) = %s, want %s", in, got, want)
		}
		if back, ok := Unquote(got[1:]); !ok || string(back) != strings.ToValidUTF8(in, "\ufffd") {
			t.Errorf("%s comes back as %q", got, back)
		}
	}
}

func TestAppendErrorAndResult(t *testing.T) {
	tests := []struct{ got, want string }{
		{string(AppendError(nil, nil, -32700, `bad "x"`, nil)), `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad \"x\""}}`},
		{string(AppendError([]byte("> "), []byte(`"a"`), -32000, "<m>", []byte(`{"k":1}`))), `> {"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"<m>","data":{"k":1}}}`},
		{string(AppendResult([]byte("> "), []byte(`9007199254740993`), []byte(`{}`))), `> {"jsonrpc":"2.0","id":9007199254740993,"result":{}}`},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
		mustParse(t, strings.TrimPrefix(tt.got, "> "))
	}
}

func TestLookup(t *testing.T) {
	raw := ` {"a" : {"b\u0063":[1, 2], "x":null},"a":{"d":1},"":{"":"e"},"f":"s"} `
	tests := []struct {
		path []string
		want string
	}{
		{nil, strings.TrimSpace(raw)},
		{[]string{"a", "bc"}, `[1, 2]`},
		{[]string{"a", "x"}, `null`},
		{[]string{"a", "d"}, ``}, // only the first a counts
		{[]string{"a", "B"}, ``},
		{[]string{"A"}, ``},
		{[]string{"", ""}, `"e"`},
		{[]string{"f", "s"}, ``},
		{[]string{"a", "bc", "0"}, ``},
	}
	for _, tt := range tests {
		s, ok := Lookup([]byte(raw), tt.path...)
		if got := string(s.Of([]byte(raw))); got != tt.want || ok != (tt.want != "") || ok != s.Present() {
			t.Errorf("Lookup(%q) = %s, %v, want %s", tt.path, got, ok, tt.want)
		}
	}
	for _, bad := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":tru`, `[]`, `{"b":1 "a":2}`} {
		if s, ok := Lookup([]byte(bad), "a"); ok {
			t.Errorf("Lookup in %s = %v", bad, s)
		}
	}
}

func TestRemove(t *testing.T) {
	tests := []struct {
		raw  string
		path []string
		want string
	}{
		{`{"a":1}`, []string{"a"}, `{}`},
		{`{"a":1,"b":2}`, []string{"a"}, `{"b":2}`},
		{`{"a":1,"b":2}`, []string{"b"}, `{"a":1}`},
		{`{"a":1,"b":2,"c":3}`, []string{"b"}, `{"a":1,"c":3}`},
		{"{\n \"a\" : 1 ,\n \"b\" : 2\n}", []string{"a"}, "{\n \n \"b\" : 2\n}"},
		{"{\n \"a\" : 1 ,\n \"b\" : 2\n}", []string{"b"}, "{\n \"a\" : 1 \n}"},
		{`{"p":{"_meta":{"\u0061":1},"x":1}}`, []string{"p", "_meta", "a"}, `{"p":{"_meta":{},"x":1}}`},
		{`{"p":{"_meta":{"a":1},"x":1}}`, []string{"p", "_meta"}, `{"p":{"x":1}}`},
		{`{"a":1,"a":2}`, []string{"a"}, `{"a":2}`},
	}
	for _, tt := range tests {
		in := []byte(tt.raw)
		if got := string(Remove(in, tt.path...)); got != tt.want {
			t.Errorf("Remove(%s, %q) = %s, want %s", tt.raw, tt.path, got, tt.want)
		}
		if string(in) != tt.raw {
			t.Errorf("Remove changed its input to %s", in)
		}
	}
	raw := []byte(`{"a":{"b":1}}`)
	for _, path := range [][]string{nil, {"b"}, {"a", "c"}, {"a", "b", "c"}} {
		if got := Remove(raw, path...); &got[0] != &raw[0] || len(got) != len(raw) {
			t.Errorf("Remove(%q) = %s, want raw itself", path, got)
		}
	}
}
