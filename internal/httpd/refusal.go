package httpd

import (
	"fmt"
	"net/http"
)

// refusal is a request that no handler sees: the client is told why, and the
// connection is closed, since nobody knows where the next request begins.
type refusal struct {
	status int
	text   string // nothing of the request is in it
}

func (r *refusal) Error() string { return http.StatusText(r.status) + ": " + r.text }

func bad(text string) error { return &refusal{http.StatusBadRequest, text} }

var (
	errLine     = bad("malformed request line")
	errLineEnd  = bad("a line does not end in CRLF")
	errField    = bad("malformed header line")
	errValue    = bad("invalid header value")
	errTarget   = bad("invalid request target")
	errCut      = bad("the request ends within its head")
	errNoHost   = bad("missing required Host header")
	errHosts    = bad("too many Host headers")
	errHost     = bad("malformed Host header")
	errLength   = bad("invalid Content-Length")
	errBoth     = bad("both Transfer-Encoding and Content-Length")
	errOldTE    = bad("Transfer-Encoding in HTTP/1.0")
	errTrailer  = bad("a trailer of this name is not allowed")
	errCoding   = &refusal{http.StatusNotImplemented, "unsupported transfer encoding"}
	errVersion  = &refusal{http.StatusHTTPVersionNotSupported, "unsupported protocol version"}
	errLongHead = &refusal{http.StatusRequestHeaderFieldsTooLarge, "the head of the request is too large"}
	errExpect   = &refusal{http.StatusExpectationFailed, "only 100-continue can be expected"}
)

// response is the whole answer.
func (r *refusal) response() []byte {
	body := fmt.Sprintf("%d %s", r.status, r.Error())
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		r.status, http.StatusText(r.status), len(body), body)
}
