package front

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/buf"
	"github.com/signalbox-mcp/signalbox/internal/cluster"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/httpd"
	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/trace"
)

// Config sets a Front up. All fields but PublicURL, Buffers, RequestRate, Trace and Timed
// are required.
type Config struct {
	Backends     []*live.Backend // to begin with; see SetBackends
	Live         *live.Manager
	MaxMessage   int64          // bytes of one body
	Keepalive    time.Duration  // between comments on a quiet stream
	WriteTimeout time.Duration  // for each write to a client
	ReadTimeout  time.Duration  // for each part of a body
	BodyBudget   int64          // bytes of all bodies that are being read
	RequestRate  int            // requests a second of one principal; 0: no limit
	Buffers      *buf.Pool      // for large bodies; nil: none are reused
	PublicURL    *url.URL       // nil: none
	Proxies      []netip.Prefix // peers whose forwarded headers are believed
	Peers        Peers          // the other replicas; nil: there are none
	Ready        func() error   // why no session may begin; nil: nothing can be in the way
	Guard        *guard.Guard
	Auth         *auth.Authenticator // nil: everybody is anonymous
	Log          *slog.Logger
	Metrics      *Metrics
	Trace        *trace.Tracer // of requests that are forwarded; nil: none
	Timed        bool          // note when requests arrive, see upstream.Request
}

// Metrics counts what the front does. Register it with a Prometheus registry.
type Metrics struct {
	refused *prometheus.CounterVec // reason
	bytes   *prometheus.CounterVec // direction: "in" from clients, "out" to them
	in, out prometheus.Counter
	Streams *prometheus.GaugeVec // server, transport, era
	gauges  sync.Map             // streamsOf → prometheus.Gauge
	// Refused is told the reason of each request that is answered with an error of
	// Signalbox itself, by any goroutine; nil: nobody is. Set before the first request.
	Refused func(reason string)
}

// NewMetrics makes the collectors. streams is the gauge of open streams.
func NewMetrics(streams *prometheus.GaugeVec) *Metrics {
	m := &Metrics{
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_refused_total", Help: "Requests answered with an error of Signalbox itself, by reason."}, []string{"reason"}),
		bytes:   prometheus.NewCounterVec(prometheus.CounterOpts{Name: "signalbox_client_bytes_total", Help: "Bytes of messages from (in) and to (out) clients."}, []string{"direction"}),
		Streams: streams,
	}
	m.in, m.out = m.bytes.WithLabelValues("in"), m.bytes.WithLabelValues("out")
	return m
}

type streamsOf struct{ server, era string }

// streams is the gauge of a server's streams, found quicker than by its labels.
func (m *Metrics) streams(server string, perRequest bool) prometheus.Gauge {
	key := streamsOf{server, live.EraHandshake}
	if perRequest {
		key.era = live.EraPerRequest
	}
	g, ok := m.gauges.Load(key)
	if !ok {
		g, _ = m.gauges.LoadOrStore(key, m.Streams.WithLabelValues(server, "streamable", key.era))
	}
	return g.(prometheus.Gauge)
}

// Describe and Collect make Metrics a prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.refused.Describe(ch)
	m.bytes.Describe(ch)
}

func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.refused.Collect(ch)
	m.bytes.Collect(ch)
}

// Front serves clients. It is an http.Handler.
type Front struct {
	cfg      Config
	backends atomic.Pointer[backends]
	prefix   string       // path of the public URL, without a slash at the end
	reading  atomic.Int64 // bytes of bodies that are being read
	rates    *rates       // nil: no limit
	limits   limitLog
}

// New makes the handler.
func New(cfg Config) *Front {
	f := &Front{cfg: cfg, rates: newRates(cfg.RequestRate)}
	f.SetBackends(cfg.Backends)
	if cfg.PublicURL != nil {
		f.prefix = strings.TrimSuffix(cfg.PublicURL.EscapedPath(), "/")
	}
	return f
}

