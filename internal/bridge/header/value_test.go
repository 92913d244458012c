package header

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEncode(t *testing.T) {
	for value, want := range map[string]string{
		"":                 "",
		"us-west1":         "us-west1",
		"a b\tc":           "a b\tc",
		"Hello, 世界":        "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" us ":             "=?base64?IHVzIA==?=",
		"\tx":              "=?base64?CXg=?=",
		"x ":               "=?base64?eCA=?=",
		"line1\r\nline2":   "=?base64?bGluZTENCmxpbmUy?=",
		"\x00":             "=?base64?AA==?=",
		"=?base64?eA==?=":  "=?base64?PT9iYXNlNjQ/ZUE9PT89?=",
		"=?base64??=":      "=?base64?PT9iYXNlNjQ/Pz0=?=",
		"=?base64?=":       "=?base64?=", // not both marks
		"=?BASE64?eA==?=":  "=?BASE64?eA==?=",
		"x=?base64?eA==?=": "x=?base64?eA==?=",
		"=?base64?eA==":    "=?base64?eA==",
	} {
		if got := Encode(value); got != want {
			t.Errorf("Encode(%q) = %q, want %q", value, got, want)
		}
		if back, ok := Decode(want); !ok || back != value {
			t.Errorf("Decode(%q) = %q, %v", want, back, ok)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, header := range []string{
		"a\x00b", "a\nb", "a\rb", "caf\xe9", "café", "\x7f",
		"=?base64?eA=?=",      // padding cut
		"=?base64?eA?=",       // none
		"=?base64?eA===?=",    // too much
		"=?base64?eB==?=",     // bits in it
		"=?base64?e A==?=",    // white space
		"=?base64?S-_v?=",     // the other alphabet
		"=?base64?/w==?=",     // no UTF-8
		"=?base64?eA==eA==?=", // more after it
	} {
		if got, ok := Decode(header); ok {
			t.Errorf("Decode(%q) = %q", header, got)
		}
	}
	if got, ok := Decode(" \tx\t "); !ok || got != "x" {
		t.Errorf("white space around a value: %q %v", got, ok)
	}
}

func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "x", " x", "é", "=?base64?eA==?=", "a\r\nMcp-Name: b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !utf8.ValidString(value) {
			return
		}
		header := Encode(value)
		if strings.ContainsFunc(header, func(r rune) bool { return r < ' ' && r != '\t' || r > '~' }) {
			t.Errorf("%q cannot stand in a header", header)
		}
		if back, ok := Decode(header); !ok || back != value {
			t.Errorf("%q came back as %q, %v", value, back, ok)
		}
	})
}

// What Decode takes stands for one value, whichever way it was written.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"x", "=?base64?eA==?=", "=?base64?eB==?=", "=?base64??="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		value, ok := Decode(header)
		if !ok {
			return
		}
		if again, ok := Decode(Encode(value)); !ok || again != value {
			t.Errorf("%q is %q, and that is %q", header, value, again)
		}
	})
}
