package cluster

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"net"
	"strconv"
)

// fingerprint is the SHA-256 of a certificate in DER.
type fingerprint [sha256.Size]byte

// registration is what a replica tells the others about itself.
//
// As bytes: a version (1), the id and the address each with one byte of length
// before it, the fingerprint, and HMAC-SHA256 over all that. Another version
// may look different in all but the first byte.
type registration struct {
	id          string
	address     string // host:port that others dial
	fingerprint fingerprint
}

const (
	registrationV1 = 1
	maxAddress     = 255 // a DNS name has at most 253
)

// Why a registration is refused; the texts are the reasons of the metric.
var (
	errVersion   = errors.New("registration_version")
	errMalformed = errors.New("registration_malformed")
	errMAC       = errors.New("registration_mac")
	errOtherID   = errors.New("registration_id")
)

// encode returns the value for the store, with its MAC by key.
func (r registration) encode(key []byte) []byte {
	b := append(make([]byte, 0, 3+len(r.id)+len(r.address)+2*sha256.Size), registrationV1)
	b = append(append(b, byte(len(r.id))), r.id...)
	b = append(append(b, byte(len(r.address))), r.address...)
	b = append(b, r.fingerprint[:]...)
	return append(b, mac(key, b)...)
}

// decodeRegistration reads what stands in the store under id. Nothing of it is
// looked at before its MAC.
func decodeRegistration(key []byte, id string, b []byte) (registration, error) {
	if len(b) == 0 {
		return registration{}, errMalformed
	}
	if b[0] != registrationV1 {
		return registration{}, errVersion
	}
	if len(b) < 3+2*sha256.Size || len(b) > 3+2*255+2*sha256.Size {
		return registration{}, errMalformed
	}
	signed, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if !hmac.Equal(sum, mac(key, signed)) {
		return registration{}, errMAC
	}
	var r registration
	ok1, ok2 := false, false
	rest := signed[1:]
	r.id, rest, ok1 = cutString(rest)
	r.address, rest, ok2 = cutString(rest)
	if !ok1 || !ok2 || len(rest) != len(r.fingerprint) || checkAddress(r.address) != nil {
		return registration{}, errMalformed
	}
	r.fingerprint = fingerprint(rest)
	if r.id != id {
		return registration{}, errOtherID
	}
	return r, nil
}

func cutString(b []byte) (s string, rest []byte, ok bool) {
	if len(b) == 0 || len(b) < 1+int(b[0]) {
		return "", nil, false
	}
	n := 1 + int(b[0])
	return string(b[1:n]), b[n:], true
}

func mac(key, b []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write(b)
	return h.Sum(nil)
}

// checkAddress wants a host and a port that others can dial.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("the port must be a number from 1 to 65535")
	}
	if ip := net.ParseIP(host); host == "" || ip.IsUnspecified() {
		return errors.New("the host must be one that other replicas can reach")
	}
	if len(address) > maxAddress {
		return errors.New("too long")
	}
	return nil
}
