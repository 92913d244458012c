package header

import (
	"strconv"
	"strings"
)

// number is a JSON number, exactly: digits · 10^exp. digits begins and ends with
// none of 0, and is empty for zero.
type number struct {
	negative bool
	digits   string
	exp      int64
}

// parseNumber reads what RFC 8259, section 6, calls a number; false: it is none, or
// its exponent is beyond all reason.
func parseNumber(s string) (n number, ok bool) {
	s, n.negative = strings.CutPrefix(s, "-")
	whole, s := cutDigits(s)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return n, false
	}
	fraction := ""
	if rest, has := strings.CutPrefix(s, "."); has {
		if fraction, s = cutDigits(rest); fraction == "" {
			return n, false
		}
	}
	if s != "" {
		if s[0]|0x20 != 'e' {
			return n, false
		}
		var err error
		if n.exp, err = strconv.ParseInt(s[1:], 10, 32); err != nil {
			return n, false
		}
	}
	n.exp -= int64(len(fraction))
	digits := strings.TrimLeft(whole+fraction, "0")
	n.digits = strings.TrimRight(digits, "0")
	n.exp += int64(len(digits) - len(n.digits))
	if n.digits == "" {
		return number{}, true
	}
	return n, true
}

func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// safe is the largest integer up to which every one is a float of 64 bits.
const safe = 1<<53 - 1

// decimal is n without fraction and exponent; false: it has a fraction, or is so
// large that not every reader has it exactly.
func (n number) decimal() (string, bool) {
	if n.digits == "" {
		return "0", true
	}
	if n.exp < 0 || len(n.digits) > 16 || n.exp > 16 {
		return "", false
	}
	v, err := strconv.ParseUint(n.digits+strings.Repeat("0", int(n.exp)), 10, 64)
	if err != nil || v > safe {
		return "", false
	}
	if n.negative {
		return "-" + strconv.FormatUint(v, 10), true
	}
	return strconv.FormatUint(v, 10), true
}

// numeral is a number token as a header carries it: an integer in its plain form,
// anything else as it is written.
func numeral(token string) string {
	if n, ok := parseNumber(token); ok {
		if s, ok := n.decimal(); ok {
			return s
		}
	}
	return token
}

// sameNumber compares two numerals by value; those that are none, as they are
// written.
func sameNumber(a, b string) bool {
	x, ok1 := parseNumber(a)
	y, ok2 := parseNumber(b)
	if !ok1 || !ok2 {
		return a == b
	}
	return x == y
}
