package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
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
		call := echo.Parse(body)
		answer := string(call.Answer(nil))
		switch {
		case answer == "":
			w.WriteHeader(http.StatusAccepted)
		case events:
			w.Header().Set("Content-Type", "text/event-stream")
			var b strings.Builder
			for step := range call.Steps() {
				fmt.Fprintf(&b, "event: message\ndata: %s\n\n", call.Step(nil, step+1))
			}
			fmt.Fprintf(&b, "id: 1\ndata:\n\n: comment\n\ndata: %s\n\n", answer)
			_, _ = io.WriteString(w, mangle(b.String()))
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

func same(s string) string { return s }

func TestRun(t *testing.T) {
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
	e := serve(t, true, func(s string) string { return s + "\n\n" + s })
	if _, err := Run(context.Background(), plan(e, 200)); err == nil {
		t.Error("not found")
	}
}

func TestRunWithProgress(t *testing.T) {
	p := plan(serve(t, true, same), 200)
	p.Steps = echo.Steps
	if r, err := Run(context.Background(), p); err != nil || r.Rate == 0 {
		t.Errorf("rate %v, %v", r.Rate, err)
	}
}

func TestRunFindsWrongProgress(t *testing.T) {
	replace := func(old, with string) func(string) string {
		return func(s string) string { return strings.Replace(s, old, with, 1) }
	}
	second := regexp.MustCompile(`event: message\ndata: [^\n]*"progress":2,[^\n]*\n\n`)
	for name, mangle := range map[string]func(string) string{
		"none":         func(s string) string { return s[max(0, strings.Index(s, "id: 1")):] },
		"one missing":  func(s string) string { return second.ReplaceAllString(s, "") },
		"twice":        func(s string) string { return second.ReplaceAllString(s, "$0$0") },
		"out of turn":  replace(`"progress":1,`, `"progress":2,`),
		"other number": replace(`"progress":1,`, `"progress":11,`),
		"other call":   replace(`0000-3","progress":2`, `0000-4","progress":2`),
		"other token":  replace(`"progressToken":"`, `"progressToken":"x`),
		"token number": func(s string) string {
			return regexp.MustCompile(`"progressToken":"[^"]*"`).ReplaceAllString(s, `"progressToken":3`)
		},
		"behind": func(s string) string { return s + second.FindString(s) },
	} {
		p := plan(serve(t, true, mangle), 200)
		p.Sessions, p.Steps = 1, echo.Steps
		if _, err := Run(context.Background(), p); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
	p := plan(serve(t, true, func(s string) string {
		return `data: {"method":"notifications/progress","params":{"progressToken":"x","progress":1}}` + "\n\n" + s
	}), 200)
	if _, err := Run(context.Background(), p); err == nil {
		t.Error("progress that was not asked for: not found")
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

func TestProgressCalls(t *testing.T) {
	c := NewProgressCalls("steps", "nonce-s0001-", 64, 3)
	c.Next()
	request := string(c.Next())
	if !strings.HasSuffix(request, `"},"_meta":{"progressToken":"nonce-s0001-2"}},"jsonrpc":"2.0","id":2}`) || !json.Valid([]byte(request)) {
		t.Errorf("got %s", request)
	}
	if !strings.Contains(request, `{"message":"`+string(c.Payload())+`"}`) || !strings.HasPrefix(string(c.Payload()), "nonce-s0001-000000002") {
		t.Errorf("payload %s, request %s", c.Payload(), request)
	}
}
