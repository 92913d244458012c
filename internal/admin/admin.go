// Package admin serves operators, on a listener of its own: metrics, and the
// state of each server.
package admin

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/signalbox-mcp/signalbox/internal/guard"
)

// Server is the state of one server.
type Server struct {
	Name      string    `json:"name"`
	Kind      string    `json:"kind"` // "stdio" or "http"
	Isolation string    `json:"isolation,omitempty"`
	State     string    `json:"state"`    // "unused", "working", or "failing": its last session did not start, or was lost
	Sessions  int       `json:"sessions"` // now, in this process
	Started   int       `json:"started"`  // sessions that it accepted
	WorkedAt  time.Time `json:"worked_at,omitzero"`
	FailedAt  time.Time `json:"failed_at,omitzero"`
	Failure   string    `json:"failure,omitempty"` // the last one
	Addresses []Address `json:"addresses,omitempty"`
}

// Address is one of an HTTP server's.
type Address struct {
	Address  string `json:"address"` // scheme://ip:port
	Down     bool   `json:"down"`
	Sessions int    `json:"sessions"`
}

// Handler serves GET /metrics from reg and GET /api/v1/servers from servers,
// after the checks of g.
func Handler(reg *prometheus.Registry, g *guard.Guard, servers func() []Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /api/v1/servers", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_ = json.NewEncoder(w).Encode(map[string]any{"servers": servers()}) // a client that is gone needs no report
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.Check(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
