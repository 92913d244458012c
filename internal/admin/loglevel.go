package admin

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
)

// LogLevel is the body of /api/v1/log-level, both ways.
type LogLevel struct {
	Level string `json:"level"` // "debug", "info", "warn" or "error"
}

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

func (a *api) logLevel(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, LogLevel{strings.ToLower(a.cfg.Level.Level().String())})
}

// setLogLevel holds until the next change, or the end of the process.
func (a *api) setLogLevel(w http.ResponseWriter, r *http.Request) {
	var asked LogLevel
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&asked)
	level, ok := levels[asked.Level]
	if err != nil || !ok {
		answer(w, http.StatusBadRequest, Failure{`the body is {"level": LEVEL}, and LEVEL is "debug", "info", "warn" or "error"`})
		return
	}
	if before := a.cfg.Level.Level(); level != before {
		a.cfg.Level.Set(level)
		a.cfg.Log.Log(r.Context(), max(level, slog.LevelWarn), "log level changed to "+asked.Level)
	}
	a.logLevel(w, r)
}
