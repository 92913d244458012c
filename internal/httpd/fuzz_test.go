package httpd

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"reflect"
	"testing"
)

// FuzzRequest: whatever a client sends, there is no panic, how it arrives makes
// no difference, and each request that a handler sees is one that
// http.ReadRequest reads at the same place: with the same method, target,
// headers and body, and the same bytes after it.
func FuzzRequest(f *testing.F) {
	for _, raw := range same {
		if len(raw) < 2000 {
			f.Add([]byte(raw), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, raw []byte, cut uint8) {
		var got, pieces recorder
		out := ours(bytes.NewReader(raw), &got)
		cutOut := ours(&slow{raw, int(cut)%7 + 1}, &pieces)
		if !reflect.DeepEqual(got.list, pieces.list) || statuses(out) != statuses(cutOut) {
			t.Fatalf("cut:\n%+v %s\nwhole:\n%+v %s", pieces.list, statuses(cutOut), got.list, statuses(out))
		}
		in := bufio.NewReader(bytes.NewReader(raw))
		for i, s := range got.list {
			if i > 0 && got.list[i-1].Method == "POST" {
				skipEmptyLines(in)
			}
			want, ok := readSeen(t, in, s)
			if !ok {
				return
			}
			if !reflect.DeepEqual(s, want) {
				t.Fatalf("seen\n%+v\nnet/http:\n%+v", s, want)
			}
		}
	})
}

func skipEmptyLines(in *bufio.Reader) {
	for range 2 {
		if b, _ := in.Peek(2); string(b) == "\r\n" {
			_, _ = in.Discard(2)
		}
	}
}

// readSeen is what net/http reads where s was seen. false: nothing behind it is
// to be compared.
func readSeen(t *testing.T, in *bufio.Reader, s seen) (seen, bool) {
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			t.Fatalf("net/http reads no request: %v\nseen %+v", err, s)
		}
		body, err := io.ReadAll(r.Body)
		if r.Method == "OPTIONS" && r.RequestURI == "*" {
			continue // which handlers do not see
		}
		if s.Broken {
			return s, false
		}
		if err != nil {
			t.Fatalf("net/http reads no body: %v\nseen %+v", err, s)
		}
		return seen{r.Method, r.RequestURI, r.Proto, r.Host, s.Remote, *r.URL, r.Header, r.ContentLength, r.TransferEncoding, s.Close, string(body), false}, !s.Close
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
