package live

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// Metrics counts sessions, streams and calls. Register it with a Prometheus
// registry.
type Metrics struct {
	sessions *prometheus.GaugeVec     // server, transport, era
	Streams  *prometheus.GaugeVec     // server, transport, era: open event streams
	inFlight *prometheus.GaugeVec     // server, era: calls
	calls    *prometheus.CounterVec   // server, era, outcome
	duration *prometheus.HistogramVec // server, method, tool: seconds
	request  *prometheus.HistogramVec // server, method, tool: bytes
	response *prometheus.HistogramVec // server, method, tool: bytes
	added    *prometheus.HistogramVec // server: seconds
	slow     prometheus.Counter       // readers cut off
	drops    prometheus.Counter       // events not kept for a reader that is behind
	givenUp  prometheus.Counter       // streams with something that no client has had
	logged   atomic.Int64             // bytes in all event logs
	logBytes prometheus.GaugeFunc     // the same

	mu      sync.Mutex
	servers map[string]*serverMetrics // by name; a server that was in a configuration stays
	named   int                       // tools of all servers that have series of their own
}

// The eras of the protocol, as labels.
const (
	EraHandshake  = "handshake"   // sessions that begin with initialize
	EraPerRequest = "per_request" // 2026-07-28: every request stands for itself
)

var (
	secondsBuckets = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	addedBuckets   = []float64{.000025, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1}
	bytesBuckets   = []float64{256, 1 << 10, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20}
)

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
		sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "signalbox_sessions", Help: "Client sessions of this replica. Requests of the per-request era have none."}, []string{"server", "transport", "era"}),
		Streams:  prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "signalbox_streams", Help: "Open event streams to clients."}, []string{"server", "transport", "era"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "signalbox_calls_in_flight", Help: "Requests of clients without an answer yet."}, []string{"server", "era"}),
		calls:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_calls_total", Help: "Requests of clients that are over, by how they ended."}, []string{"server", "era", "outcome"}),
		duration: histogram("signalbox_call_duration_seconds", "From a request's arrival to its answer.", secondsBuckets, "server", "method", "tool"),
		request:  histogram("signalbox_call_request_bytes", "Size of requests of clients.", bytesBuckets, "server", "method", "tool"),
		response: histogram("signalbox_call_response_bytes", "Size of answers to requests of clients.", bytesBuckets, "server", "method", "tool"),
		added:    histogram("signalbox_added_latency_seconds", "What Signalbox itself has added to the time of a call.", addedBuckets, "server"),
		servers:  make(map[string]*serverMetrics),
		slow:     prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_slow_readers_total", Help: "Streams closed because their client read too slowly."}),
		drops:    prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_stream_drops_total", Help: "Progress and log messages dropped because their client read too slowly."}),
		givenUp:  prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_answers_given_up_total", Help: "Streams without a reader whose events gave way to newer ones before a client had them all."}),
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
	return []prometheus.Collector{m.sessions, m.Streams, m.inFlight, m.calls, m.duration, m.request, m.response, m.added, m.slow, m.drops, m.givenUp, m.logBytes}
}

func (m *Metrics) opened(server string, t session.Transport) {
	m.sessions.WithLabelValues(server, string(t), EraHandshake).Inc()
}

func (m *Metrics) closed(server string, t session.Transport) {
	m.sessions.WithLabelValues(server, string(t), EraHandshake).Dec()
}
