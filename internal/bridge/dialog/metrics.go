package dialog

import "github.com/prometheus/client_golang/prometheus"

// Metrics counts what sessions of the handshake era cost at servers of the
// per-request era. Register it with a Prometheus registry.
type Metrics struct {
	Retries *prometheus.CounterVec // server, cause: "input", "state", "headers"
	Listens *prometheus.CounterVec // server: subscriptions/listen that ended by themselves
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	return &Metrics{
		Retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_bridge_retries_total",
			Help: "Requests that were sent once more for one call of a client, by what made it necessary.",
		}, []string{"server", "cause"}),
		Listens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_bridge_listens_lost_total",
			Help: "Subscriptions of sessions that the server ended or that broke; they are opened anew.",
		}, []string{"server"}),
	}
}

// Describe and Collect make Metrics a prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.Retries.Describe(ch)
	m.Listens.Describe(ch)
}

func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.Retries.Collect(ch)
	m.Listens.Collect(ch)
}

// counters are the metrics of one server, looked up once.
type counters struct{ input, state, headers, lost prometheus.Counter }

func (m *Metrics) of(server string) counters {
	return counters{
		input:   m.Retries.WithLabelValues(server, "input"),
		state:   m.Retries.WithLabelValues(server, "state"),
		headers: m.Retries.WithLabelValues(server, "headers"),
		lost:    m.Listens.WithLabelValues(server),
	}
}
