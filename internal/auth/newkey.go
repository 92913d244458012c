package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
)

// keyPrefix lets a scanner for leaked secrets know a key when it sees one.
const keyPrefix = "sbx_"

// NewKey makes a static key of 256 random bits, and the entry for the key file
// that accepts it, which holds only its hash. The entry ends in a line feed.
func NewKey(name string, scopes []string) (key, entry string, err error) {
	if !keyName.MatchString(name) {
		return "", "", fmt.Errorf("the name of a key is 1 to 64 of the characters A-Z a-z 0-9 . _ @ -, not %.80q", name)
	}
	quoted := make([]string, 0, len(scopes))
	for _, s := range scopes {
		if !scopeToken.MatchString(s) {
			return "", "", fmt.Errorf("a scope is visible ASCII without spaces, quotes and backslashes, not %.80q", s)
		}
		quoted = append(quoted, `"`+s+`"`)
	}
	var secret [32]byte
	rand.Read(secret[:]) // never fails: it ends the program instead
	key = keyPrefix + base64.RawURLEncoding.EncodeToString(secret[:])
	sum := sha256.Sum256([]byte(key))
	entry = fmt.Sprintf("- name: %q\n  hash: %q\n  scopes: [%s]\n", name, hashPrefix+hex.EncodeToString(sum[:]), strings.Join(quoted, ", "))
	return key, entry, nil
}

// WriteKey writes what NewKey returned as `signalbox key new` prints it: the key
// alone in the first line, an empty line, the entry.
func WriteKey(w io.Writer, key, entry string) error {
	_, err := io.WriteString(w, key+"\n\n"+entry)
	return err
}
