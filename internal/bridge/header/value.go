package header

import (
	"encoding/base64"
	"strings"
	"unicode/utf8"
)

// A value that is not visible ASCII, with spaces and tabs in it, stands in a header
// as =?base64?TEXT?=, and so does one that looks like that itself (2026-07-28,
// streamable-http, "Value Encoding").
const (
	opens  = "=?base64?" // lower case only
	closes = "?="
)

// strict: the padding that there has to be, and no bits in it.
var encoding = base64.StdEncoding.Strict()

// Encode is value, valid UTF-8, as a header carries it. What Decode makes of that
// is value again.
func Encode(value string) string {
	_, looks := sentinel(value)
	if plain(value) && !looks && strings.Trim(value, " \t") == value {
		return value
	}
	return opens + encoding.EncodeToString([]byte(value)) + closes
}

// Decode is the value that a header carries. White space around it is none of it
// (RFC 9110, section 5.5). false: bytes that cannot stand in a header, base64 that
// is none, or other text in it than UTF-8.
func Decode(header string) (string, bool) {
	header = strings.Trim(header, " \t")
	if !plain(header) {
		return "", false
	}
	text, looks := sentinel(header)
	if !looks {
		return header, true
	}
	value, err := encoding.DecodeString(text)
	if err != nil || !utf8.Valid(value) {
		return "", false
	}
	return string(value), true
}

// sentinel is what stands between the marks.
func sentinel(s string) (string, bool) {
	rest, ok := strings.CutPrefix(s, opens)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, closes)
}

// plain: nothing but visible ASCII, spaces and tabs.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] != '\t' && (s[i] < ' ' || s[i] > '~') {
			return false
		}
	}
	return true
}

// token: a field name of RFC 9110, section 5.6.2.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' {
			continue
		}
		if strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}
