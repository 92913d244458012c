package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
)

// NewID returns a new session id: 128 bits of crypto/rand as 22 characters of
// base64url without padding. That is within the visible ASCII which MCP allows
// (2025-11-25, basic/transports, "Session Management").
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: it ends the program instead
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// ShortHash returns the first 8 hexadecimal digits of the SHA-256 of id: the
// only form in which a session id may stand in a log line, a metric or a page,
// since who knows the id itself holds half of what it takes to use the session.
func ShortHash(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:4])
}
