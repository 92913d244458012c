package admin

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/live"
)

// maxSeries is more than a replica with one server and 10,000 sessions may show.
const maxSeries = 1000

// many is a rig with n sessions.
func many(t testing.TB, n int) *rig {
	metrics := live.NewMetrics()
	reg := prometheus.NewRegistry()
	reg.MustRegister(metrics)
	r := newRigOf(t, metrics, func(l *live.Limits) { l.MaxSessions = n }, func(c *Config) { c.Metrics = reg })
	for i := range n {
		r.open(fmt.Sprint("client ", i))
	}
	return r
}

func (r *rig) scrape() string {
	r.t.Helper()
	w := httptest.NewRecorder()
	req := httptest.NewRequest("GET", "/metrics", nil)
	req.Host = "127.0.0.1"
	req.Header.Set("Accept-Encoding", "gzip, zstd") // as Prometheus asks
	r.handler.ServeHTTP(w, req)
	if enc := w.Header().Get("Content-Encoding"); w.Code != 200 || enc != "" {
		r.t.Fatalf("status %d, encoding %q", w.Code, enc)
	}
	return w.Body.String()
}

// How many sessions there are makes no more series.
func TestMetricsAreBounded(t *testing.T) {
	r := many(t, 10_000)
	body := r.scrape()
	series := 0
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	if !strings.Contains(body, `signalbox_sessions{era="handshake",server="srv",transport="streamable"} 10000`) {
		t.Error("not all sessions are counted")
	}
	if series > maxSeries {
		t.Errorf("%d series, want at most %d", series, maxSeries)
	}
}

func BenchmarkMetricsOf10000Sessions(b *testing.B) {
	r := many(b, 10_000)
	b.ResetTimer()
	for b.Loop() {
		r.scrape()
	}
}
