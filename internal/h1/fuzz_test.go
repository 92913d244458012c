package h1

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"
)

// FuzzReceive: whatever a server sends, there is no panic, never more body than
// announced, and where net/http and this package both take an answer they agree
// on what it is. How the bytes arrive makes no difference.
func FuzzReceive(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\n{}\r\n0\r\nX: y\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 1\r\n\r\nx",
		"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nuntil the end",
		"HTTP/1.1 304 Not Modified\nKeep-Alive: timeout=5\nMcp-Session-Id: a\n\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, cut uint8) {
		c, r, body, err := receive(bytes.NewReader(raw))
		c2, r2, body2, err2 := receive(&slow{raw, int(cut)%7 + 1})
		if !bytes.Equal(body, body2) || (err == nil) != (err2 == nil) || c.reusable != c2.reusable || (r == nil) != (r2 == nil) {
			t.Fatalf("cut: %q, %v, want %q, %v", body2, err2, body, err)
		}
		if r == nil {
			return
		}
		if r.Length >= 0 && (int64(len(body)) > r.Length || err == nil && int64(len(body)) != r.Length) {
			t.Fatalf("%d bytes of %d", len(body), r.Length)
		}
		if c.reusable && err != nil {
			t.Fatalf("reusable after %v", err)
		}
		compare(t, raw, r, body, err)
	})
}

func receive(in io.Reader) (c *Conn, r *Response, body []byte, err error) {
	c = scripted(in)
	if r, err = c.Receive(); err == nil {
		body, err = io.ReadAll(r.Body)
	}
	return c, r, body, err
}

// compare holds the answer against that of net/http.
func compare(t *testing.T, raw []byte, r *Response, body []byte, err error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	std, stdErr := http.ReadResponse(in, nil)
	for stdErr == nil && std.StatusCode < 200 {
		std, stdErr = http.ReadResponse(in, nil)
	}
	if stdErr != nil {
		return
	}
	stdBody, stdErr := io.ReadAll(std.Body)
	if std.ProtoMinor == 0 && std.ProtoMajor == 1 && r.chunked {
		return // net/http does not look at Transfer-Encoding there
	}
	if std.StatusCode != r.Status {
		t.Fatalf("status %d, net/http has %d", r.Status, std.StatusCode)
	}
	if stdErr == nil && err == nil && !bytes.Equal(body, stdBody) {
		t.Fatalf("body %q, net/http has %q", body, stdBody)
	}
	if stdErr == nil && err != nil && !errors.Is(err, ErrMalformed) {
		t.Fatalf("error %v, net/http has none", err)
	}
	if got, want := r.ContentType, std.Header.Values("Content-Type"); len(want) == 1 && got != want[0] {
		t.Fatalf("Content-Type %q, net/http has %q", got, want)
	}
}

// slow hands out n bytes at a time.
type slow struct {
	left []byte
	n    int
}

func (s *slow) Read(b []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, s.left[:min(s.n, len(s.left))])
	s.left = s.left[n:]
	return n, nil
}
