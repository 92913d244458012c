package cluster

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestBetweenEvents(t *testing.T) {
	for stream, want := range map[string]bool{
		"": true, "data: x\n\n": true, "data: x\r\n\r\n": true, "data: x\r\r": true, ": c\n\n\n": true,
		"data: x\n": false, "data: x\r\n": false, "data: x": false, "\n": false, "data: x\n\nd": false, "a\r\nb\r\n": false,
	} {
		for cut := range len(stream) + 1 { // however it is cut into reads
			var c tail
			c.add([]byte(stream[:cut]))
			c.add([]byte(stream[cut:]))
			if c.between() != want {
				t.Errorf("%q cut at %d: %v, want %v", stream, cut, !want, want)
			}
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	broken := errors.New("reset")
	for name, c := range map[string]struct {
		kind, body string
		events     bool
	}{
		"between events":      {"text/event-stream; charset=utf-8", "data: 1\n\n", true},
		"within an event":     {"text/event-stream", "data: 1\n\ndata: ", false},
		"not an event stream": {"application/json", "{}\n\n", false},
	} {
		n := &Node{writeTimeout: defaultWriteTimeout}
		w := &recorder{header: make(http.Header)}
		res := &http.Response{
			StatusCode: 200, ContentLength: -1, Header: http.Header{"Content-Type": {c.kind}},
			Body: io.NopCloser(io.MultiReader(strings.NewReader(c.body), failing{broken})),
		}
		var lost *LostError
		err := n.copyResponse(w, res)
		if !errors.As(err, &lost) || !lost.Begun || lost.Events != c.events || !errors.Is(err, broken) || w.body.String() != c.body {
			t.Errorf("%s: %#v, body %q", name, err, w.body.String())
		}
	}
	// And a client that does not take it.
	n := &Node{writeTimeout: defaultWriteTimeout}
	res := &http.Response{StatusCode: 200, ContentLength: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("x"))}
	if err := n.copyResponse(deaf{&recorder{header: make(http.Header)}}, res); !errors.Is(err, ErrClient) {
		t.Errorf("a deaf client: %v", err)
	}
}

// deaf is a client that takes nothing.
type deaf struct{ *recorder }

func (deaf) Write([]byte) (int, error) { return 0, errors.New("timeout") }
