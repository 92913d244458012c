package e2e

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/e2e/box"
	"github.com/signalbox-mcp/signalbox/e2e/rawclient"
)

// TestEraMixed sends messages of both eras on one TCP connection, in every order.
func TestEraMixed(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(era+" "+transport, func(t *testing.T) {
				b, name := startRandomNames(t, era, transport)
				orders := permutations([]string{"session call", "discover", "call that asks", "call with the session's headers"})
				for _, order := range orders {
					mixOnOneConnection(t, b, name, order)
					if t.Failed() {
						t.Fatalf("in the order %q", order)
					}
				}
				b.EventuallyMetric(t, box.MetricSessions, 0)
			})
		}
	}
}

func permutations(items []string) (all [][]string) {
	if len(items) <= 1 {
		return [][]string{items}
	}
	for i := range items {
		rest := append(append([]string{}, items[:i]...), items[i+1:]...)
		for _, order := range permutations(rest) {
			all = append(all, append([]string{items[i]}, order...))
		}
	}
	return all
}

// mixOnOneConnection opens a session, does the steps, and ends the session.
func mixOnOneConnection(t *testing.T, b *box.Box, name string, order []string) {
	t.Helper()
	connections := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			connections++
		}
	}})
	ada := newAsker(t, "ada", "")
	endpoint := b.URL + "/mcp"
	session, err := ada.c.StreamableAt(ctx, endpoint, rawclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := func(reply rawclient.Reply, err error, plan string) {
		t.Helper()
		var text string
		if err == nil {
			text, err = resultText(reply)
		}
		if err != nil {
			t.Error(err)
			return
		}
		checkPlanned(t, text, "ada", name, "t", plan)
	}
	for _, step := range order {
		switch step {
		case "session call":
			m, err := session.Call(ctx, "1", "tools/call", toolParams(name, "t", ""))
			text(rawclient.Reply{Response: m}, err, "")
		case "discover":
			reply, err := ada.post(ctx, endpoint, "server/discover", "{}")
			if err != nil || !strings.Contains(reply.Body, perRequest) || reply.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("discover: %v, %v", reply, err)
			}
		case "call that asks":
			in, err := ada.park(ctx, endpoint, toolParams(name, "t", "elicitation"))
			if err != nil {
				t.Error(err)
				continue
			}
			reply, err := ada.retry(ctx, endpoint, toolParams(name, "t", "elicitation"), in)
			text(reply, err, "elicitation")
		case "call with the session's headers":
			m := ada.at(endpoint)
			m.Header = http.Header{"Mcp-Session-Id": {session.ID}, "Last-Event-Id": {"1.2.3"}}
			reply, err := m.Call(ctx, "1", "tools/call", toolParams(name, "t", ""))
			text(reply, err, "")
		}
	}
	if err := session.Close(ctx); err != nil {
		t.Error(err)
	}
	if connections != 1 {
		t.Errorf("%d connections were made, want one", connections)
	}
}

// TestEraDisconnect has a client leave in the middle of a call. In the per-request era
// that is a cancel, and the server is told, of whichever era it is.
func TestEraDisconnect(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		for _, transport := range []string{"stdio", "http"} {
			t.Run(era+" "+transport, func(t *testing.T) {
				barrier := newBarrier(t)
				b, name := startRandomNames(t, era, transport, "-barrier", barrier.addr)
				ada := newAsker(t, "ada", "")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan error, 1)
				go func() {
					reply, err := ada.post(ctx, b.URL+"/mcp", "tools/call", toolParams(name, "t", "barrier"))
					ended <- notAnswered(reply, err)
				}()
				call := barrier.awaitOr(t, "t", ended)
				cancel()
				call.awaitGone(t)
				if err := receive(t, ended); !errors.Is(err, context.Canceled) {
					t.Errorf("the cancelled call ended with %v", err)
				}
				b.EventuallyMetric(t, box.MetricCallsInFlight, 0)
			})
		}
	}
}

// TestEraLeaveAndResume has a client of the handshake era leave in the middle of a call
// to a server of the per-request era: the call goes on, and its result can be fetched.
func TestEraLeaveAndResume(t *testing.T) {
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			barrier := newBarrier(t)
			b, name := startRandomNames(t, "modern", transport, "-barrier", barrier.addr)
			c := rawclient.New(b.URL)
			defer c.Close()
			s, err := c.Streamable(t.Context(), rawclient.Options{})
			if err != nil {
				t.Fatal(err)
			}
			body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + toolParams(name, "t", "barrier") + `}`
			stream, err := s.Start(t.Context(), []byte(body))
			if err != nil {
				t.Fatal(err)
			}
			call := barrier.await(t, "t")
			first, err := stream.NextEvent() // an id to resume from, and nothing else
			if err != nil || first.ID == "" {
				t.Fatalf("the first event is %+v, %v", first, err)
			}
			stream.Close()
			call.release(t)
			again, err := s.Listen(t.Context(), first.ID)
			if err != nil {
				t.Fatal(err)
			}
			defer again.Close()
			m, err := again.Next()
			if err != nil {
				t.Fatal(err)
			}
			text, err := resultText(rawclient.Reply{Response: m})
			if err != nil {
				t.Fatal(err)
			}
			checkPlanned(t, text, "nobody", name, "t", "barrier")
			if m, err := again.Next(); err != io.EOF {
				t.Errorf("after the result came %s, %v", m.Raw, err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
