package policy

import (
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// kind is what was refused. It is the metric's label, and in errors and log
// lines the word for it.
type kind string

const (
	kindTool     kind = "tool"
	kindPrompt   kind = "prompt"
	kindResource kind = "resource"
	kindTemplate kind = "template" // of resources
	kindUpdate   kind = "update"   // of a resource
	kindList     kind = "list"     // that cannot be read, or cannot be had as a task
)

// Metrics counts what the rules refused. Register it with a Prometheus registry.
type Metrics struct {
	refused *prometheus.CounterVec // server, kind
	// Refused is told what the rules refused, by any goroutine, and must not block;
	// nil: nobody is. Set before the first server. name is the beginning of what a
	// client wrote, without what may be secret in a URI.
	Refused func(server, kind, name string)
}

// NewMetrics makes the collectors.
func NewMetrics() *Metrics {
	return &Metrics{refused: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "signalbox_policy_refusals_total", Help: "Requests, lists and updates that the rules of a session refused.",
	}, []string{"server", "kind"})}
}

// Describe and Collect make Metrics a prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) { m.refused.Describe(ch) }

func (m *Metrics) Collect(ch chan<- prometheus.Metric) { m.refused.Collect(ch) }

// refusals counts those of one server, and logs the first of each name. Names
// come from clients, so how many are remembered and logged is bounded.
type refusals struct {
	server string
	count  *prometheus.CounterVec
	told   func(server, kind, name string) // nil: nobody
	log    *slog.Logger

	mu     sync.Mutex
	window time.Time
	seen   map[kind]map[string]bool // names that were logged since window, at most maxLogged of a kind
}

const (
	// maxLogged names of a kind are logged in each logWindow.
	maxLogged = 64
	logWindow = time.Hour
	// maxLogName bounds a name in a log line, in bytes.
	maxLogName = 100
)

func newRefusals(cfg *Config) *refusals {
	return &refusals{server: cfg.Name, count: cfg.Metrics.refused, told: cfg.Metrics.Refused, log: cfg.Log, seen: make(map[kind]map[string]bool)}
}

// add counts a refusal of name; nil: there is none that can be read.
func (r *refusals) add(k kind, name []byte) {
	r.count.WithLabelValues(r.server, string(k)).Inc()
	if k != kindTool && k != kindPrompt {
		name = redact(name)
	}
	said := cut(name, maxLogName)
	r.tell(k, said)
	if r.first(k, said) {
		r.log.Info("refused by the rules for this server; further ones of this name are only counted", "kind", string(k), "name", said)
	}
}

// unreadable counts a list that was withheld.
func (r *refusals) unreadable(why error) {
	r.count.WithLabelValues(r.server, string(kindList)).Inc()
	said := cut([]byte(why.Error()), maxLogName)
	r.tell(kindList, said)
	if r.first(kindList, said) {
		r.log.Warn("the server's list cannot be read, so it cannot be filtered; its client gets an error", "reason", said)
	}
}

func (r *refusals) tell(k kind, said string) {
	if r.told != nil {
		r.told(r.server, string(k), said)
	}
}

// first tells whether what is to be said of a kind has not been said for a while.
func (r *refusals) first(k kind, said string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.window) >= logWindow {
		r.window = now
		clear(r.seen)
	}
	seen := r.seen[k]
	if seen[said] || len(seen) >= maxLogged {
		return false
	}
	if seen == nil {
		seen = make(map[string]bool)
		r.seen[k] = seen
	}
	seen[said] = true
	return true
}

// redact takes out of a URI what may be a secret: its user and password, and
// all from a query or fragment on.
func redact(uri []byte) []byte {
	s, _, _ := strings.Cut(string(uri), "?")
	s, _, _ = strings.Cut(s, "#")
	if scheme, rest, ok := strings.Cut(s, "//"); ok {
		host, path, more := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			host = host[at+1:]
		}
		s = scheme + "//" + host
		if more {
			s += "/" + path
		}
	}
	return []byte(s)
}

// cut is the beginning of a name, of n bytes at most.
func cut(name []byte, n int) string {
	if len(name) <= n {
		return string(name)
	}
	for n > 0 && !utf8.RuneStart(name[n]) {
		n--
	}
	return string(name[:n]) + "..."
}
