package process

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// DropReason says why a message of a server or client was not passed on. It is
// the metric's label and stands in the log line.
type DropReason string

const (
	DropForeignID       DropReason = "foreign_id"       // a response under an id that Signalbox did not mint
	DropLateResponse    DropReason = "late_response"    // the call had ended: cancelled, timed out, answered before
	DropNoSession       DropReason = "no_session"       // the session that the id or token names is gone
	DropUnknownProgress DropReason = "unknown_progress" // a token that no open call has
	DropUnattributable  DropReason = "unattributable"   // from a shared process, and nobody can tell whose it is
	DropRefusedRequest  DropReason = "refused_request"  // a request of a shared process, answered with -32601
	DropNotSubscribed   DropReason = "not_subscribed"   // an update of a resource that no session subscribed to
	DropNoReader        DropReason = "no_reader"        // no stream to carry it and no room to keep it
	DropNothingAsked    DropReason = "nothing_asked"    // a client's response to nothing that its server asked
	DropUnknownCancel   DropReason = "unknown_cancel"   // a cancel of no open call
	DropAmbiguousCancel DropReason = "ambiguous_cancel" // several open calls under the id to cancel
	DropSharedState     DropReason = "shared_state"     // a client's notification that one session may not send to all
	DropNoProcess       DropReason = "no_process"       // a client's notification while the shared process is not up
	DropOversize        DropReason = "oversize"         // a line above the limit
	DropNoise           DropReason = "noise"            // a line that is no JSON-RPC message
)

// Metrics counts what the processes of all servers do. Register it with a
// Prometheus registry.
type Metrics struct {
	Drops   *prometheus.CounterVec // server, reason
	Starts  *prometheus.CounterVec // server
	Crashes *prometheus.CounterVec // server: exits that nobody asked for
	Bytes   *prometheus.CounterVec // server, direction: "in" to the process, "out" of it
	// Dropped is told of each message that is not passed on, by any goroutine, and
	// must not block; nil: nobody is. Set before the first server. method is at most
	// 128 bytes of what a peer wrote.
	Dropped func(server string, reason DropReason, method string)
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	return &Metrics{
		Drops:   vec("signalbox_drops_total", "Messages that were not passed on, by reason.", "server", "reason"),
		Starts:  vec("signalbox_process_starts_total", "Server processes started.", "server"),
		Crashes: vec("signalbox_process_crashes_total", "Server processes that ended unasked.", "server"),
		Bytes:   vec("signalbox_process_bytes_total", "Bytes to (in) and from (out) server processes.", "server", "direction"),
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

func (m *Metrics) all() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{m.Drops, m.Starts, m.Crashes, m.Bytes}
}

// Drop counts a message of a server that is no process.
func (m *Metrics) Drop(server string, reason DropReason, method string) {
	m.Drops.WithLabelValues(server, string(reason)).Inc()
	if m.Dropped != nil {
		m.Dropped(server, reason, method)
	}
}

// counters are the metrics of one server, looked up once.
type counters struct {
	in, out, starts, crashes prometheus.Counter
}

func (m *Metrics) of(server string) counters {
	return counters{
		in:      m.Bytes.WithLabelValues(server, "in"),
		out:     m.Bytes.WithLabelValues(server, "out"),
		starts:  m.Starts.WithLabelValues(server),
		crashes: m.Crashes.WithLabelValues(server),
	}
}

// maxNamedDrops bounds the methods that drops remembers having warned of.
const maxNamedDrops = 256

// drops counts what is not passed on, and warns once for each method.
type drops struct {
	server string
	count  *prometheus.CounterVec
	told   func(server string, reason DropReason, method string) // nil: nobody
	log    *slog.Logger

	mu     sync.Mutex
	warned map[string]bool // reason and method
}

// note counts without a word in the log.
func (d *drops) note(reason DropReason, method string) {
	d.count.WithLabelValues(d.server, string(reason)).Inc()
	if d.told != nil {
		d.told(d.server, reason, cut(method, 128))
	}
}

func (d *drops) add(reason DropReason, method string) {
	d.note(reason, method)
	key := string(reason) + " " + method
	d.mu.Lock()
	first := !d.warned[key] && len(d.warned) < maxNamedDrops
	if first {
		d.warned[key] = true
	}
	d.mu.Unlock()
	level := slog.LevelDebug
	if first {
		level = slog.LevelWarn
	}
	d.log.Log(context.Background(), level, "message not passed on", "reason", string(reason), "method", cut(method, 128))
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n] + "..."
	}
	return s
}
