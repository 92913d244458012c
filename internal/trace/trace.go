// Package trace tells an OpenTelemetry collector how long calls take, and where:
//
//	tools/call                  one span for each call of a client
//	  server                    until its answer; its id is what the server gets
//	    start process           a process of one session is being started
//	    wait for process        until the process takes calls
//	  forward                   to the replica that has the session, whose own
//	                            span of the call is a child of this one
//
// The context of a caller comes from the header traceparent, or from
// params._meta.traceparent (SEP-414), and is passed on in both: a process has no
// headers. A nil Tracer and a nil Span do nothing and cost nothing. No span has
// arguments, results, session ids or secrets.
package trace

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	oteltrace "go.opentelemetry.io/otel/trace"
)

// The headers of the W3C Trace Context, as net/http writes them.
const (
	HeaderParent = "Traceparent"
	HeaderState  = "Tracestate"
)

// Config sets a Tracer up.
type Config struct {
	// Endpoint is the URL of a collector that takes OTLP over HTTP; without a path
	// /v1/traces is meant. "": what OTEL_EXPORTER_OTLP_ENDPOINT and its kin say.
	Endpoint string
	Version  string
	Failed   func(error) // told when spans cannot be sent, by any goroutine; required
}

// Tracer makes spans. All methods of it and of Span may be called on nil.
type Tracer struct {
	tracer   oteltrace.Tracer
	provider *sdktrace.TracerProvider
}

// New makes a Tracer, which sends in the background until Close. Nothing is
// dialled here.
func New(cfg Config) (*Tracer, error) {
	var options []otlptracehttp.Option
	if cfg.Endpoint != "" {
		u, err := url.Parse(cfg.Endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("the address of a collector is an http or https URL")
		}
		if u.Path == "" || u.Path == "/" {
			u.Path = "/v1/traces"
		}
		options = append(options, otlptracehttp.WithEndpointURL(u.String()))
	}
	exporter, err := otlptracehttp.New(context.Background(), options...)
	if err != nil {
		return nil, fmt.Errorf("traces cannot be sent: %w", withoutURL(err))
	}
	res, err := resource.New(context.Background(),
		resource.WithAttributes(attribute.String("service.name", "signalbox"), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv()) // OTEL_SERVICE_NAME wins
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { cfg.Failed(withoutURL(err)) }))
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
	return &Tracer{tracer: provider.Tracer("github.com/signalbox-mcp/signalbox"), provider: provider}, nil
}

// withoutURL is err without an address, which may hold a token.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Close sends what is left, for as long as ctx allows.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return withoutURL(t.provider.Shutdown(ctx))
}

// Span is something that takes time.
type Span struct {
	t    *Tracer
	span oteltrace.Span
}

var w3c propagation.TraceContext

// Start begins the span of a call in the context of its caller; what is no
// context is as good as none, and begins a trace.
func (t *Tracer) Start(name, parent, state string) *Span {
	if t == nil {
		return nil
	}
	ctx := w3c.Extract(context.Background(), propagation.MapCarrier{"traceparent": parent, "tracestate": state})
	_, span := t.tracer.Start(ctx, name, oteltrace.WithSpanKind(oteltrace.SpanKindServer))
	return &Span{t, span}
}

// Child begins a span within s.
func (s *Span) Child(name string) *Span { return s.child(name, oteltrace.SpanKindInternal) }

// Client begins a span within s whose context is sent to somebody else.
func (s *Span) Client(name string) *Span { return s.child(name, oteltrace.SpanKindClient) }

func (s *Span) child(name string, kind oteltrace.SpanKind) *Span {
	if s == nil {
		return nil
	}
	ctx := oteltrace.ContextWithSpan(context.Background(), s.span)
	_, span := s.t.tracer.Start(ctx, name, oteltrace.WithSpanKind(kind))
	return &Span{s.t, span}
}

// Set notes something that is neither long nor secret; "" is nothing.
func (s *Span) Set(key, value string) {
	if s != nil && value != "" {
		s.span.SetAttributes(attribute.String(key, strings.ToValidUTF8(value, "\uFFFD")))
	}
}

// Fail says that it went wrong, and why in a word.
func (s *Span) Fail(reason string) {
	if s != nil {
		s.span.SetStatus(codes.Error, reason)
	}
}

// End ends it; a second time does nothing.
func (s *Span) End() {
	if s != nil {
		s.span.End(oteltrace.WithTimestamp(time.Now()))
	}
}

// Parent is the traceparent of what happens within s: 55 characters.
func (s *Span) Parent() string {
	if s == nil {
		return ""
	}
	c := s.span.SpanContext()
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// State is the tracestate that goes with Parent; "" for none.
func (s *Span) State() string {
	if s == nil {
		return ""
	}
	return s.span.SpanContext().TraceState().String()
}
