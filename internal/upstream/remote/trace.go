package remote

import (
	"net/http"

	"github.com/signalbox-mcp/signalbox/internal/trace"
)

// appendTrace adds the context of a trace; without a span nothing.
func appendTrace(dst []byte, s *trace.Span) []byte {
	if s == nil {
		return dst
	}
	dst = appendHeader(dst, trace.HeaderParent, s.Parent())
	if state := s.State(); state != "" {
		dst = appendHeader(dst, trace.HeaderState, state)
	}
	return dst
}

// withoutTrace leaves the client's own context out, which the configuration may
// name to be passed on: the one of the span stands for it.
func withoutTrace(client http.Header, s *trace.Span) http.Header {
	if s == nil || client[trace.HeaderParent] == nil && client[trace.HeaderState] == nil {
		return client
	}
	client = client.Clone()
	delete(client, trace.HeaderParent)
	delete(client, trace.HeaderState)
	return client
}
