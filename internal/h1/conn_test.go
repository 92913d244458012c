package h1

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestReceive(t *testing.T) {
	long := strings.Repeat("x", 20<<10)
	tests := []struct {
		name  string
		raw   string
		body  string
		want  Response // Body and what is not exported aside
		reuse bool
		rest  string // left unread behind the answer
	}{
		{"length", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", "{}",
			Response{Status: 200, ContentType: "application/json", Length: 2}, true, ""},
		{"length 0", "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "", Response{Status: 202}, true, ""},
		{"equal lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\ncontent-length: 2\r\n\r\n{}", "{}", Response{Status: 200, Length: 2}, true, ""},
		{"any case and space", "HTTP/1.1 200 OK\r\nCONTENT-LENGTH:2\t \r\nmCP-sESSION-iD:\t a b \r\n\r\n{}", "{}",
			Response{Status: 200, Length: 2, Session: "a b"}, true, ""},
		{"lone LF", "HTTP/1.1 200 OK\nContent-Length: 2\n\n{}", "{}", Response{Status: 200, Length: 2}, true, ""},
		{"no reason", "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}", "{}", Response{Status: 200, Length: 2}, true, ""},
		{"headers a relay reads", "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nLocation: /x\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n-", "-",
			Response{Status: 429, RetryAfter: "7", Location: "/x", ContentEncoding: "gzip", Length: 1}, true, ""},
		{"header longer than the buffer", "HTTP/1.1 200 OK\r\nX: " + long + "\r\nContent-Length: 1\r\n\r\n-", "-", Response{Status: 200, Length: 1}, true, ""},
		{"chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\n{\r\n00a\r\n0123456789\r\nA\r\nabcdefghij\r\n0\r\n\r\n", "{0123456789abcdefghij",
			Response{Status: 200, Length: -1}, true, ""},
		{"chunk extensions and trailers", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=\"b\"\r\n{}\r\n0 ;x\r\nDigest: y\r\nContent-Length: 9\r\n\r\n", "{}",
			Response{Status: 200, Length: -1}, true, ""},
		{"chunked, nothing", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", Response{Status: 200, Length: -1}, true, ""},
		{"length and chunked", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", "{}",
			Response{Status: 200, Length: -1}, false, ""},
		{"interim answers", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "{}",
			Response{Status: 200, Length: 2}, true, ""},
		{"204", "HTTP/1.1 204 No Content\r\n\r\n", "", Response{Status: 204}, true, ""},
		{"204 that announces a body", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n{}", "", Response{Status: 204}, false, "{}"},
		{"204 in chunks", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", Response{Status: 204}, false, "0\r\n\r\n"},
		{"304", "HTTP/1.1 304 Not Modified\r\n\r\n", "", Response{Status: 304}, true, ""},
		{"until close", "HTTP/1.1 200 OK\r\n\r\n{} and more", "{} and more", Response{Status: 200, Length: -1}, false, ""},
		{"close", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\n{}", "{}", Response{Status: 200, Length: 2}, false, ""},
		{"close, chunked", "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", Response{Status: 200, Length: -1}, false, ""},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", "{}", Response{Status: 200, Length: 2}, false, ""},
		{"HTTP/1.0 until close", "HTTP/1.0 200 OK\r\n\r\n{}", "{}", Response{Status: 200, Length: -1}, false, ""},
		{"more than announced", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 200 OK\r\n", "{}", Response{Status: 200, Length: 2}, true, "HTTP/1.1 200 OK\r\n"},
		{"the same session twice", "HTTP/1.1 200 OK\r\nMcp-Session-Id: a\r\nMcp-Session-Id: a\r\nContent-Length: 0\r\n\r\n", "", Response{Status: 200, Session: "a"}, true, ""},
	}
	for _, tt := range tests {
		for how, cut := range reads {
			t.Run(tt.name+", "+how, func(t *testing.T) {
				c := scripted(cut(strings.NewReader(tt.raw)))
				must(t, c.Send([]byte("POST / HTTP/1.1\r\n\r\n"), nil))
				r, err := c.Receive()
				must(t, err)
				body, err := io.ReadAll(r.Body)
				must(t, err)
				if string(body) != tt.body {
					t.Errorf("body %q, want %q", body, tt.body)
				}
				got := *r
				got.Body, got.chunked, got.close, got.length = nil, false, false, false
				if got != tt.want {
					t.Errorf("got  %+v\nwant %+v", got, tt.want)
				}
				if c.reusable != tt.reuse {
					t.Errorf("reusable: %v", c.reusable)
				}
				if rest, _ := io.ReadAll(c.in); string(rest) != tt.rest {
					t.Errorf("left behind: %q, want %q", rest, tt.rest)
				}
				if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err != io.EOF {
					t.Errorf("after the end: %d, %v", n, err)
				}
			})
		}
	}
}

func TestReceiveMalformed(t *testing.T) {
	ok := "HTTP/1.1 200 OK\r\n"
	tests := map[string]string{
		"no HTTP":                   "SSH-2.0-OpenSSH_9.6\r\n",
		"HTTP/2 preface":            "\x00\x00\x12\x04\x00\x00\x00\x00\x00\x00\x03\n",
		"HTTP/2.0":                  "HTTP/2.0 200 OK\r\n\r\n",
		"version":                   "HTTP/1.x 200 OK\r\n\r\n",
		"short":                     "HTTP/1.1 20\r\n\r\n",
		"status with sign":          "HTTP/1.1 +20 OK\r\n\r\n",
		"status of four digits":     "HTTP/1.1 2000 OK\r\n\r\n",
		"status below 100":          "HTTP/1.1 099 OK\r\n\r\n",
		"switching":                 "HTTP/1.1 101 Switching Protocols\r\n\r\n",
		"two lengths":               ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n",
		"list of lengths":           ok + "Content-Length: 2, 2\r\n\r\n",
		"length with sign":          ok + "Content-Length: +2\r\n\r\n",
		"negative length":           ok + "Content-Length: -1\r\n\r\n",
		"empty length":              ok + "Content-Length:\r\n\r\n",
		"length beyond 62 bits":     ok + "Content-Length: 9223372036854775808\r\n\r\n",
		"gzip, chunked":             ok + "Transfer-Encoding: gzip, chunked\r\n\r\n",
		"chunked twice":             ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
		"identity":                  ok + "Transfer-Encoding: identity\r\n\r\n",
		"no colon":                  ok + "Content-Length 2\r\n\r\n",
		"no name":                   ok + ": 2\r\n\r\n",
		"space before colon":        ok + "Content-Length : 2\r\n\r\n",
		"tab before colon":          ok + "Content-Length\t: 2\r\n\r\n",
		"folded":                    ok + "X: a\r\n Transfer-Encoding: chunked\r\n\r\n",
		"CR in a name":              ok + "A\rContent-Length: 2\r\n\r\n",
		"two sessions":              ok + "Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n\r\n",
		"huge header":               ok + "X: " + strings.Repeat("x", headLimit) + "\r\n\r\n",
		"many headers":              ok + strings.Repeat("X: "+strings.Repeat("x", 100)+"\r\n", headLimit/100) + "\r\n",
		"endless first line":        "HTTP/1.1 200 " + strings.Repeat("x", headLimit*2),
		"interim answers for ever":  strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100),
		"last line above the limit": ok + "X: " + strings.Repeat("x", headLimit-len(ok)-5) + "\r\n\r\n",
	}
	for name, raw := range tests {
		for how, cut := range reads {
			t.Run(name+", "+how, func(t *testing.T) {
				if _, err := scripted(cut(strings.NewReader(raw))).Receive(); !errors.Is(err, ErrMalformed) {
					t.Errorf("error %v", err)
				}
			})
		}
	}
}

func TestChunksMalformed(t *testing.T) {
	tests := map[string]struct{ raw, body string }{
		"no digits":            {"\r\n{}\r\n0\r\n\r\n", ""},
		"no hexadecimal":       {"g\r\n", ""},
		"0x":                   {"0x2\r\n{}\r\n0\r\n\r\n", ""},
		"negative":             {"-2\r\n{}\r\n", ""},
		"only an extension":    {";a\r\n", ""},
		"too large":            {"1000000000000000\r\n", ""},
		"longer than it says":  {"2\r\n{}}\r\n0\r\n\r\n", "{}"},
		"LF after the size":    {"2\n{}\r\n0\r\n\r\n", ""},
		"LF after a chunk":     {"2\r\n{}\n0\r\n\r\n", "{}"},
		"CR in the size line":  {"2;\r2\r\n{}\r\n0\r\n\r\n", ""},
		"endless extension":    {"2;" + strings.Repeat("x", 10<<10) + "\r\n", ""},
		"endless trailer":      {"0\r\n" + strings.Repeat("X: y\r\n", 100) + "\r\n", ""},
		"huge line of trailer": {"0\r\nX: " + strings.Repeat("y", 10<<10) + "\r\n\r\n", ""},
	}
	for name, tt := range tests {
		for how, cut := range reads {
			t.Run(name+", "+how, func(t *testing.T) {
				// What follows looks like the end of a body, to whoever reads on.
				c := scripted(cut(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + tt.raw + "\r\n0\r\n\r\n0\r\n\r\n")))
				r, err := c.Receive()
				must(t, err)
				body, err := io.ReadAll(r.Body)
				if !errors.Is(err, ErrMalformed) || string(body) != tt.body {
					t.Errorf("body %q, error %v", body, err)
				}
				if n, again := r.Body.Read(make([]byte, 9)); n != 0 || again != err {
					t.Errorf("a second read: %d, %v", n, again)
				}
				if c.reusable {
					t.Error("reusable")
				}
			})
		}
	}
}

// TestCutOff cuts an answer at every byte: it is an error everywhere, and never
// one that looks like an end, nor is the connection used again.
func TestCutOff(t *testing.T) {
	for _, raw := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
	} {
		for n := range len(raw) {
			c := scripted(strings.NewReader(raw[:n]))
			r, err := c.Receive()
			if err == nil {
				_, err = io.ReadAll(r.Body)
			}
			interim := n == strings.Index(raw, "HTTP/1.1 204") // nothing was begun
			if n == 0 || interim {
				if err != io.EOF {
					t.Errorf("cut at %d: error %v", n, err)
				}
			} else if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("cut at %d: error %v", n, err)
			}
			if c.reusable {
				t.Errorf("cut at %d: reusable", n)
			}
		}
	}
}

func TestTimeoutInHeadIsATimeout(t *testing.T) {
	for _, begun := range []string{"", "HTTP/1.1 200 OK\r\nX: ", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 9000)} {
		c := scripted(io.MultiReader(strings.NewReader(begun), failing{errTimeout}))
		if _, err := c.Receive(); !errors.Is(err, errTimeout) {
			t.Errorf("after %d bytes: %v", len(begun), err)
		}
	}
}

// TestNoSecondChanceInChunks: a read that times out in the middle of a chunk's
// size has used up its digits; who reads on must not take the rest for one.
func TestNoSecondChanceInChunks(t *testing.T) {
	in := io.MultiReader(strings.NewReader("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1"), &once{err: errTimeout}, strings.NewReader("0\r\n0123456789abcdef\r\n0\r\n\r\n"))
	c := scripted(in)
	r, err := c.Receive()
	must(t, err)
	for range 5 {
		if n, err := r.Body.Read(make([]byte, 100)); n != 0 || !errors.Is(err, errTimeout) {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if c.reusable {
		t.Error("reusable")
	}
}

var errTimeout = fmt.Errorf("i/o timeout")

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// once fails once and then is at its end.
type once struct{ err error }

func (o *once) Read([]byte) (int, error) {
	if err := o.err; err != nil {
		o.err = nil
		return 0, err
	}
	return 0, io.EOF
}

func TestKeepAlive(t *testing.T) {
	tests := map[string]time.Duration{
		"timeout=5":               4 * time.Second,
		"max=9, Timeout = \"60\"": 59 * time.Second,
		"timeout=1":               500 * time.Millisecond,
		"timeout=0":               time.Nanosecond,
		"timeout=-1":              0,
		"timeout=99999999999":     0,
		"max=5":                   0,
		"":                        0,
	}
	for value, want := range tests {
		if got := keepAlive([]byte(value)); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}
