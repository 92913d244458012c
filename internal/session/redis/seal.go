package redis

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/crypto/chacha20poly1305"
)

// ErrSealed: a record is there that this Store cannot open: sealed with a key it
// does not have, moved here from another session, written by a newer version, or
// damaged. It comes wrapped together with session.ErrUnavailable.
var ErrSealed = errors.New("redis: the record cannot be opened")

// errUnknownKey is the first of those, which is worth its own line in the log.
var errUnknownKey = fmt.Errorf("%w: sealed with a key that is not here (replicas must share --state-key-file)", ErrSealed)

// A sealed value is: format (1 byte), key id (4), nonce (24), box. Format, key id
// and nonce are its tag, which no other value has: it tells versions of a record
// apart without opening them.
const (
	sealFormat = 1
	keyIDSize  = 4
	tagSize    = 1 + keyIDSize + chacha20poly1305.NonceSizeX
)

// minKey is the least size of a key, in bytes.
const minKey = 32

// sealer seals and opens values. Its keys are made by HKDF-SHA-256 (RFC 5869).
type sealer struct {
	keys []sealKey // the first seals, all open
}

type sealKey struct {
	id   [keyIDSize]byte
	aead cipher.AEAD
}

func newSealer(key []byte, old [][]byte) (*sealer, error) {
	s := &sealer{}
	for _, k := range append([][]byte{key}, old...) {
		if len(k) < minKey {
			return nil, fmt.Errorf("redis: a key has %d bytes, needs at least %d", len(k), minKey)
		}
		secret, err := hkdf.Key(sha256.New, k, nil, "signalbox session store: seal", chacha20poly1305.KeySize)
		if err != nil {
			return nil, fmt.Errorf("redis: derive key: %w", err)
		}
		id, err := hkdf.Key(sha256.New, k, nil, "signalbox session store: key id", keyIDSize)
		if err != nil {
			return nil, fmt.Errorf("redis: derive key id: %w", err)
		}
		aead, err := chacha20poly1305.NewX(secret)
		if err != nil {
			return nil, fmt.Errorf("redis: %w", err)
		}
		s.keys = append(s.keys, sealKey{id: [keyIDSize]byte(id), aead: aead})
	}
	return s, nil
}

// seal returns plain as the value of the key name, and that key only.
func (s *sealer) seal(name string, plain []byte) []byte {
	k := s.keys[0]
	v := make([]byte, tagSize, tagSize+len(plain)+k.aead.Overhead())
	v[0] = sealFormat
	copy(v[1:], k.id[:])
	nonce := v[1+keyIDSize : tagSize]
	rand.Read(nonce) // never fails
	return k.aead.Seal(v, nonce, plain, []byte(name))
}

// open returns what seal was given. The error is an ErrSealed.
func (s *sealer) open(name string, v []byte) ([]byte, error) {
	if len(v) == 0 || v[0] != sealFormat {
		return nil, fmt.Errorf("%w: not of format %d: written by another version", ErrSealed, sealFormat)
	}
	if len(v) < tagSize {
		return nil, fmt.Errorf("%w: cut short", ErrSealed)
	}
	known := false
	for _, k := range s.keys {
		if !bytes.Equal(v[1:1+keyIDSize], k.id[:]) {
			continue
		}
		known = true
		if plain, err := k.aead.Open(nil, v[1+keyIDSize:tagSize], v[tagSize:], []byte(name)); err == nil {
			return plain, nil
		}
	}
	if !known {
		return nil, errUnknownKey
	}
	return nil, fmt.Errorf("%w: damaged, or moved from another session", ErrSealed)
}

// tag returns what tells v from each other value. v is one that open took.
func tag(v []byte) []byte { return v[:tagSize] }
