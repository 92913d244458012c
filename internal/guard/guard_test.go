package guard

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func check(g *Guard, host string, origins ...string) (http.Header, error) {
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.Host = host
	for _, o := range origins {
		r.Header.Add("Origin", o)
	}
	w := httptest.NewRecorder()
	err := g.Check(w, r)
	return w.Header(), err
}

func TestHost(t *testing.T) {
	public, _ := url.Parse("https://Public.example:8443/team/a")
	g := New([]string{"any.example", "One.example:8080", "web.example:443"}, nil, public, slog.New(slog.DiscardHandler))
	for host, want := range map[string]bool{
		"localhost": true, "localhost:1": true, "LOCALHOST": true, "localhost.": true, "x.localhost:3": true,
		"127.0.0.1": true, "127.0.0.1:8080": true, "192.168.1.4:1": true, "[::1]": true, "[::1]:8080": true, "::1": true, "[fe80::1%25eth0]:1": true,
		"any.example": true, "any.example:1": true, "ANY.example.": true, "one.example:8080": true, "web.example": true, "web.example:443": true, "public.example": true, "public.example:8443": true,
		"": false, ":80": false, "evil.example": false, "any.example.evil": false, "xany.example": false, "one.example": false, "one.example:80": false, "web.example:80": false,
		"localhost.evil.example": false, "127.0.0.1.evil.example": false, "xlocalhost": false, "0x7f000001": false, "2130706433": false, "any.example@evil": false, "evil example": false,
	} {
		_, err := check(g, host)
		if (err == nil) != want {
			t.Errorf("%q: %v", host, err)
		}
		if r := (*Refused)(nil); err != nil && (!errors.As(err, &r) || r.What != "host" || r.Flag != "--allowed-host") {
			t.Errorf("%q: %#v", host, err)
		}
	}
}

func TestOrigin(t *testing.T) {
	public, _ := url.Parse("https://public.example:443/team/a")
	g := New(nil, []string{"https://App.example/", "http://dev.example:80", "https://odd.example:444", "vscode-webview://panel"}, public, slog.New(slog.DiscardHandler))
	for origin, want := range map[string]bool{
		"http://localhost": true, "http://localhost:6274": true, "https://localhost": true, "http://x.localhost": true, "http://127.0.0.1:3000": true, "http://[::1]:3000": true,
		"https://app.example": true, "https://APP.example:443": true, "http://dev.example": true, "http://dev.example:80": true, "https://odd.example:444": true, "https://public.example": true, "vscode-webview://panel": true,
		"": false, "null": false, "*": false, "http://app.example": false, "https://app.example:444": false, "https://odd.example": false, "https://app.example.evil": false, "https://evil.example": false,
		"http://192.168.1.4": false, "http://localhost.evil.example": false, "http://user@localhost": false, "http://localhost/path": false, "http://localhost?x": false, "ftp://localhost": false, "localhost": false, "file://": false, "http://[::1": false,
	} {
		h, err := check(g, "localhost", origin)
		if (err == nil) != want {
			t.Errorf("%q: %v", origin, err)
		}
		allow := h.Get("Access-Control-Allow-Origin")
		if want && allow != origin || !want && allow != "" {
			t.Errorf("%q: allowed %q", origin, allow)
		}
		if h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%q: %v", origin, h)
		}
	}
	if h, err := check(g, "localhost"); err != nil || len(h) != 0 {
		t.Errorf("no origin: %v, %v", h, err)
	}
	if _, err := check(g, "localhost", "http://localhost", "https://app.example"); err == nil {
		t.Error("two origins pass")
	}
}

func TestAnyOriginIsNeverNull(t *testing.T) {
	g := New(nil, []string{"*"}, nil, slog.New(slog.DiscardHandler))
	if _, err := check(g, "localhost", "https://evil.example"); err != nil {
		t.Error(err)
	}
	if _, err := check(g, "localhost", "null"); err == nil {
		t.Error("null passes")
	}
}

func TestRefusalsAreLoggedOnceEach(t *testing.T) {
	var log bytes.Buffer
	g := New(nil, nil, nil, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		_, _ = check(g, "evil.example")
		_, _ = check(g, "localhost", "https://evil.example")
	}
	if n := strings.Count(log.String(), "\n"); n != 2 || !strings.Contains(log.String(), "header=host value=evil.example") || !strings.Contains(log.String(), "--allowed-origin") {
		t.Errorf("%d lines:\n%s", n, log.String())
	}
	for i := range 10_000 {
		_, _ = check(g, fmt.Sprintf("h%d.example", i))
	}
	_, _ = check(g, strings.Repeat("x", 100_000))
	if n := strings.Count(log.String(), "\n"); n > 300 || log.Len() > 100_000 {
		t.Errorf("a client filled the log: %d lines, %d bytes", n, log.Len())
	}
}

func TestCheckHostLooksAtNothingElse(t *testing.T) {
	g := New([]string{"mcp.example.com"}, nil, nil, slog.New(slog.DiscardHandler))
	for host, allowed := range map[string]bool{"localhost:1": true, "mcp.example.com": true, "evil.example": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		r.Header.Set("Origin", "https://evil.example")
		if err := g.CheckHost(r); (err == nil) != allowed {
			t.Errorf("%s: %v", host, err)
		}
		if err := g.AnyHost().CheckHost(r); err != nil {
			t.Errorf("%s, where any host may be: %v", host, err)
		}
	}
}
