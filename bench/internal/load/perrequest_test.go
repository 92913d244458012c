package load

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
)

// perRequestBody is what a server of the per-request era looks at.
type perRequestBody struct {
	Method string
	Params struct {
		Name string
		Meta struct {
			Version      string          `json:"io.modelcontextprotocol/protocolVersion"`
			Capabilities json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
	}
}

// checkPerRequest refuses what such a server has to refuse: headers that are not as the body.
func checkPerRequest(r *http.Request, body []byte) error {
	var b perRequestBody
	if err := json.Unmarshal(body, &b); err != nil {
		return err
	}
	h := r.Header
	switch {
	case r.Method != http.MethodPost:
		return errors.New("method " + r.Method)
	case h.Get("Mcp-Session-Id") != "":
		return errors.New("a session")
	case b.Params.Meta.Version != "2026-07-28" || h.Get("MCP-Protocol-Version") != b.Params.Meta.Version:
		return errors.New("version " + h.Get("MCP-Protocol-Version") + ", " + b.Params.Meta.Version)
	case string(b.Params.Meta.Capabilities) != "{}":
		return errors.New("capabilities " + string(b.Params.Meta.Capabilities))
	case h.Get("Mcp-Method") != b.Method || h.Get("Mcp-Name") != b.Params.Name:
		return errors.New("method " + h.Get("Mcp-Method") + ", name " + h.Get("Mcp-Name"))
	}
	return nil
}

// servePerRequest is a strict echo server of the per-request era, whose answers pass mangle.
func servePerRequest(t *testing.T, mangle func(string) string) Endpoint {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = checkPerRequest(r, body)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, mangle(string(echo.Parse(body).AnswerPerRequest(nil))))
	}))
	t.Cleanup(server.Close)
	return Endpoint{Addr: server.Listener.Addr().String(), MCP: "/mcp"}
}

func TestRunPerRequest(t *testing.T) {
	p := plan(servePerRequest(t, same), 200)
	p.Client = PerRequest
	if r, err := Run(context.Background(), p); err != nil || r.Rate == 0 {
		t.Errorf("rate %v, %v", r.Rate, err)
	}
}

func TestRunPerRequestFindsWrongAnswers(t *testing.T) {
	for name, mangle := range map[string]func(string) string{
		"other id":     func(s string) string { return strings.Replace(s, `"id":3,`, `"id":4,`, 1) },
		"changed byte": func(s string) string { return strings.Replace(s, "000000002", "000000003", 1) },
		"error": func(s string) string {
			return strings.Replace(s, `"result":{"resultType":"complete","content"`, `"error":{"content"`, 1)
		},
		"other era": func(s string) string { return strings.Replace(s, `["2026-07-28"]`, `["2025-11-25"]`, 1) },
	} {
		p := plan(servePerRequest(t, mangle), 200)
		p.Client, p.Sessions = PerRequest, 1
		if _, err := Run(context.Background(), p); err == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestPerRequestCalls(t *testing.T) {
	c := NewPerRequestCalls("nonce-s0001-", 64)
	c.Next()
	request := c.Next()
	call := echo.Parse(request)
	if !json.Valid(request) || string(call.ID) != "2" || string(call.Args) != `{"message":"`+string(c.Payload())+`"}` ||
		!strings.HasPrefix(string(c.Payload()), "nonce-s0001-000000002") {
		t.Errorf("got %s", request)
	}
}
