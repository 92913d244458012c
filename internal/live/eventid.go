package live

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"strings"
)

// An event id is STREAM "." POSITION "." MAC: numbers in base 36, and 72 bits
// of HMAC-SHA256 over session and stream, so that no id of another session,
// server or stream is taken for one of this. Position 0 is before the first
// event.

const eventMACBytes = 9

// EventID is the id under which the client can ask for what follows seq.
func (r *Reader) EventID(seq uint64) string {
	if r.mac == "" {
		r.mac = r.st.s.streamMAC(r.st.n)
	}
	b := make([]byte, 0, 40)
	b = strconv.AppendUint(b, r.st.n, 36)
	b = append(b, '.')
	b = strconv.AppendUint(b, seq, 36)
	b = append(b, '.')
	return string(append(b, r.mac...))
}

func (s *Session) streamMAC(n uint64) string {
	h := hmac.New(sha256.New, s.m.cfg.Key)
	h.Write([]byte("event id"))
	for _, part := range []string{s.backend.Name, s.id} { // each with its length
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Write(binary.AppendUvarint(nil, n))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:eventMACBytes])
}

func (s *Session) parseEventID(id string) (stream, seq uint64, ok bool) {
	a, rest, ok1 := strings.Cut(id, ".")
	b, mac, ok2 := strings.Cut(rest, ".")
	if !ok1 || !ok2 {
		return 0, 0, false
	}
	stream, err1 := strconv.ParseUint(a, 36, 64)
	seq, err2 := strconv.ParseUint(b, 36, 64)
	if err1 != nil || err2 != nil || !hmac.Equal([]byte(mac), []byte(s.streamMAC(stream))) {
		return 0, 0, false
	}
	return stream, seq, true
}
