package e2e

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// TestDetachedCallGoesOn resets the connection of a call before there is any response.
// The server sees no cancel; its answer, given later, is what two clients find that
// resume from the same event.
func TestDetachedCallGoesOn(t *testing.T) {
	for _, isolation := range []string{"session", "shared"} {
		t.Run(isolation, func(t *testing.T) {
			b := box.Start(t, []string{"--isolation", isolation}, fakeServer(t)...)
			c := rawclient.New(b.URL)
			defer c.Close()
			s, err := c.Streamable(t.Context(), rawclient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			stream, err := s.Start(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hold","arguments":{"key":"k","n":9007199254740993}}}`))
			if err != nil {
				t.Fatal(err)
			}
			primed, err := stream.NextEvent()
			if err != nil || primed.ID == "" || len(primed.Data) != 0 {
				t.Fatalf("the stream begins with %+v, %v", primed, err)
			}
			c.Reset()
			call(t, s, "2", "release", `{"key":"k"}`)
			if stats := call(t, s, "3", "stats", `{}`); strings.Contains(stats, "notifications/cancelled") {
				t.Errorf("the server was told to cancel: %s", stats)
			}
			first, second := resumed(t, s, primed.ID), resumed(t, s, primed.ID)
			if first != second || !strings.Contains(first, `"n":9007199254740993`) || strings.Count(first, "\n") != 1 {
				t.Errorf("first %q\nthen %q", first, second)
			}
		})
	}
}

func call(t *testing.T, s rawclient.Session, id, tool, arguments string) string {
	t.Helper()
	m, err := s.Call(t.Context(), id, "tools/call", `{"name":"`+tool+`","arguments":`+arguments+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return string(m.Raw)
}

// resumed is a line for each event with data that a resumed stream brings to its end.
func resumed(t *testing.T, s *rawclient.Streamable, after string) string {
	t.Helper()
	stream, err := s.Listen(t.Context(), after)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var all strings.Builder
	for {
		e, err := stream.NextEvent()
		if errors.Is(err, io.EOF) {
			return all.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(e.Data) > 0 {
			all.WriteString(e.ID + " " + string(e.Data) + "\n")
		}
	}
}
