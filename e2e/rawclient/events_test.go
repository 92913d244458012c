package rawclient

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestEvents(t *testing.T) {
	const stream = ": keep-alive\n\n" +
		"id: 1\ndata:\n\n" +
		"event: endpoint\r\ndata: /messages\r\n\r\n" +
		"retry: 10\n\n" +
		"data: a\ndata:b\nid: 2\n\n" +
		"data: cut off\n"
	want := []Event{{ID: "1"}, {Name: "endpoint", ID: "1", Data: "/messages"}, {ID: "2", Data: "a\nb"}}
	for name, in := range map[string]io.Reader{
		"at once":      strings.NewReader(stream),
		"byte by byte": iotest.OneByteReader(strings.NewReader(stream)),
	} {
		t.Run(name, func(t *testing.T) {
			var got []Event
			for r := newEventReader(in); ; {
				e, err := r.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, e)
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}
