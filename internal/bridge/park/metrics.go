package park

import "github.com/prometheus/client_golang/prometheus"

// outcome of a question of the server. It is the metric's label.
type outcome string

const (
	asked     outcome = "asked"     // put to a client
	answered  outcome = "answered"  // by the client
	refused   outcome = "refused"   // by Signalbox: not declared by the client, or too many calls are parked
	expired   outcome = "expired"   // the client did not come back
	abandoned outcome = "abandoned" // the call ended first
	withdrawn outcome = "withdrawn" // by the server
	unrelated outcome = "unrelated" // to no call; answered by Signalbox
)

// Metrics counts what the bridges of all servers do. Register it with a
// Prometheus registry.
type Metrics struct {
	Parked    *prometheus.GaugeVec   // server
	Questions *prometheus.CounterVec // server, outcome
	Sessions  *prometheus.GaugeVec   // server
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	return &Metrics{
		Parked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "signalbox_parked_calls", Help: "Calls that wait for their client to come back with answers."}, []string{"server"}),
		Questions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "signalbox_questions_total", Help: "Requests of handshake-era servers for clients of the per-request era, by what became of them."}, []string{"server", "outcome"}),
		Sessions: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "signalbox_hidden_sessions", Help: "Sessions at handshake-era servers for clients of the per-request era."}, []string{"server"}),
	}
}

// Describe and Collect make Metrics a prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.Parked.Describe(ch)
	m.Questions.Describe(ch)
	m.Sessions.Describe(ch)
}

func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.Parked.Collect(ch)
	m.Questions.Collect(ch)
	m.Sessions.Collect(ch)
}

// counters are the metrics of one server.
type counters struct {
	parked, sessions prometheus.Gauge
	byOutcome        *prometheus.CounterVec
}

func (m *Metrics) of(server string) counters {
	return counters{
		parked:    m.Parked.WithLabelValues(server),
		sessions:  m.Sessions.WithLabelValues(server),
		byOutcome: m.Questions.MustCurryWith(prometheus.Labels{"server": server}),
	}
}

func (c *counters) questions(o outcome, n int) {
	if n > 0 {
		c.byOutcome.WithLabelValues(string(o)).Add(float64(n))
	}
}
