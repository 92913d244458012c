package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
)

// Peer headers go from replica to replica with a forwarded request.
const (
	peerPrefix      = "Signalbox-Peer-"
	headerHop       = peerPrefix + "Hop"       // always 1: forwarded once
	headerPrincipal = peerPrefix + "Principal" // base64url, for a principal may be any bytes
	headerRemote    = peerPrefix + "Remote"    // the client's address, as http.Request.RemoteAddr
)

// StripPeerHeaders removes all peer headers and tells whether there were any. A
// public listener calls it for each request before anything reads the headers:
// a client that sends them wants to pass for someone else.
func StripPeerHeaders(h http.Header) bool {
	found := false
	for name := range h {
		if len(name) >= len(peerPrefix) && strings.EqualFold(name[:len(peerPrefix)], peerPrefix) {
			delete(h, name)
			found = true
		}
	}
	return found
}

// hopByHop are the headers of one connection (RFC 9110, section 7.6.1), and
// Expect, which the replica that reads the body has answered.
var hopByHop = map[string]bool{
	"Connection": true, "Keep-Alive": true, "Proxy-Connection": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true, "Http2-Settings": true, "Expect": true,
}

// outgoingHeader is what the home gets to see of r. The values are shared.
func outgoingHeader(r *http.Request, principal string) http.Header {
	h := make(http.Header, len(r.Header)+4)
	for name, values := range r.Header {
		if !hopByHop[name] {
			h[name] = values
		}
	}
	for _, list := range r.Header["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	StripPeerHeaders(h)
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // else net/http puts its own there
	}
	own := [...]string{"1", base64.RawURLEncoding.EncodeToString([]byte(principal)), r.RemoteAddr}
	h[headerHop], h[headerPrincipal], h[headerRemote] = own[0:1:1], own[1:2:2], own[2:3:3]
	return h
}

// origin is where a forwarded request comes from.
type origin struct {
	principal string
	remote    string
}

var errPeerHeaders = errors.New("the peer headers of a forwarded request are missing or make no sense")

// readOrigin takes the peer headers out of h.
func readOrigin(h http.Header) (origin, error) {
	hop, principal, remote := h[headerHop], h[headerPrincipal], h[headerRemote]
	StripPeerHeaders(h)
	if len(hop) != 1 || hop[0] != "1" || len(principal) != 1 || len(remote) != 1 {
		return origin{}, errPeerHeaders
	}
	name, err := base64.RawURLEncoding.Strict().DecodeString(principal[0])
	if err != nil {
		return origin{}, errPeerHeaders
	}
	return origin{principal: string(name), remote: remote[0]}, nil
}

type originKey struct{}

// FromPeer returns the principal of a request that another replica forwarded,
// which has checked the client's credential. ok is false for a request of a
// client: only the peer listener sets it.
func FromPeer(ctx context.Context) (principal string, ok bool) {
	o, ok := ctx.Value(originKey{}).(origin)
	return o.principal, ok
}
