// Package state seals what a client of the per-request era carries for
// Signalbox between two requests: the requestState of a call that needs input,
// and the id of a task (MCP 2026-07-28, basic/patterns/mrtr, "Server
// Requirements"; SEP-2663).
//
//	token = "sb1." KID "." base64url( nonce | AES-256-GCM(kind, expiry, payload) )
//
// The additional data binds a token to the server, the principal, the method and
// what the request asks for, so that nobody can present another's, nor the own
// one with another request. It is encrypted, not only signed: a server's own state
// may hold what its client shall not read.
package state

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// ErrState is the one answer to every token that is not good: cut, changed, of
// another principal, request, server or key, or after its time. It tells nothing
// else (HTTP 400, -32602).
var ErrState = upstream.Errorf(mcp.CodeInvalidParams, "request_state",
	"requestState is not valid for this request, or has expired; start the request anew without it")

// Kind says what a payload is; the packages that seal choose from these.
type Kind byte

const (
	Parked  Kind = 'p' // a call of the handshake era that waits for answers
	Again   Kind = 'a' // nothing waits: the request is made anew
	Wrapped Kind = 'w' // the server's own requestState
	Task    Kind = 't' // the server's own task id
)

// Ring holds the keys: the first seals, all open.
type Ring struct{ keys []key }

type key struct {
	id   string // first four bytes of the hash of the key, in hex
	aead cipher.AEAD
	mac  []byte // makes the nonces of Name
}

// NewRing derives the keys from secrets, of which there is at least one. Each has
// at least 16 bytes.
func NewRing(secrets ...[]byte) (*Ring, error) {
	r := new(Ring)
	for _, secret := range secrets {
		if len(secret) < 16 {
			return nil, errors.New("a key for requestState has fewer than 16 bytes")
		}
		parts, err := hkdf.Key(sha256.New, secret, nil, "signalbox requestState 1", 32+32+4)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(parts[:32])
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		r.keys = append(r.keys, key{hex.EncodeToString(parts[64:]), aead, parts[32:64]})
	}
	if len(r.keys) == 0 {
		return nil, errors.New("no key for requestState")
	}
	return r, nil
}

// Binding is what a token is good for.
type Binding struct{ data []byte }

// Bind is the binding to a request: its server, principal, method, and what it
// asks for by name, uri and arguments. That is computed now: the request may be
// given away afterwards.
func Bind(server string, req *upstream.Request) Binding {
	digest := digest(&req.Msg)
	return bind(server, req, []byte(req.Msg.MethodName()), digest[:])
}

// BindTask is the binding of a task id: to its server and principal.
func BindTask(server string, req *upstream.Request) Binding {
	return bind(server, req, []byte("task"))
}

func bind(server string, req *upstream.Request, parts ...[]byte) Binding {
	who := []byte{0}
	if req.Principal != nil {
		who = append([]byte{1}, req.Principal.Key()...)
	}
	var b Binding
	for _, p := range append([][]byte{[]byte("sb1"), []byte(server), who}, parts...) {
		b.data = binary.AppendUvarint(b.data, uint64(len(p)))
		b.data = append(b.data, p...)
	}
	return b
}

const prefix = "sb1."

var encoding = base64.RawURLEncoding.Strict()

// Seal makes a token that is good for a time, forever where that is 0. No two
// tokens are alike. A token can stand in a JSON string and in a header as it is.
func (r *Ring) Seal(b Binding, kind Kind, payload []byte, good time.Duration) string {
	nonce := make([]byte, r.keys[0].aead.NonceSize())
	rand.Read(nonce) // never fails (crypto/rand, Go 1.24)
	return r.seal(b, nonce, plain(kind, payload, good))
}

// Name makes a token that is the same each time, and good forever: a name.
func (r *Ring) Name(b Binding, kind Kind, payload []byte) string {
	text := plain(kind, payload, 0)
	mac := hmac.New(sha256.New, r.keys[0].mac)
	mac.Write(binary.AppendUvarint(nil, uint64(len(b.data))))
	mac.Write(b.data)
	mac.Write(text)
	return r.seal(b, mac.Sum(nil)[:r.keys[0].aead.NonceSize()], text)
}

func plain(kind Kind, payload []byte, good time.Duration) []byte {
	var until uint64
	if good > 0 {
		until = uint64(time.Now().Add(good).Unix())
	}
	text := binary.BigEndian.AppendUint64([]byte{byte(kind)}, until)
	return append(text, payload...)
}

func (r *Ring) seal(b Binding, nonce, text []byte) string {
	k := &r.keys[0]
	sealed := k.aead.Seal(nonce, nonce, text, b.data)
	token := append([]byte(prefix), k.id...)
	token = append(token, '.')
	return string(encoding.AppendEncode(token, sealed))
}

// Open returns what a token holds, or ErrState.
func (r *Ring) Open(b Binding, token []byte) (Kind, []byte, error) {
	rest, ok := bytes.CutPrefix(token, []byte(prefix))
	id, text, found := bytes.Cut(rest, []byte("."))
	if !ok || !found {
		return 0, nil, ErrState
	}
	sealed, err := encoding.AppendDecode(nil, text)
	if err != nil {
		return 0, nil, ErrState
	}
	for i := range r.keys {
		k := &r.keys[i]
		n := k.aead.NonceSize()
		if string(id) != k.id || len(sealed) < n {
			continue
		}
		open, err := k.aead.Open(nil, sealed[:n], sealed[n:], b.data)
		if err != nil || len(open) < 9 {
			return 0, nil, ErrState
		}
		if until := binary.BigEndian.Uint64(open[1:9]); until != 0 && uint64(time.Now().Unix()) >= until {
			return 0, nil, ErrState
		}
		return Kind(open[0]), open[9:], nil
	}
	return 0, nil, ErrState
}
