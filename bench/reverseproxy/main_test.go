package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestProxy(t *testing.T) {
	hold := make(chan struct{})
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("body %v, header %v", err, r.Header)
		}
		w.Header().Set("Mcp-Session-Id", r.Header.Get("Mcp-Session-Id"))
		if r.URL.Path == "/events" {
			_, _ = io.WriteString(w, "data: 1\n\n")
			_ = http.NewResponseController(w).Flush()
			<-hold
		}
		_, _ = w.Write(body)
	}))
	defer behind.Close()
	to, err := url.Parse(behind.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(newProxy(to))
	defer front.Close()
	post := func(path string, body io.Reader) *http.Response {
		t.Helper()
		r, err := http.NewRequest("POST", front.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Mcp-Session-Id", "s")
		r.Header.Set("Accept-Encoding", "") // that of the client would be passed on
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != 200 || resp.Header.Get("Mcp-Session-Id") != "s" {
			t.Errorf("%s: HTTP %d, %v", path, resp.StatusCode, resp.Header)
		}
		return resp
	}

	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	for name, body := range map[string]io.Reader{
		"with a length":    bytes.NewReader(large),
		"without a length": struct{ io.Reader }{bytes.NewReader(large)},
	} {
		resp := post("/mcp", body)
		got, err := io.ReadAll(resp.Body)
		if err != nil || !bytes.Equal(got, large) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		_ = resp.Body.Close()
	}

	resp := post("/events", strings.NewReader("end"))
	first := make([]byte, len("data: 1\n\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil { // before the rest is there
		t.Error(err)
	}
	close(hold)
	if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "end" {
		t.Errorf("rest %q, %v", rest, err)
	}
	_ = resp.Body.Close()
}
