// Package admin serves operators, on a listener of its own: metrics, an API
// that tells what this process does and has done, and a page that shows it.
//
//	gate.ServeHTTP      Host, the credential, then where a browser has it from
//	  GET    /metrics
//	  GET    /status                       the page; it asks for what follows
//	  GET    /api/v1/servers               see ServerList
//	  GET    /api/v1/sessions              see SessionList
//	  GET    /api/v1/sessions/HASH         see SessionDetail
//	  DELETE /api/v1/sessions/HASH         and POST .../end: 204
//	  GET    /api/v1/replicas              see ReplicaList
//	  GET    /api/v1/series                see Series
//	  GET    /api/v1/refusals              see RefusalList
//	  GET    /api/v1/log-level             see LogLevel; PUT changes it
//
// Nothing here holds a session id, a secret or the contents of a message.
package admin

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/observe"
)

// Config sets the handler up. All fields but Token and Replicas are
// required.
type Config struct {
	Metrics  *prometheus.Registry
	Guard    *guard.Guard // its Host check
	Token    string       // that each request must show; "": none needs to
	Servers  func() []Server
	Live     *live.Manager
	Recorder *observe.Recorder
	// Replicas tells who shares the store, this process included. With an error
	// they are those known from before. nil: the process is alone.
	Replicas func(context.Context) ([]Replica, error)
	Version  string
	Log      *slog.Logger
	Level    *slog.LevelVar // of the log
}

// Handler serves operators.
func Handler(cfg Config) http.Handler {
	a := &api{cfg: cfg}
	page := newPage()
	mux := http.NewServeMux()
	// Not compressed: a compressor takes a megabyte for each reading, more than the page has.
	mux.Handle("GET /metrics", promhttp.HandlerFor(cfg.Metrics, promhttp.HandlerOpts{DisableCompression: true}))
	mux.Handle("GET /{$}", http.RedirectHandler("/status", http.StatusFound))
	mux.Handle("GET /status", page)
	mux.Handle("GET /status/{$}", page)
	mux.HandleFunc("GET /api/v1/servers", a.servers)
	mux.HandleFunc("GET /api/v1/sessions", a.sessions)
	mux.HandleFunc("GET /api/v1/sessions/{hash}", a.session)
	mux.HandleFunc("DELETE /api/v1/sessions/{hash}", a.end)
	mux.HandleFunc("POST /api/v1/sessions/{hash}/end", a.end)
	mux.HandleFunc("GET /api/v1/replicas", a.replicas)
	mux.HandleFunc("GET /api/v1/series", a.series)
	mux.HandleFunc("GET /api/v1/refusals", a.refusals)
	mux.HandleFunc("GET /api/v1/log-level", a.logLevel)
	mux.HandleFunc("PUT /api/v1/log-level", a.setLogLevel)
	return newGate(cfg.Guard, cfg.Token, mux)
}
