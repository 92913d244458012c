//go:build unix

package redis

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/session"
	"github.com/signalbox-mcp/signalbox/internal/session/redis/redistest"
)

// values returns what reg shows: counters and gauges, and how often histograms
// were asked, by "NAME LABEL...".
func values(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "signalbox_store_")
			for _, l := range m.GetLabel() {
				name += " " + l.GetValue()
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

func TestMetrics(t *testing.T) {
	server := redistest.Start(t)
	m := NewMetrics()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(m)
	s := open(t, server, Config{Metrics: m})
	r := newRecord()
	create(t, s, r)
	get(t, s, r.Key())
	get(t, s, r.Key())
	if _, err := s.Get(t.Context(), newRecord().Key()); !errors.Is(err, session.ErrNotFound) {
		t.Fatal(err)
	}
	no := errors.New("no")
	if _, err := s.Update(t.Context(), r.Key(), func(*session.Record) error { return no }); err != no {
		t.Fatal(err)
	}
	eventually(t, "up", func() bool { return values(t, reg)["up"] == 1 })
	want := map[string]float64{
		"duration_seconds create": 1, "duration_seconds get": 2, "duration_seconds update": 1,
		"duration_seconds registry_list": 1, // of create, the helper
		"lookups_total hit":              1, "lookups_total miss": 2, "up": 1,
	}
	if got := values(t, reg); !maps.Equal(got, want) {
		t.Errorf("metrics %v, want %v", got, want)
	}
	server.Kill()
	if err := s.Delete(t.Context(), r.Key()); !errors.Is(err, session.ErrUnavailable) {
		t.Fatal(err)
	}
	want["duration_seconds delete"], want["errors_total network delete"], want["up"] = 1, 1, 0
	eventually(t, "not up", func() bool { return values(t, reg)["up"] == 0 })
	if got := values(t, reg); !maps.Equal(got, want) {
		t.Errorf("metrics %v, want %v", got, want)
	}
}
