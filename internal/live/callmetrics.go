package live

import (
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/audit"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A tool has series of its own from the first call on that its server answered
// with a result: what clients make up is never a label.
const (
	maxTools    = 50        // of one server
	maxAllTools = 500       // of all servers
	maxToolName = 128       // bytes
	maxNaming   = 256 << 10 // bytes of an answer that is looked into for isError
	otherTools  = "other"   // the label of all others
)

// serverMetrics are the series of one server, found without hashing labels.
type serverMetrics struct {
	m        *Metrics
	server   string
	inFlight [2]prometheus.Gauge // by era, see eraOf
	added    prometheus.Observer
	methods  [mcp.MethodCount]atomic.Pointer[callSeries]
	tools    atomic.Pointer[map[string]*callSeries] // by name; replaced under Metrics.mu, never changed
	outcomes [2]map[string]prometheus.Counter       // by era, see eraOf
}

// callSeries is what is measured of calls of one method, or of one tool.
type callSeries struct {
	tool                        string // the label; "" for other methods
	duration, request, response prometheus.Observer
}

// outcomes are how a call can end, as labels.
var outcomes = []string{audit.OK, audit.Error, audit.Cancelled, audit.Timeout, refusedCall}

// refusedCall is the label of what never reached its server: the reasons of
// refusals have a metric of their own.
const refusedCall = "refused"

// eras are the labels of both, in the order of serverMetrics.
var eras = [2]string{EraHandshake, EraPerRequest}

// eraOf is the place in eras.
func (s *Session) eraOf() int {
	if s.lone {
		return 1
	}
	return 0
}

// of returns the series of a server.
func (m *Metrics) of(b *Backend) *serverMetrics {
	if s := b.metrics.Load(); s != nil {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.servers[b.Name]
	if s == nil {
		s = &serverMetrics{m: m, server: b.Name, added: m.added.WithLabelValues(b.Name)}
		for i, era := range eras {
			s.inFlight[i] = m.inFlight.WithLabelValues(b.Name, era)
			s.outcomes[i] = make(map[string]prometheus.Counter)
			for _, o := range outcomes {
				s.outcomes[i][o] = m.calls.WithLabelValues(b.Name, era, o)
			}
		}
		s.tools.Store(&map[string]*callSeries{})
		m.servers[b.Name] = s
	}
	b.metrics.Store(s)
	return s
}

func (m *Metrics) series(server, method, tool string) *callSeries {
	return &callSeries{
		tool:     tool,
		duration: m.duration.WithLabelValues(server, method, tool),
		request:  m.request.WithLabelValues(server, method, tool),
		response: m.response.WithLabelValues(server, method, tool),
	}
}

func (s *serverMetrics) ofMethod(method mcp.Method) *callSeries {
	at := &s.methods[method]
	if found := at.Load(); found != nil {
		return found
	}
	tool := ""
	if method == mcp.ToolsCall {
		tool = otherTools
	}
	at.Store(s.m.series(s.server, method.String(), tool)) // of two at once either will do: they are the same series
	return at.Load()
}

// lookUp returns the series of a call, and where its tool has none the tool's
// name, if it may get some.
func (s *serverMetrics) lookUp(req *upstream.Request) (found *callSeries, name string) {
	if req.Method != mcp.ToolsCall {
		return s.ofMethod(req.Method), ""
	}
	text, _ := wire.Unquote(req.Msg.Bytes(req.Msg.P.Name))
	tools := *s.tools.Load()
	if found = tools[string(text)]; found != nil {
		return found, ""
	}
	if len(tools) < maxTools && len(text) > 0 && len(text) <= maxToolName && utf8.Valid(text) && string(text) != otherTools {
		name = string(text)
	}
	return s.ofMethod(req.Method), name
}

// name gives a tool series of its own; nil: there are too many.
func (s *serverMetrics) name(tool string) *callSeries {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	tools := *s.tools.Load()
	if found := tools[tool]; found != nil {
		return found
	}
	if len(tools) >= maxTools || s.m.named >= maxAllTools {
		return nil
	}
	s.m.named++
	more := maps.Clone(tools)
	more[tool] = s.m.series(s.server, mcp.ToolsCall.String(), tool)
	s.tools.Store(&more)
	return more[tool]
}

// measured is what is measured of one call. Guarded by Session.mu where it
// changes after the call has begun.
type measured struct {
	series *callSeries
	tool   string // to be named if its server answers; "": not to be named
	in     int    // bytes of the request
	out    int    // bytes of the answer; 0: there was none
	away   bool   // another replica has it, and counts it
}

// callGauge is the gauge of the calls in flight that the session's are part of.
func (s *Session) callGauge() prometheus.Gauge {
	return s.m.cfg.Metrics.of(s.backend).inFlight[s.eraOf()]
}

func (c *callSink) measure(req *upstream.Request) {
	c.size.series, c.size.tool = c.st.s.m.cfg.Metrics.of(c.st.s.backend).lookUp(req)
	c.size.in = len(req.Msg.Raw)
}

// answeredLocked notes the server's answer.
func (c *callSink) answeredLocked(data []byte) {
	c.failed = wire.IsErrorResponse(data)
	c.size.out = len(data)
	if c.failed || len(data) > maxNaming {
		c.size.tool = ""
	}
	if c.size.tool == "" {
		return
	}
	if flag, ok := wire.Lookup(data, "result", "isError"); ok && string(flag.Of(data)) == "true" {
		c.size.tool = "" // servers say in this way, too, that they have no such tool
	}
}

// count measures a call that is over.
func (c *callSink) count(size measured, outcome string, now time.Time) {
	s := c.st.s
	if size.away {
		return
	}
	if strings.HasPrefix(outcome, refusedCall) {
		outcome = refusedCall
	}
	of := s.m.cfg.Metrics.of(s.backend)
	of.outcomes[s.eraOf()][outcome].Inc()
	series := size.series
	if size.tool != "" && outcome == audit.OK {
		if named := of.name(size.tool); named != nil {
			series = named
		}
	}
	series.duration.Observe(now.Sub(c.started).Seconds())
	series.request.Observe(float64(size.in))
	if size.out > 0 {
		series.response.Observe(float64(size.out))
	}
}

// isAway tells whether a call was not sent because it is another replica's.
func isAway(err error) bool { return errors.As(err, new(*upstream.Elsewhere)) }
