package trace_test

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/trace"
	"github.com/signalbox-mcp/signalbox/internal/trace/tracetest"
)

const (
	traceID = "0af7651916cd43dd8448eb211c80319c"
	caller  = "00-" + traceID + "-b7ad6b7169203331-01"
)

func newTracer(t *testing.T, endpoint string) *trace.Tracer {
	t.Helper()
	t.Cleanup(http.DefaultTransport.(*http.Transport).CloseIdleConnections)
	tr, err := trace.New(trace.Config{Endpoint: endpoint, Version: "1", Failed: func(err error) { t.Errorf("not sent: %v", err) }})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestSpansAreSent(t *testing.T) {
	r := tracetest.New(t)
	tr := newTracer(t, r.URL)
	call := tr.Start("tools/call", caller, "vendor=x")
	call.Set("signalbox.server", "srv")
	call.Set("empty", "")
	server := call.Client("server")
	wait := server.Child("wait for process")
	parent := server.Parent()
	if server.State() != "vendor=x" {
		t.Errorf("state %q", server.State())
	}
	wait.End()
	server.End()
	server.End()
	call.Fail("timeout")
	call.End()
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	spans := make(map[string]tracetest.Span)
	for _, s := range r.Spans() {
		spans[s.Name] = s
	}
	c, s, w := spans["tools/call"], spans["server"], spans["wait for process"]
	if len(r.Spans()) != 3 || c.Parent != "b7ad6b7169203331" || s.Parent != c.ID || w.Parent != s.ID || c.Trace != traceID || s.Trace != traceID || w.Trace != traceID {
		t.Errorf("spans: %+v", r.Spans())
	}
	if parent != "00-"+traceID+"-"+s.ID+"-01" {
		t.Errorf("parent %s of %s", parent, s.ID)
	}
	if !c.Failed || s.Failed || c.Kind != "SPAN_KIND_SERVER" || s.Kind != "SPAN_KIND_CLIENT" || !maps.Equal(c.Attributes, map[string]string{"signalbox.server": "srv"}) {
		t.Errorf("call %+v, server %+v", c, s)
	}
	if !r.Paths()["/v1/traces"] || !strings.Contains(r.Raw(), "signalbox") {
		t.Errorf("posted to %v", r.Paths())
	}
}

// What is no context begins a trace; what its caller does not sample is not sent.
func TestContexts(t *testing.T) {
	r := tracetest.New(t)
	tr := newTracer(t, r.URL+"/own/path")
	for _, bad := range []string{"", "x", caller + "x", "00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01", strings.Repeat("z", 1<<16)} {
		s := tr.Start("root", bad, "")
		if len(s.Parent()) != 55 || strings.Contains(s.Parent(), traceID) {
			t.Errorf("%.60q gives %s", bad, s.Parent())
		}
		s.End()
	}
	quiet := tr.Start("quiet", strings.TrimSuffix(caller, "1")+"0", "")
	if p := quiet.Client("server").Parent(); !strings.HasPrefix(p, "00-"+traceID+"-") || !strings.HasSuffix(p, "-00") {
		t.Errorf("parent %s", p)
	}
	quiet.End()
	if err := tr.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Spans() {
		if s.Name != "root" || s.Parent != "" {
			t.Errorf("%+v", s)
		}
	}
	if len(r.Spans()) != 5 || !r.Paths()["/own/path"] {
		t.Errorf("%d spans at %v", len(r.Spans()), r.Paths())
	}
}

// A collector that is away holds nobody up, and its address stands in no log.
func TestCollectorIsAway(t *testing.T) {
	var told atomic.Pointer[error]
	tr, err := trace.New(trace.Config{Endpoint: "http://127.0.0.1:1/?token=marker", Failed: func(err error) { told.Store(&err) }})
	if err != nil {
		t.Fatal(err)
	}
	tr.Start("x", "", "").End()
	err = tr.Close(t.Context())
	if p := told.Load(); p != nil {
		err = errors.Join(err, *p)
	}
	if err == nil || strings.Contains(err.Error(), "marker") {
		t.Errorf("told %v", err)
	}
	for _, bad := range []string{"collector:4318", "grpc://collector", "http://"} {
		if _, err := trace.New(trace.Config{Endpoint: bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestWanted(t *testing.T) {
	for env, want := range map[string]bool{
		"": false, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c": true, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c": true,
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_SDK_DISABLED=true": false, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c OTEL_TRACES_EXPORTER=none": false,
		"OTEL_EXPORTER_OTLP_ENDPOINT=": false,
	} {
		vars := make(map[string]string)
		for _, kv := range strings.Fields(env) {
			k, v, _ := strings.Cut(kv, "=")
			vars[k] = v
		}
		if got := trace.Wanted(func(name string) (string, bool) { v, ok := vars[name]; return v, ok }); got != want {
			t.Errorf("%s: %v", env, got)
		}
	}
}

// Without a tracer nothing is done and nothing allocated.
func TestNilCostsNothing(t *testing.T) {
	var tr *trace.Tracer
	if n := testing.AllocsPerRun(100, func() {
		s := tr.Start("tools/call", caller, "")
		s.Set("k", "v")
		c := s.Client("server")
		c.Child("wait").End()
		c.Fail("x")
		c.End()
		if s != nil || c.Parent() != "" || c.State() != "" {
			t.Error("there is a span")
		}
		s.End()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if err := tr.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
