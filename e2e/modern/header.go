package modern

import (
	"encoding/base64"
	"errors"
	"strings"
	"unicode/utf8"
)

// decodeHeader undoes the encoding of values that a header cannot carry:
// =?base64?VALUE?=. What lacks the end of that is a value as it stands.
func decodeHeader(value string) (string, error) {
	encoded, ok := strings.CutPrefix(value, "=?base64?")
	if !ok {
		return value, nil
	}
	if encoded, ok = strings.CutSuffix(encoded, "?="); !ok {
		return value, nil
	}
	b, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(b) {
		return "", errors.New("an encoded value that is no UTF-8")
	}
	return string(b), nil
}
