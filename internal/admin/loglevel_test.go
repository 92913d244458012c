package admin

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func (r *rig) put(body string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest("PUT", "/api/v1/log-level", strings.NewReader(body))
	req.Host = "127.0.0.1:9090"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	r.handler.ServeHTTP(w, req)
	return w
}

func TestLogLevel(t *testing.T) {
	level, lines := new(slog.LevelVar), new(strings.Builder)
	r := newRig(t, func(c *Config) {
		c.Level, c.Log = level, slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: level}))
	})
	for _, name := range []string{"debug", "error", "warn", "info"} {
		if w := r.put(`{"level":"` + name + `"}`); w.Code != http.StatusOK || w.Body.String() != `{"level":"`+name+`"}`+"\n" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		var now LogLevel
		if r.read("/api/v1/log-level", &now); now.Level != name || level.Level() != levels[name] {
			t.Errorf("%s: it is %s, %v", name, now.Level, level.Level())
		}
		if !strings.Contains(lines.String(), "log level changed to "+name) {
			t.Errorf("%s: the log says nothing: %s", name, lines)
		}
	}
	for _, body := range []string{"", `{}`, `{"level":"loud"}`, `{"level":7}`, `"debug"`, `{"level":"debug` + strings.Repeat(" ", 2000) + `"}`} {
		if w := r.put(body); w.Code != http.StatusBadRequest || level.Level() != slog.LevelInfo {
			t.Errorf("%.20s: %d %s, the level is %v", body, w.Code, w.Body, level.Level())
		}
	}
}

// Whoever may not end a session may not change the level either.
func TestLogLevelIsProtected(t *testing.T) {
	level := new(slog.LevelVar)
	r := newRig(t, func(c *Config) { c.Level = level; c.Token = "a token of some length" })
	const shown = "Authorization: Bearer a token of some length"
	for name, headers := range map[string][]string{
		"no token":            nil,
		"another token":       {"Authorization: Bearer another"},
		"another site":        {shown, "Sec-Fetch-Site: cross-site"},
		"a page of elsewhere": {shown, "Origin: https://evil.example"},
	} {
		if w := r.put(`{"level":"debug"}`, headers...); w.Code != 401 && w.Code != 403 || level.Level() != slog.LevelInfo {
			t.Errorf("%s: %d, the level is %v", name, w.Code, level.Level())
		}
	}
	if w := r.put(`{"level":"debug"}`, shown); w.Code != 200 || level.Level() != slog.LevelDebug {
		t.Errorf("with the token: %d", w.Code)
	}
}
