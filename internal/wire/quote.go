package wire

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// Unquote decodes a JSON string token. Without escapes the result aliases tok.
// An escape of a lone surrogate becomes U+FFFD. It returns false if tok is not
// exactly one string token; the bytes' UTF-8 is not checked.
func Unquote(tok []byte) ([]byte, bool) {
	if scanString(tok, 0) != len(tok) {
		return nil, false
	}
	s := tok[1 : len(tok)-1]
	i := bytes.IndexByte(s, '\\')
	if i < 0 {
		return s, true
	}
	out := make([]byte, 0, len(s))
	for ; i >= 0; i = bytes.IndexByte(s, '\\') {
		out = append(out, s[:i]...)
		r, n := unescape(s[i:])
		out = utf8.AppendRune(out, r)
		s = s[i+n:]
	}
	return append(out, s...), true
}

// unescape decodes the valid escape at the start of s, two if they are a
// surrogate pair, and returns how many bytes that took.
func unescape(s []byte) (rune, int) {
	switch s[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(s[2:])
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if pair := utf16.DecodeRune(r, hex4(s[8:])); pair != utf8.RuneError {
				return pair, 12
			}
		}
		return utf8.RuneError, 6
	}
	return rune(s[1]), 2 // '"', '\\', '/'
}

func hex4(s []byte) rune {
	return hexDigit(s[0])<<12 | hexDigit(s[1])<<8 | hexDigit(s[2])<<4 | hexDigit(s[3])
}

const hexDigits = "0123456789abcdef"

// AppendQuote appends s as a JSON string token. Only what RFC 8259 section 7
// demands is escaped: no <, >, & and no U+2028. Bytes that are not valid UTF-8
// become U+FFFD each.
func AppendQuote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s { // ranging yields U+FFFD for an invalid byte
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < 0x20:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
