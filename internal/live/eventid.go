package live

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"hash"
	"strconv"
	"strings"
)

// An event id is STREAM "." POSITION "." MAC: numbers in base 36, and 72 bits
// of HMAC-SHA256 over session and stream, so that no id of another session,
// server or stream is taken for one of this. Position 0 is before the first
// event. Where several replicas share a store, "." and the replica that has the
// stream follow, under the MAC too.

const eventMACBytes = 9

// EventID is the id under which the client can ask for what follows seq.
func (r *Reader) EventID(seq uint64) string {
	if r.mac == "" {
		s := r.st.s
		r.mac = s.m.streamMAC(s.backend.Name, s.id, s.m.cfg.Replica, r.st.n)
	}
	b := make([]byte, 0, 40)
	b = strconv.AppendUint(b, r.st.n, 36)
	b = append(b, '.')
	b = strconv.AppendUint(b, seq, 36)
	b = append(b, '.')
	b = append(b, r.mac...)
	if me := r.st.s.m.cfg.Replica; me != "" {
		b = append(append(b, '.'), me...)
	}
	return string(b)
}

func (m *Manager) streamMAC(server, id, replica string, n uint64) string {
	h, ok := m.macs.Get().(hash.Hash)
	if !ok {
		h = hmac.New(sha256.New, m.cfg.Key)
	}
	defer m.macs.Put(h)
	h.Reset()
	h.Write([]byte("event id"))
	for _, part := range []string{server, id, replica} { // each with its length
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write([]byte(part))
	}
	h.Write(binary.AppendUvarint(nil, n))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:eventMACBytes])
}

// position is what an event id says.
type position struct {
	stream, seq uint64
	replica     string
}

func (m *Manager) parseEventID(server, session, id string) (p position, ok bool) {
	a, rest, ok1 := strings.Cut(id, ".")
	b, rest, ok2 := strings.Cut(rest, ".")
	mac, replica, _ := strings.Cut(rest, ".")
	if !ok1 || !ok2 {
		return p, false
	}
	var err1, err2 error
	p.stream, err1 = strconv.ParseUint(a, 36, 64)
	p.seq, err2 = strconv.ParseUint(b, 36, 64)
	p.replica = replica
	if err1 != nil || err2 != nil || !hmac.Equal([]byte(mac), []byte(m.streamMAC(server, session, replica, p.stream))) {
		return position{}, false
	}
	return p, true
}

// EventHome is the other replica that has the stream of an event id; "" for one
// of this process, and for what is no event id of the session.
func (m *Manager) EventHome(b *Backend, session, id string) string {
	p, ok := m.parseEventID(b.Name, session, id)
	if !ok || p.replica == m.cfg.Replica {
		return ""
	}
	return p.replica
}
