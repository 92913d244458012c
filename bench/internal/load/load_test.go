package load

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
)

// serve is an echo server that answers by events when asked to, through mangle.
func serve(t *testing.T, events bool, mangle func(string) string) Endpoint {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		answer := string(echo.Parse(body).Answer(nil))
		switch {
		case answer == "":
			w.WriteHeader(http.StatusAccepted)
		case events:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprintf(w, "id: 1\ndata:\n\n: comment\n\ndata: %s\n\n", mangle(answer))
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, mangle(answer))
		}
	}))
	t.Cleanup(server.Close)
	return Endpoint{Addr: server.Listener.Addr().String(), MCP: "/mcp"}
}

func plan(e Endpoint, size int) Plan {
	return Plan{Endpoint: e, Sessions: 4, Bytes: size, Measure: 100 * time.Millisecond}
}

func TestRun(t *testing.T) {
	same := func(s string) string { return s }
	for _, events := range []bool{false, true} {
		for _, size := range []int{64, 200, 64 << 10} {
			r, err := Run(context.Background(), plan(serve(t, events, same), size))
			if err != nil || r.Rate == 0 {
				t.Errorf("events %v, %d bytes: rate %v, %v", events, size, r.Rate, err)
			}
		}
	}
}

func TestRunFindsWrongAnswers(t *testing.T) {
	var last string
	for name, mangle := range map[string]func(string) string{
		"other id":      func(s string) string { return strings.Replace(s, `"id":3,`, `"id":4,`, 1) },
		"id as string":  func(s string) string { return strings.Replace(s, `"id":3,`, `"id":"3",`, 1) },
		"changed byte":  func(s string) string { return strings.Replace(s, "000000002", "000000003", 1) },
		"payload short": func(s string) string { return strings.Replace(s, "filling", "filing", 1) },
		"error":         func(s string) string { return strings.Replace(s, `"result":{"content"`, `"error":{"content"`, 1) },
		"answer before": func(s string) string { s, last = last, s; return s },
	} {
		last = `{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{}}}`
		p := plan(serve(t, false, mangle), 200)
		p.Sessions = 1
		if _, err := Run(context.Background(), p); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestRunFindsTwoAnswersInAStream(t *testing.T) {
	e := serve(t, true, func(s string) string { return s + "\n\ndata: " + s })
	if _, err := Run(context.Background(), plan(e, 200)); err == nil {
		t.Error("not found")
	}
}

func TestCalls(t *testing.T) {
	c := NewCalls("echo", "nonce-s0001-", 100, "")
	first := string(c.Next())
	second := string(c.Next())
	if first == second || len(c.Payload()) != 100 || !strings.Contains(second, `{"message":"nonce-s0001-000000002`) ||
		!strings.HasSuffix(second, `"id":2}`) {
		t.Errorf("got %s", second)
	}
	if err := c.Check(echo.Parse([]byte(second)).Answer(nil), c.Payload()); err != nil {
		t.Error(err)
	}
}
