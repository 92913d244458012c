package httpd

import "strings"

// message is what the head says about the message itself.
type message struct {
	hosts      int
	length     int64 // Content-Length; -1: none
	chunked    bool
	close      bool
	keepAlive  bool // HTTP/1.0, and the client asks for it
	expect     bool // 100-continue
	badExpect  bool
	hasTrailer bool
}

// special looks at the headers that the server itself obeys. add tells whether
// the handler sees this one.
func (x *exchange) special(m *message, name, value string) (add bool, err error) {
	switch name {
	case "Host":
		if m.hosts++; m.hosts > 1 {
			return false, errHosts
		}
		if !all(value, isHost) {
			return false, errHost
		}
		x.req.Host = value
		return false, nil
	case "Content-Length":
		if m.length >= 0 || len(value) == 0 || len(value) > 18 {
			return false, errLength
		}
		m.length = 0
		for _, ch := range []byte(value) {
			if !digit(ch) {
				return false, errLength
			}
			m.length = m.length*10 + int64(ch-'0')
		}
	case "Transfer-Encoding":
		if m.chunked || !equalFold(value, "chunked") {
			return false, errCoding
		}
		m.chunked = true
		return false, nil
	case "Connection":
		m.close = m.close || hasToken(value, "close")
		m.keepAlive = m.keepAlive || hasToken(value, "keep-alive")
	case "Expect":
		if !m.expect && !m.badExpect { // the first counts
			m.expect = hasToken(value, "100-continue")
			m.badExpect = !m.expect && value != ""
		}
	case "Trailer":
		m.hasTrailer = true
	}
	return true, nil
}

// judge decides about the message as a whole (RFC 9112, sections 3.2 and 6.3).
func (x *exchange) judge(m *message) error {
	old := x.req.ProtoMinor == 0
	switch {
	case m.chunked && old:
		return errOldTE // a reader of 1.0 does not know it and sees another body
	case m.chunked && m.length >= 0:
		return errBoth
	case m.hosts == 0 && !old && x.req.Method != "CONNECT":
		return errNoHost
	}
	if x.url.Host != "" {
		x.req.Host = x.url.Host
	}
	if old {
		m.keepAlive = m.keepAlive && !m.close
		m.close = !m.keepAlive
	} else {
		m.keepAlive = false
	}
	x.req.Close = m.close
	x.req.ContentLength = max(m.length, 0)
	if m.chunked {
		x.req.ContentLength = -1
		x.req.TransferEncoding = []string{"chunked"}
	}
	if m.hasTrailer && m.chunked {
		for _, v := range x.req.Header["Trailer"] {
			for _, name := range []string{"Transfer-Encoding", "Trailer", "Content-Length"} {
				if hasToken(v, name) {
					return errTrailer
				}
			}
		}
		delete(x.req.Header, "Trailer")
	}
	h := x.req.Header // as net/http (RFC 7234, section 5.4)
	if p, ok := h["Pragma"]; ok && p[0] == "no-cache" && h["Cache-Control"] == nil {
		h["Cache-Control"] = []string{"no-cache"}
	}
	return nil
}

// hasToken looks for an element of a comma-separated list.
func hasToken(list, token string) bool {
	for part := range strings.SplitSeq(list, ",") {
		if equalFold(strings.Trim(part, " \t"), token) {
			return true
		}
	}
	return false
}

// equalFold compares ASCII without regard to case. strings.EqualFold takes
// other letters for these, too.
func equalFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		x, y := a[i], b[i]
		if class[x]&isUpper != 0 {
			x ^= 0x20
		}
		if class[y]&isUpper != 0 {
			y ^= 0x20
		}
		if x != y {
			return false
		}
	}
	return true
}
