package wire

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// MaxDepth is how many arrays and objects may stand inside each other.
const MaxDepth = 1000

// tooDeep is the fault of a scan that met more than MaxDepth open containers.
const tooDeep = math.MinInt

// at returns b[i], or 0 past the end. No JSON token has a byte 0, so callers
// need no second check.
func at(b []byte, i int) byte {
	if i < len(b) {
		return b[i]
	}
	return 0
}

// skipSpace returns the first position from i on that is no JSON white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stops marks, by the top bit of its byte, where a string scan has to look:
// at '"', at '\\' and below 0x20. A borrow may mark a byte above a true mark as
// well, so only the lowest mark is to be trusted.
func stops(w uint64) uint64 {
	quote := (w ^ ones*'"') - ones
	slash := (w ^ ones*'\\') - ones
	control := w - ones*0x20
	return (quote | slash | control) & ^w & highs
}

// scanString reads the string token whose opening quote must stand at i.
// Whether its bytes are valid UTF-8 is checked by the caller for the whole text.
func scanString(b []byte, i int) int {
	if at(b, i) != '"' {
		return ^i
	}
	i++
	for {
		for i+32 <= len(b) { // four words at once: long strings are most of what there is
			w := b[i : i+32 : i+32]
			if stops(binary.LittleEndian.Uint64(w))|stops(binary.LittleEndian.Uint64(w[8:]))|
				stops(binary.LittleEndian.Uint64(w[16:]))|stops(binary.LittleEndian.Uint64(w[24:])) != 0 {
				break
			}
			i += 32
		}
		for i+8 <= len(b) {
			if m := stops(binary.LittleEndian.Uint64(b[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				if b[i] == '"' {
					return i + 1
				}
				break
			}
			i += 8
		}
		if i >= len(b) {
			return ^i
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1
		case c == '\\':
			if i = scanEscape(b, i); i < 0 {
				return i
			}
		case c < 0x20:
			return ^i
		default: // one of the last seven bytes
			i++
		}
	}
}

// scanEscape reads the escape whose backslash stands at i. Lone surrogates are
// fine: RFC 8259 section 8.2 allows them, and the proxy does not decode them.
func scanEscape(b []byte, i int) int {
	switch at(b, i+1) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
		if i+6 > len(b) {
			return ^i
		}
		for _, c := range b[i+2 : i+6] {
			if hexDigit(c) < 0 {
				return ^i
			}
		}
		return i + 6
	}
	return ^i
}

// hexDigit returns the value of c, or -1.
func hexDigit(c byte) rune {
	switch {
	case '0' <= c && c <= '9':
		return rune(c - '0')
	case 'a' <= c && c <= 'f':
		return rune(c - 'a' + 10)
	case 'A' <= c && c <= 'F':
		return rune(c - 'A' + 10)
	}
	return -1
}

// scanScalar reads a number, true, false or null.
func scanScalar(b []byte, i int) int {
	word := ""
	switch at(b, i) {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	default:
		return scanNumber(b, i)
	}
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return ^i
	}
	return i + len(word)
}

// scanNumber reads a number as RFC 8259 section 6 writes it. A digit after a
// leading zero is left for the caller, who expects a comma or an end there.
func scanNumber(b []byte, i int) int {
	if at(b, i) == '-' {
		i++
	}
	if at(b, i) == '0' {
		i++
	} else if i = scanDigits(b, i); i < 0 {
		return i
	}
	if at(b, i) == '.' {
		if i = scanDigits(b, i+1); i < 0 {
			return i
		}
	}
	if c := at(b, i); c == 'e' || c == 'E' {
		i++
		if c := at(b, i); c == '+' || c == '-' {
			i++
		}
		return scanDigits(b, i)
	}
	return i
}

// scanDigits reads one digit or more.
func scanDigits(b []byte, i int) int {
	start := i
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return ^i
	}
	return i
}

// scanKey reads a member's name and colon and returns where its value starts.
func scanKey(b []byte, i int) int {
	if i = scanString(b, i); i < 0 {
		return i
	}
	return scanColon(b, i)
}

// scanColon is scanKey from the end of the name on.
func scanColon(b []byte, i int) int {
	if i = skipSpace(b, i); at(b, i) != ':' {
		return ^i
	}
	return skipSpace(b, i+1)
}

// nest remembers of each open container whether it is an object, one bit each.
// The innermost 1 to 64 are in top, so that usual messages allocate nothing.
type nest struct {
	n    int
	top  uint64
	rest []uint64
}

func (s *nest) push(object bool) {
	if s.n > 0 && s.n%64 == 0 {
		s.rest = append(s.rest, s.top)
	}
	s.n++
	s.top <<= 1
	if object {
		s.top |= 1
	}
}

func (s *nest) pop() {
	s.n--
	s.top >>= 1
	if s.n > 0 && s.n%64 == 0 {
		s.top = s.rest[len(s.rest)-1]
		s.rest = s.rest[:len(s.rest)-1]
	}
}

func (s *nest) object() bool { return s.top&1 != 0 }

// scanValue reads the value that must start at i, white space before it not
// included. depth is how many containers are open around it.
func scanValue(b []byte, i, depth int) int {
	switch at(b, i) {
	case '{', '[':
		return scanContainer(b, i, depth)
	case '"':
		return scanString(b, i)
	}
	return scanScalar(b, i)
}

// scanContainer reads the array or object that starts at i.
func scanContainer(b []byte, i, depth int) int {
	var open nest
	for {
		switch c := at(b, i); c {
		case '{', '[':
			if depth+open.n >= MaxDepth {
				return tooDeep
			}
			open.push(c == '{')
			i = skipSpace(b, i+1)
			if at(b, i) == c+2 { // '{'+2 is '}', '['+2 is ']'
				break
			}
			if c == '{' {
				if i = scanKey(b, i); i < 0 {
					return i
				}
			}
			continue
		case '"':
			i = scanString(b, i)
		default:
			i = scanScalar(b, i)
		}
		if i < 0 {
			return i
		}
		i = scanClosers(b, i, &open)
		if i < 0 || open.n == 0 {
			return i
		}
	}
}

// scanClosers reads what may follow a value inside open containers: ends of
// containers, then a comma and, in an object, the next name. It returns where
// the next value starts, or the position after the outermost end.
func scanClosers(b []byte, i int, open *nest) int {
	for open.n > 0 {
		i = skipSpace(b, i)
		closer := byte(']')
		if open.object() {
			closer = '}'
		}
		switch at(b, i) {
		case closer:
			i++
			open.pop()
		case ',':
			i = skipSpace(b, i+1)
			if closer == '}' {
				return scanKey(b, i)
			}
			return i
		default:
			return ^i
		}
	}
	return i
}