// ServeHTTP handles one exchange. The order of checks: Host and Origin, the
// credential, the rate of requests, then what the handler of the path looks at:
// session, then body.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(unreadWait))
	}
	if f.cfg.Peers != nil && cluster.StripPeerHeaders(r.Header) {
		f.cfg.Metrics.refuse("peer_headers")
	}
	path := trimPath(r.URL.Path)
	switch path {
	case "/healthz":
		f.writeJSON(w, http.StatusOK, []byte(`{"status":"ok"}`))
		return
	case "/readyz":
		f.ready(w)
		return
	}
	if err := f.cfg.Guard.Check(w, r); err != nil {
		f.failEarly(w, r, err)
		return
	}
	if rest, ok := strings.CutPrefix(path, auth.WellKnown); ok {
		f.metadata(w, r, rest)
		return
	}
	b, what, base, err := f.route(path)
	if err != nil {
		if _, refused := f.authenticate(r, endpointMCP, ""); refused != nil {
			err = errNoPath // the names of the servers are for those who may use one
		}
		f.failEarly(w, r, err)
		return
	}
	if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" {
		f.preflight(w, r)
		return
	}
	if err := checkHeaders(r.Header); err != nil {
		f.failEarly(w, r, err)
		return
	}
	if r, err = f.authenticate(r, what, base); err != nil {
		f.failEarly(w, r, err)
		return
	}
	if err := f.pace(r); err != nil {
		f.note(r, b.Name, err)
		f.failEarly(w, r, err)
		return
	}
	f.serve(w, r, b, what, base)
}

// serve answers at an endpoint, to somebody who may be there.
func (f *Front) serve(w http.ResponseWriter, r *http.Request, b *live.Backend, what endpoint, base string) {
	switch what {
	case endpointMCP:
		f.streamable(w, r, b)
	case endpointSSE:
		f.sse(w, r, b, base)
	case endpointMessages:
		f.messages(w, r, b)
	}
}

// mayOpen tells why no session can begin now, if none can.
func (f *Front) mayOpen() error {
	if f.cfg.Ready == nil {
		return nil
	}
	return f.cfg.Ready()
}

// trimPath: a trailing slash makes no difference.
func trimPath(path string) string {
	if len(path) > 1 {
		return strings.TrimSuffix(path, "/")
	}
	return path
}

func (f *Front) ready(w http.ResponseWriter) {
	err := f.mayOpen()
	if f.cfg.Live.Draining() {
		err = live.ErrDraining
	}
	if err != nil {
		f.fail(w, nil, err)
		return
	}
	f.writeJSON(w, http.StatusOK, []byte(`{"status":"ready"}`))
}

// singles are headers that may be repeated only with one value: two parties
// that read different ones would see different requests.
var singles = []string{mcp.HeaderSession, mcp.HeaderVersion, mcp.HeaderMethod, mcp.HeaderName, "Authorization", "X-Api-Key", mcp.HeaderLastEvent}

func checkHeaders(h http.Header) error {
	for _, name := range singles {
		values := h[name]
		for _, v := range values {
			if v != values[0] {
				return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "headers", "two different values of the header %s", name)
			}
		}
	}
	if h.Get("X-Api-Key") != "" && len(h.Get("Authorization")) >= 7 && strings.EqualFold(h.Get("Authorization")[:7], "bearer ") {
		return refuse(http.StatusBadRequest, mcp.CodeInvalidRequest, "headers", "a bearer token and an X-API-Key in one request")
	}
	return nil
}

// HTTPServer is the server for clients: bounds on headers and idle connections,
// HTTP/2 with and without TLS, and no limit on how long an answer may take, for
// streams are open for hours. tls may be nil.
func (f *Front) HTTPServer(log *slog.Logger, tls *tls.Config) *httpd.Server {
	return httpd.New(httpd.Config{
		Handler: f,
		// Also the time that a new connection may be idle: clients open spare
		// ones, and lose a request if one is closed just as they use it.
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000},
		TLS:               tls,
		Log:               log,
	})
}

// preflight answers a browser's question before the real request.
func (f *Front) preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
	h.Set("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization, X-API-Key, Mcp-Session-Id, MCP-Protocol-Version, Last-Event-ID, Mcp-Method, Mcp-Name"+
		paramHeaders(r.Header.Get("Access-Control-Request-Headers")))
	h.Set("Access-Control-Max-Age", "600")
	f.writeStatus(w, http.StatusNoContent)
}

var errClientGone = errors.New("the client closed the connection")
