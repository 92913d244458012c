package httpd

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// same are requests of which handlers see the same here and with net/http, or
// which both refuse with the same status.
var same = map[string]string{
	"simple":              get,
	"two":                 get + "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab" + get,
	"lower case":          "GET / HTTP/1.1\r\nhost: h\r\nmcp-session-id: A\r\nx-API-key:\tk \r\n\r\n",
	"same header":         "GET / HTTP/1.1\r\nHost: h\r\nAccept: a\r\naccept: b\r\nACCEPT: c\r\n\r\n",
	"empty value":         "GET / HTTP/1.1\r\nHost: h\r\nX:\r\nY: \t \r\n\r\n",
	"high bytes":          "GET /\xc3\xa4?\xff HTTP/1.1\r\nHost: h\r\nX: \xc3\xa4\r\n\r\n",
	"odd name":            "GET / HTTP/1.1\r\nHost: h\r\n!#$%&'*+-.^_`|~a-b: 1\r\n\r\n",
	"query":               "GET /a/b?x=1&y=%20#z HTTP/1.1\r\nHost: h\r\n\r\n",
	"empty query":         "GET /a? HTTP/1.1\r\nHost: h\r\n\r\n",
	"escapes":             "GET /a%2Fb/%7e/c%20d HTTP/1.1\r\nHost: h\r\n\r\n",
	"bad escape":          "GET /a%zz HTTP/1.1\r\nHost: h\r\n\r\n",
	"double slash":        "GET //a//b HTTP/1.1\r\nHost: h\r\n\r\n",
	"sub-delims":          "GET /a!$&'()*+,;=:@b HTTP/1.1\r\nHost: h\r\n\r\n",
	"absolute":            "GET http://other:81/p?q HTTP/1.1\r\nHost: h\r\n\r\n",
	"absolute, no host":   "GET http://other:81/p?q HTTP/1.1\r\n\r\n",
	"relative":            "GET a/b HTTP/1.1\r\nHost: h\r\n\r\n",
	"asterisk":            "GET * HTTP/1.1\r\nHost: h\r\n\r\n",
	"options asterisk":    "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n",
	"options, body":       "OPTIONS * HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" + get,
	"connect":             "CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n",
	"connect, no host":    "CONNECT h:443 HTTP/1.1\r\n\r\n",
	"connect path":        "CONNECT /rpc HTTP/1.1\r\nHost: h\r\n\r\n",
	"own method":          "M-SEARCH / HTTP/1.1\r\nHost: h\r\n\r\n",
	"bad method":          "G(T / HTTP/1.1\r\nHost: h\r\n\r\n",
	"no method":           " / HTTP/1.1\r\nHost: h\r\n\r\n",
	"no target":           "GET  HTTP/1.1\r\nHost: h\r\n\r\n",
	"two spaces":          "GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
	"space in target":     "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n",
	"DEL in target":       "GET /\x7f HTTP/1.1\r\nHost: h\r\n\r\n",
	"NUL in target":       "GET /\x00 HTTP/1.1\r\nHost: h\r\n\r\n",
	"tab in target":       "GET /\ta HTTP/1.1\r\nHost: h\r\n\r\n",
	"no version":          "GET /\r\nHost: h\r\n\r\n",
	"bad version":         "GET / HTTP/1.x\r\nHost: h\r\n\r\n",
	"lower version":       "GET / http/1.1\r\nHost: h\r\n\r\n",
	"version 1.2":         "GET / HTTP/1.2\r\nHost: h\r\n\r\n",
	"version 2":           "GET / HTTP/2.0\r\nHost: h\r\n\r\n",
	"version 0.9":         "GET / HTTP/0.9\r\nHost: h\r\n\r\n",
	"no host":             "GET / HTTP/1.1\r\n\r\n",
	"empty host":          "GET / HTTP/1.1\r\nHost:\r\n\r\n",
	"two hosts":           "GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
	"bad host":            "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
	"bad host 2":          "GET / HTTP/1.1\r\nHost: h/../\r\n\r\n",
	"host list":           "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n",
	"1.0":                 "GET / HTTP/1.0\r\n\r\n" + get,
	"1.0 keep-alive":      "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get,
	"close":               "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n" + get,
	"close in list":       "GET / HTTP/1.1\r\nHost: h\r\nConnection: x, Close\r\nConnection: y\r\n\r\n" + get,
	"close, second":       "GET / HTTP/1.1\r\nHost: h\r\nConnection: y\r\nConnection: close\r\n\r\n" + get,
	"pragma":              "GET / HTTP/1.1\r\nHost: h\r\nPragma: no-cache\r\n\r\n",
	"pragma 2":            "GET / HTTP/1.1\r\nHost: h\r\nPragma: no-cache\r\nCache-Control: x\r\n\r\n",
	"line after POST":     "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\na\r\n\r\n" + get,
	"line first":          "\r\n" + get,
	"space before colon":  "GET / HTTP/1.1\r\nHost: h\r\nX : 1\r\n\r\n",
	"space before name":   "GET / HTTP/1.1\r\n X: 1\r\nHost: h\r\n\r\n",
	"no colon":            "GET / HTTP/1.1\r\nHost: h\r\nX\r\n\r\n",
	"no name":             "GET / HTTP/1.1\r\nHost: h\r\n: 1\r\n\r\n",
	"bad name":            "GET / HTTP/1.1\r\nHost: h\r\nX(: 1\r\n\r\n",
	"high name":           "GET / HTTP/1.1\r\nHost: h\r\nX\xc3\xa4: 1\r\n\r\n",
	"NUL in value":        "GET / HTTP/1.1\r\nHost: h\r\nX: \x00\r\n\r\n",
	"DEL in value":        "GET / HTTP/1.1\r\nHost: h\r\nX: a\x7f\r\n\r\n",
	"length":              "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
	"length of GET":       "GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello",
	"length 0":            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n" + get,
	"length 005":          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 005\r\n\r\nhello",
	"short body":          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhell",
	"length -1":           "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
	"length +5":           "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +5\r\n\r\nhello",
	"length empty":        "POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n",
	"length 5, 5":         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5, 5\r\n\r\nhello",
	"length hex":          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x5\r\n\r\nhello",
	"length huge":         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551617\r\n\r\nh",
	"two lengths":         "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
	"no length":           "POST / HTTP/1.1\r\nHost: h\r\n\r\n" + get,
	"chunked":             chunkedHead + "5\r\nhello\r\n0\r\n\r\n" + get,
	"chunks":              chunkedHead + "5\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n" + get,
	"chunk case":          strings.Replace(chunkedHead, "chunked", "ChunkeD", 1) + "a\r\n0123456789\r\n000\r\n\r\n" + get,
	"extensions":          chunkedHead + "5;a=b;c=\"d\"\r\nhello\r\n0;x\r\n\r\n" + get,
	"padded size":         chunkedHead + "5 \t\r\nhello\r\n0\r\n\r\n" + get,
	"space before ext":    chunkedHead + "5 ;x\r\nhello\r\n0\r\n\r\n" + get,
	"trailers":            chunkedHead + "5\r\nhello\r\n0\r\nX: 1\r\nY:\r\n\r\n" + get,
	"trailer declared":    strings.Replace(chunkedHead, "\r\n\r\n", "\r\nTrailer: X\r\n\r\n", 1) + "0\r\nX: 1\r\n\r\n" + get,
	"trailer of framing":  strings.Replace(chunkedHead, "\r\n\r\n", "\r\nTrailer: X, Content-Length\r\n\r\n", 1) + "0\r\n\r\n" + get,
	"trailer, no chunks":  "POST / HTTP/1.1\r\nHost: h\r\nTrailer: X\r\n\r\n" + get,
	"bad trailer":         chunkedHead + "0\r\nX\r\n\r\n" + get,
	"chunk too long":      chunkedHead + "5\r\nhello!\r\n0\r\n\r\n" + get,
	"chunk cut":           chunkedHead + "5\r\nhel",
	"no last chunk":       chunkedHead + "5\r\nhello\r\n",
	"no last line":        chunkedHead + "5\r\nhello\r\n0\r\n",
	"chunk size empty":    chunkedHead + "\r\nhello\r\n0\r\n\r\n",
	"chunk size bad":      chunkedHead + "5g\r\nhello\r\n0\r\n\r\n",
	"chunk size 0x":       chunkedHead + "0x5\r\nhello\r\n0\r\n\r\n",
	"chunk size -":        chunkedHead + "-5\r\nhello\r\n0\r\n\r\n",
	"chunk size huge":     chunkedHead + "10000000000000005\r\nhello\r\n0\r\n\r\n",
	"chunk LF":            chunkedHead + "5\nhello\r\n0\r\n\r\n",
	"chunk end LF":        chunkedHead + "5\r\nhello\n0\r\n\r\n",
	"chunk CR":            chunkedHead + "5\rx\r\nhello\r\n0\r\n\r\n",
	"framing":             chunkedHead + strings.Repeat("1;"+strings.Repeat("x", 500)+"\r\na\r\n", 100) + "0\r\n\r\n",
	"other coding":        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
	"two codings":         "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	"two coding lines":    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"chunked twice":       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"identity":            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n",
	"chunked, Kelvin":     "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chun\xe2\x84\xaaed\r\n\r\n",
	"coding, empty":       "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n\r\n",
	"coding, vtab":        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
	"expect":              "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab" + get,
	"expect, nothing":     "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n" + get,
	"expect, 1.0":         "POST / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
	"expect case":         "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-CONTINUE\r\nContent-Length: 2\r\n\r\nab",
	"expect empty":        "GET / HTTP/1.1\r\nHost: h\r\nExpect:\r\n\r\n",
	"expect other":        "GET / HTTP/1.1\r\nHost: h\r\nExpect: a miracle\r\n\r\n",
	"upgrade":             "GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
	"cut in head":         "GET / HTTP/1.1\r\nHost: h\r\n",
	"nothing":             "",
	"cut in line":         "GET / HT",
	"many headers":        "GET / HTTP/1.1\r\nHost: h\r\n" + numbered(300) + "\r\n",
	"long head":           "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 60<<10) + "\r\n\r\n" + get,
	"too long head":       "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 70<<10) + "\r\n\r\n",
	"too long, no end":    "GET / HTTP/1.1\r\nHost: h\r\nX: " + strings.Repeat("x", 70<<10),
	"large body":          "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 300000\r\n\r\n" + strings.Repeat("x", 300000) + get,
	"large chunked body":  chunkedHead + strings.Repeat("1000\r\n"+strings.Repeat("x", 4096)+"\r\n", 40) + "0\r\n\r\n" + get,
	"preface, other path": "PRI /x HTTP/2.0\r\n\r\nSM\r\n\r\n",
}

