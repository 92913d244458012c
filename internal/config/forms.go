package config

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// form tells whether text is what a type of the table asks for; wrong says what
// is wanted if not.
func form(typ, text string) (wrong string) {
	switch typ {
	case typeDuration, typeDurationOrZero:
		d, err := time.ParseDuration(text)
		switch {
		case err != nil && isNumber(text):
			return "a duration needs a unit, as 300ms, 20s or 2h"
		case err != nil || d < 0:
			return "a duration is wanted, as 300ms, 20s or 2h"
		case d == 0 && typ == typeDuration:
			return "a duration above 0 is wanted, as 300ms, 20s or 2h"
		}
	case typeTimeout:
		if _, ok := timeout(text); !ok {
			return "a number of seconds or a duration above 0 is wanted, as 60, 90s or 10m"
		}
	case typeSize:
		if !isSize(text) {
			return "a size is wanted, as 4MiB, 64KiB or a number of bytes"
		}
	case typeCount, typeCountOrZero:
		n, err := strconv.Atoi(text)
		switch {
		case err != nil || n < 0:
			return "a whole number is wanted"
		case n == 0 && typ == typeCount:
			return "a whole number above 0 is wanted"
		}
	case typeBool:
		if text != "true" && text != "false" {
			return "true or false is wanted"
		}
	default:
		words := strings.Split(typ, "|")
		if len(words) == 1 {
			return ""
		}
		for _, w := range words {
			if w == text {
				return ""
			}
		}
		return "one of " + strings.Join(words, ", ") + " is wanted"
	}
	return ""
}

var number = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?$`)

func isNumber(s string) bool { return number.MatchString(s) }

// timeout is the duration that the key timeout means: a bare number is seconds.
func timeout(text string) (string, bool) {
	if isNumber(text) {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	return text, err == nil && d > 0
}

func isSize(s string) bool {
	unit := int64(1)
	for suffix, n := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			s, unit = rest, n
			break
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return err == nil && n > 0 && n <= math.MaxInt64/unit
}
