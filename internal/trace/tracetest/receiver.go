// Package tracetest is a collector of traces for tests.
package tracetest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is one that was received. IDs are in hex; Parent is "" for a root.
type Span struct {
	Name, Trace, ID, Parent string
	Kind                    string
	Failed                  bool
	Attributes              map[string]string
}

// Receiver takes OTLP over HTTP.
type Receiver struct {
	URL string // without a path

	mu    sync.Mutex
	spans []Span
	raw   []byte
	paths map[string]bool
}

// New starts one that lives as long as the test.
func New(t *testing.T) *Receiver {
	r := &Receiver{paths: make(map[string]bool)}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err == nil {
			err = r.take(req.URL.Path, body)
		}
		if err != nil {
			t.Errorf("not OTLP: %v", err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(s.Close)
	r.URL = s.URL
	return r
}

func (r *Receiver) take(path string, body []byte) error {
	var msg collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &msg); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paths[path] = true
	r.raw = append(r.raw, body...)
	for _, resource := range msg.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				span := Span{
					Name: s.Name, Trace: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
					Kind: s.Kind.String(), Failed: s.GetStatus().GetCode() == 2, Attributes: make(map[string]string),
				}
				for _, a := range s.Attributes {
					span.Attributes[a.Key] = a.Value.GetStringValue()
				}
				r.spans = append(r.spans, span)
			}
		}
	}
	return nil
}

// Spans are those that have come, in the order of their ends.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Span(nil), r.spans...)
}

// Raw is all that has come.
func (r *Receiver) Raw() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.raw)
}

// Paths are those that were posted to.
func (r *Receiver) Paths() map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.paths
}
