package live

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/session"
)

// Metrics counts sessions, streams and calls. Register it with a Prometheus
// registry.
type Metrics struct {
	sessions *prometheus.GaugeVec     // server, transport
	Streams  *prometheus.GaugeVec     // server, transport: open event streams
	inFlight prometheus.Gauge         // calls
	duration *prometheus.HistogramVec // server, method: seconds
	observe  sync.Map                 // durationOf → prometheus.Observer: found quicker than by labels
	slow     prometheus.Counter       // readers cut off
	drops    prometheus.Counter       // events not kept for a reader that is behind
	givenUp  prometheus.Counter       // streams with something that no client has had
	logged   atomic.Int64             // bytes in all event logs
	logBytes prometheus.GaugeFunc     // the same
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	m := &Metrics{
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "signalbox_sessions", Help: "Client sessions of this replica."}, []string{"server", "transport"}),
		Streams:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "signalbox_streams", Help: "Open event streams to clients."}, []string{"server", "transport"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{Name: "signalbox_calls_in_flight", Help: "Requests of clients without an answer yet."}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "signalbox_call_duration_seconds", Help: "From a request's arrival to its answer.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"server", "method"}),
		slow:    prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_slow_readers_total", Help: "Streams closed because their client read too slowly."}),
		drops:   prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_stream_drops_total", Help: "Progress and log messages dropped because their client read too slowly."}),
		givenUp: prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_answers_given_up_total", Help: "Streams without a reader whose events gave way to newer ones before a client had them all."}),
	}
	m.logBytes = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "signalbox_event_log_bytes", Help: "Messages held for streams, until they are written or for resumption."},
		func() float64 { return float64(m.logged.Load()) })
	return m
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
	return []prometheus.Collector{m.sessions, m.Streams, m.inFlight, m.duration, m.slow, m.drops, m.givenUp, m.logBytes}
}

func (m *Metrics) opened(server string, t session.Transport) {
	m.sessions.WithLabelValues(server, string(t)).Inc()
}

func (m *Metrics) closed(server string, t session.Transport) {
	m.sessions.WithLabelValues(server, string(t)).Dec()
}

// durationOf is a series of duration.
type durationOf struct {
	server string
	method mcp.Method
}

func (m *Metrics) ended(server string, method mcp.Method, started time.Time) {
	key := durationOf{server, method}
	o, ok := m.observe.Load(key)
	if !ok {
		o, _ = m.observe.LoadOrStore(key, m.duration.WithLabelValues(server, method.String()))
	}
	o.(prometheus.Observer).Observe(time.Since(started).Seconds())
}
