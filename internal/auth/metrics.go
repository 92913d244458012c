package auth

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts refused credentials and what is asked of issuers. Register it
// with a Prometheus registry.
type Metrics struct {
	failures  *prometheus.CounterVec // reason
	refreshes *prometheus.CounterVec // issuer, result: "ok" or "failed"
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	return &Metrics{
		failures:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_auth_failures_total", Help: "Requests refused for want of a valid credential or of a scope, by reason."}, []string{"reason"}),
		refreshes: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_auth_key_fetches_total", Help: "Times that the keys of an issuer were fetched."}, []string{"issuer", "result"}),
	}
}

// Describe and Collect make Metrics a prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.failures.Describe(ch)
	m.refreshes.Describe(ch)
}

func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.failures.Collect(ch)
	m.refreshes.Collect(ch)
}
