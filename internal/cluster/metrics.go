package cluster

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// Metrics counts what replicas do with each other. Register it with a
// Prometheus registry; one Metrics is for one Node.
type Metrics struct {
	forwards *prometheus.CounterVec // outcome
	refused  *prometheus.CounterVec // reason
	failures prometheus.Counter
	peers    prometheus.Gauge
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	return &Metrics{
		forwards: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_peer_forwards_total", Help: "Requests for the home replica of their session, by outcome."}, []string{"outcome"}),
		refused:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_peer_refused_total", Help: "Registrations, connections and requests that claimed to be of a peer and were refused, by reason."}, []string{"reason"}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{Name: "signalbox_peer_heartbeat_failures_total", Help: "Heartbeats that the store did not take."}),
		peers:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "signalbox_peers", Help: "Other replicas that were registered when the store was last asked."}),
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
	return []prometheus.Collector{m.forwards, m.refused, m.failures, m.peers}
}

// Reasons for a refusal at the peer listener; those of a registration are the
// texts of their errors.
const (
	refusedConnections = "connections"       // too many at once
	refusedHandshake   = "handshake"         // no TLS 1.3, gave up, or was too slow
	refusedProtocol    = "protocol"          // no HTTP/2
	refusedNoCert      = "no_certificate"    //
	refusedUnknown     = "unknown"           // no registration has the certificate
	refusedStore       = "store_unavailable" // nor was it known before the store was lost
	refusedPin         = "pin"               // who answers at a peer's address is another
	refusedHeaders     = "headers"           // the peer headers make no sense
)

// refusedClientHeaders is the reason for peer headers in the request of a
// client; see Metrics.ClientHeaders.
const refusedClientHeaders = "client_headers"

// ClientHeaders counts a request at a public listener of which StripPeerHeaders
// removed something.
func (m *Metrics) ClientHeaders() { m.refuse(refusedClientHeaders) }

func (m *Metrics) refuse(reason string) { m.refused.WithLabelValues(reason).Inc() }

func (m *Metrics) forwarded(err error) {
	outcome := "error"
	switch {
	case err == nil:
		outcome = "ok"
	case errors.Is(err, ErrGone):
		outcome = "gone"
	case errors.Is(err, session.ErrUnavailable):
		outcome = "store_unavailable"
	case errors.Is(err, ErrLoop):
		outcome = "loop"
	case errors.Is(err, ErrPeer):
		outcome = "unreachable"
	case errors.Is(err, ErrLost):
		outcome = "lost"
	case errors.Is(err, ErrClient):
		outcome = "client_gone"
	}
	m.forwards.WithLabelValues(outcome).Inc()
}
