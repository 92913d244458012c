package process

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"strconv"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A ROUTE names a connection and one of its calls: CONN "." NUMBER. CONN is
// 128 random bits in base64url, so that nobody can guess a ROUTE, and it is
// not the session id, which the server process must never learn. NUMBER counts
// the connection's calls in base 36.

const connPartBytes = 16

func newConnPart() string {
	var b [connPartBytes]byte
	rand.Read(b[:]) // never fails (crypto/rand, Go 1.24)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

func appendRoute(dst []byte, connPart string, n uint64) []byte {
	dst = append(dst, connPart...)
	dst = append(dst, '.')
	return strconv.AppendUint(dst, n, 36)
}

// appendWireID appends the JSON string ROUTE|n:INTEGER or ROUTE|s:STRING for
// the client's raw id token. The inside of a string token is kept as it is
// written, escapes included.
func appendWireID(dst []byte, connPart string, n uint64, id []byte) []byte {
	dst = append(dst, '"')
	dst = appendRoute(dst, connPart, n)
	if len(id) >= 2 && id[0] == '"' {
		dst = append(dst, "|s:"...)
		dst = append(dst, id[1:len(id)-1]...)
	} else {
		dst = append(dst, "|n:"...)
		dst = append(dst, id...)
	}
	return append(dst, '"')
}

// wireID is an echoed id taken apart: destination, original id and its type
// are told from the echo alone.
type wireID struct {
	conn  []byte
	n     uint64
	kind  byte   // 'n' or 's'
	inner []byte // digits, or what stands between the quotes, as the server spelled it
}

func parseWireID(tok []byte) (id wireID, ok bool) {
	if len(tok) < 2 || tok[0] != '"' {
		return id, false
	}
	if id, ok = splitWireID(tok[1 : len(tok)-1]); ok && bytes.IndexByte(id.conn, '\\') < 0 {
		return id, true
	}
	// A server may spell the parts before the original id as escapes.
	s, isString := wire.Unquote(tok)
	if !isString {
		return id, false
	}
	if id, ok = splitWireID(s); ok {
		q := wire.AppendQuote(nil, string(id.inner))
		id.inner = q[1 : len(q)-1]
	}
	return id, ok
}

func splitWireID(s []byte) (id wireID, ok bool) {
	route, rest, _ := bytes.Cut(s, []byte("|"))
	if len(rest) < 2 || rest[1] != ':' || rest[0] != 'n' && rest[0] != 's' {
		return id, false
	}
	id.kind, id.inner = rest[0], rest[2:]
	id.conn, id.n, ok = parseRoute(route)
	return id, ok
}

// original is the client's id token as the echo has it.
func (id wireID) original() []byte {
	if id.kind == 'n' {
		return id.inner
	}
	return append(append([]byte{'"'}, id.inner...), '"')
}

// is tells whether the echo carries the id of tok: the same type and, spelling
// aside, the same value.
func (id wireID) is(tok []byte) bool {
	if len(tok) < 2 || tok[0] != '"' {
		return id.kind == 'n' && bytes.Equal(id.inner, tok)
	}
	if id.kind != 's' {
		return false
	}
	if bytes.Equal(id.inner, tok[1:len(tok)-1]) {
		return true
	}
	want, _ := wire.Unquote(tok)
	got, _ := wire.Unquote(id.original())
	return bytes.Equal(got, want)
}

func parseRoute(route []byte) (conn []byte, n uint64, ok bool) {
	dot := bytes.IndexByte(route, '.')
	if dot < 0 {
		return nil, 0, false
	}
	for _, c := range route[dot+1:] {
		var d uint64
		switch {
		case '0' <= c && c <= '9':
			d = uint64(c - '0')
		case 'a' <= c && c <= 'z':
			d = uint64(c-'a') + 10
		default:
			return nil, 0, false
		}
		if n > (1<<63)/36 {
			return nil, 0, false
		}
		n = n*36 + d
	}
	return route[:dot], n, dot+1 < len(route)
}
