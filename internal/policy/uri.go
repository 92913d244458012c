package policy

import "bytes"

// maxReadings bounds how often a URI is decoded: each time costs its length.
const maxReadings = 4

// readings returns a URI as servers may read it: as written, and with its
// percent-escapes decoded (RFC 3986 section 2.1) until there are none. It returns
// false if one of them leads who knows where.
func readings(uri []byte) ([][]byte, bool) {
	all := [][]byte{uri}
	for r := uri; ; {
		if strays(r) {
			return all, false
		}
		decoded, ok := unescape(r, nil)
		if !ok {
			return all, true
		}
		if len(all) == maxReadings {
			return all, false
		}
		all = append(all, decoded)
		r = decoded
	}
}

// separators stand around the segments of a path, wherever in a URI a server
// may look for one.
const separators = `/\?#:;=&,@`

// strays tells whether a reading has a control character, or a segment that
// servers resolve (RFC 3986 section 5.2.4): then it is not what it looks like.
func strays(r []byte) bool {
	for len(r) > 0 {
		n := bytes.IndexAny(r, separators)
		if n < 0 {
			n = len(r)
		}
		segment := r[:n]
		if s := string(segment); s == "." || s == ".." || bytes.ContainsFunc(segment, isControl) {
			return true
		}
		r = r[min(n+1, len(r)):]
	}
	return false
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

// unescape decodes the percent-escapes in s, but for those of bytes that keep
// names. It returns false if there are none.
func unescape(s []byte, keep func(byte) bool) ([]byte, bool) {
	var out []byte
	done := 0
	for i := 0; i+2 < len(s); i++ {
		hi, lo := hexDigit(s[i+1]), hexDigit(s[i+2])
		if s[i] != '%' || hi < 0 || lo < 0 {
			continue
		}
		c := byte(hi<<4 | lo)
		if keep != nil && keep(c) {
			continue
		}
		out = append(append(out, s[done:i]...), c)
		i += 2
		done = i + 1
	}
	if done == 0 {
		return nil, false
	}
	return append(out, s[done:]...), true
}

// hexDigit returns the value of c, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
