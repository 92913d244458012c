package cluster

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

// MinSecret is the least length of the shared secret, in bytes.
const MinSecret = 32

// ParseSecret takes the shared secret out of the content of a file: all of it,
// without surrounding white space. An error where that is shorter than MinSecret.
func ParseSecret(file []byte) ([]byte, error) {
	secret := bytes.TrimSpace(file)
	if len(secret) < MinSecret {
		return nil, fmt.Errorf("the peer secret is %d bytes long, at least %d are needed; make one by: openssl rand -hex 32", len(secret), MinSecret)
	}
	return bytes.Clone(secret), nil
}

// StateKey derives the 32-byte key for what replicas seal (--state-key-file)
// from their shared secret, for where no key of its own is set.
func StateKey(secret []byte) []byte {
	return derive(secret, "signalbox/state/v1")
}

// derive makes a key for one purpose, so that no two uses of the secret share
// one (HKDF, RFC 5869).
func derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, purpose, sha256.Size)
	if err != nil {
		panic(err) // only for lengths above 255 hashes
	}
	return key
}
