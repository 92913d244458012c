package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const initialize = `{"method":"initialize","params":{"protocolVersion":"2025-11-25"},"jsonrpc":"2.0","id":0}`

func TestServe(t *testing.T) {
	server := httptest.NewServer(newHandler())
	defer server.Close()
	do := func(method, session, body string) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequest(method, server.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if session != "" {
			r.Header.Set(sessionHeader, session)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}
	resp, _ := do("POST", "", initialize)
	session := resp.Header.Get(sessionHeader)
	if resp.StatusCode != 200 || session == "" {
		t.Fatalf("initialize: HTTP %d, session %q", resp.StatusCode, session)
	}

	ping := `{"method":"ping","jsonrpc":"2.0","id":1}`
	steps := `{"method":"tools/call","params":{"name":"steps","arguments":{"message":"m"},"_meta":{"progressToken":"p"}},"jsonrpc":"2.0","id":2}`
	event := func(data string) string { return "event: message\ndata: " + data + "\n\n" }
	progress := func(n string) string {
		return event(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":` + n + `,"total":3}}`)
	}
	for _, tc := range []struct {
		name, method, session, body string
		status                      int
		media, want                 string
	}{
		{"call", "POST", session, ping, 200, "application/json", `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"call with progress", "POST", session, steps, 200, "text/event-stream", progress("1") + progress("2") + progress("3") +
			event(`{"jsonrpc":"2.0","id":2,"result":{"content":[],"structuredContent":{"message":"m"}}}`)},
		{"notification", "POST", session, `{"method":"notifications/initialized","jsonrpc":"2.0"}`, 202, "", ""},
		{"no session", "POST", "", ping, 400, "text/plain; charset=utf-8", "no Mcp-Session-Id\n"},
		{"other session", "POST", session + "x", ping, 404, "text/plain; charset=utf-8", "no such session\n"},
		{"stream", "GET", session, "", 405, "", ""},
		{"end", "DELETE", session, "", 204, "", ""},
		{"ended", "POST", session, ping, 404, "text/plain; charset=utf-8", "no such session\n"},
	} {
		resp, got := do(tc.method, tc.session, tc.body)
		if resp.StatusCode != tc.status || resp.Header.Get("Content-Type") != tc.media || got != tc.want {
			t.Errorf("%s: HTTP %d, %q, %s", tc.name, resp.StatusCode, resp.Header.Get("Content-Type"), got)
		}
	}
}
