package redis

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// The labels of operations.
const (
	opCreate         = "create"
	opGet            = "get"
	opUpdate         = "update"
	opTouch          = "touch"
	opDelete         = "delete"
	opRegistryPut    = "registry_put"
	opRegistryGet    = "registry_get"
	opRegistryList   = "registry_list"
	opRegistryLeft   = "registry_left"
	opRegistryRemove = "registry_remove"
)

// The labels of lookups.
const (
	resultHit  = "hit"
	resultMiss = "miss"
)

// Metrics counts what the Store does. Register it with a Prometheus registry.
type Metrics struct {
	duration *prometheus.HistogramVec // operation: seconds, of those that asked Redis
	errors   *prometheus.CounterVec   // operation, kind
	lookups  *prometheus.CounterVec   // result: Gets with and without a copy here
	up       prometheus.Gauge
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	return &Metrics{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "signalbox_store_duration_seconds", Help: "Calls of the session store that asked it, by operation.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}, []string{"operation"}),
		errors:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_store_errors_total", Help: "Calls of the session store that failed, by operation and kind."}, []string{"operation", "kind"}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_store_lookups_total", Help: "Session lookups: hit is one answered from memory, miss one that asked the store."}, []string{"result"}),
		up:      prometheus.NewGauge(prometheus.GaugeOpts{Name: "signalbox_store_up", Help: "1 while the session store answers."}),
	}
}

// Describe and Collect make Metrics a prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, c := range m.all() {
		c.Describe(ch)
	}
}

func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, c := range m.all() {
		c.Collect(ch)
	}
}

func (m *Metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.duration, m.errors, m.lookups, m.up}
}

func (m *Metrics) ended(op string, started time.Time, err error) {
	m.duration.WithLabelValues(op).Observe(time.Since(started).Seconds())
	if k := kindOf(err); k != kindNone {
		m.errors.WithLabelValues(op, string(k)).Inc()
	}
}