const chunkedHead = "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "X-%d: %d\r\n", i, i)
	}
	return b.String()
}

func TestRequestsAreSeenAsByNetHTTP(t *testing.T) {
	for name, raw := range same {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var want recorder
			wantOut := theirs(strings.NewReader(raw), &want)
			for how, reader := range reads {
				var got recorder
				out := ours(reader(strings.NewReader(raw)), &got)
				if !reflect.DeepEqual(got.list, want.list) {
					t.Errorf("%s: seen\n%+v\nnet/http:\n%+v", how, got.list, want.list)
				}
				if a, b := statuses(out), statuses(wantOut); a != b {
					t.Errorf("%s: statuses %s, net/http: %s", how, a, b)
				}
			}
		})
	}
}

// statuses of the answers.
func statuses(out []byte) string {
	var list []int
	for _, a := range answers(out, "GET") {
		list = append(list, a.Status)
	}
	return fmt.Sprint(list)
}

// TestStricterThanNetHTTP has what net/http takes and this package does not.
func TestStricterThanNetHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		raw    string
		status string
	}{
		"both framings":       {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + get, "[400]"},
		"both, other order":   {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n" + get, "[400]"},
		"two same lengths":    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello" + get, "[400]"},
		"length of 19 digits": {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0000000000000000005\r\n\r\nhello", "[400]"},
		"chunked in 1.0":      {"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n", "[400]"},
		"folded header":       {"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\n b\r\n\r\n", "[400]"},
		"folded coding":       {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "[400]"},
		"line ends with LF":   {"GET / HTTP/1.1\nHost: h\n\n", "[400]"},
		"head ends with LF":   {"GET / HTTP/1.1\r\nHost: h\r\n\n", "[400]"},
		"header with LF":      {"GET / HTTP/1.1\r\nHost: h\r\nX: a\nY: b\r\n\r\n", "[400]"},
		"too many headers":    {"GET / HTTP/1.1\r\nHost: h\r\n" + numbered(maxFields) + "\r\n", "[431]"},
		"control in ext":      {chunkedHead + "5;\x01\r\nhello\r\n0\r\n\r\n" + get, "[200]"},
	} {
		t.Run(name, func(t *testing.T) {
			var got, want recorder
			if theirs(strings.NewReader(c.raw), &want); len(want.list) == 0 || want.list[0].Broken {
				t.Error("net/http refuses it, too")
			}
			out := ours(strings.NewReader(c.raw), &got)
			if s := statuses(out); s != c.status {
				t.Errorf("statuses %s, want %s", s, c.status)
			}
			if n := len(got.list); n > 1 || n == 1 && !got.list[0].Broken {
				t.Errorf("seen: %+v", got.list)
			}
			if !strings.Contains(string(out), "\r\nConnection: close\r\n") {
				t.Errorf("the connection stays: %q", out)
			}
		})
	}
}

// net/http keeps a connection of HTTP/1.0 whose client says both.
func TestCloseWinsOverKeepAlive(t *testing.T) {
	var got recorder
	out := ours(strings.NewReader("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"+get), &got)
	if s := statuses(out); s != "[200]" {
		t.Error(s)
	}
}

// TestBareCR: net/http refuses it as well, whatever is around it.
func TestBareCR(t *testing.T) {
	for i, raw := range []string{
		"GET /\r HTTP/1.1\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\r\nHost: h\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX: a\rb\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX: a\r\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\nX\r: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: h\r\n\r\r\n\r\n",
	} {
		var got recorder
		if s := statuses(ours(strings.NewReader(raw), &got)); s != "[400]" || len(got.list) != 0 {
			t.Errorf("%d: %s, seen %v", i, s, got.list)
		}
	}
}
