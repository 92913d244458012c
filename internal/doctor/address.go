package doctor

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

const (
	streamableHTTP = "streamable-http"
	httpSSE        = "sse"
	farewell       = 2 * time.Second // for the end of a session
)

// address tries a URL out. nil: all is well.
func (x *exam) address() *Finding {
	s := newSite(x)
	defer s.client.CloseIdleConnections()
	if x.server.Type == "sse" {
		return x.oldAddress(s)
	}
	modern := false
	if x.server.Era != "legacy" {
		var fault *Finding
		if modern, fault = x.probeSite(s); fault != nil || x.ctx.Err() != nil {
			return fault
		}
	}
	if modern && x.server.Era == "modern" {
		return nil
	}
	before := *x.r
	err := x.streamable(s)
	switch {
	case modern: // what it does with a handshake only tells whether it speaks both
		if err != nil {
			*x.r = before
		}
		return nil
	case err == nil:
		x.r.Transport = streamableHTTP
		return nil
	}
	var status *statusFault
	if errors.As(err, &status) && slices.Contains([]int{400, 404, 405}, status.code) {
		// So may a server answer that speaks HTTP+SSE alone (2025-11-25,
		// transports, "Backwards Compatibility").
		*x.r = before
		return x.fallBack(s, status)
	}
	return found(err)
}

// probeSite asks for the per-request era by POST, and looks around in it.
func (x *exam) probeSite(s *site) (modern bool, fault *Finding) {
	began := time.Now()
	ctx, cancel := x.wait("server/discover", min(discoverWait, x.server.StartTimeout))
	s.modern = true
	defer func() { s.modern = false }()
	d, err := discover(ctx, prober{s}, x.o.Version)
	cancel()
	switch {
	case err != nil && !timedOut(err):
		return false, found(err)
	case !d.perRequest && x.server.Era == "modern":
		return false, &Finding{"era", "the configuration says era: modern, and it does not answer server/discover with " + string(mcp.R20260728) + "; leave era out to have it found by asking"}
	case !d.perRequest:
		return false, nil
	}
	x.r.Transport = streamableHTTP
	x.learn(perRequest, d.versions, d.result.ServerInfo, d.result.Capabilities, time.Since(began))
	if !slices.Contains(x.r.Capabilities, "tools") {
		return true, nil
	}
	if err := x.tools(s, requestMeta(x.o.Version)); err != nil {
		return true, found(err)
	}
	return true, nil
}

// prober is a site for discover: a refusal of the request itself is what an
// older server says to it, and no error.
type prober struct{ *site }

func (p prober) ask(ctx context.Context, method, params string) (wire.Message, error) {
	msg, err := p.site.ask(ctx, method, params)
	var status *statusFault
	if errors.As(err, &status) && status.code >= 400 && status.code < 500 && status.code != 401 && status.code != 403 && status.code != 429 {
		return status.msg, nil
	}
	return msg, err
}

// streamable is a handshake by Streamable HTTP.
func (x *exam) streamable(s *site) error {
	defer s.goodbye()
	return x.handshake(s, x.server.StartTimeout)
}

// fallBack tries HTTP+SSE after Streamable HTTP was refused.
func (x *exam) fallBack(s *site, first *statusFault) *Finding {
	before := *x.r
	err := x.overStream(s)
	if x.server.Type == "http" {
		*x.r = before
		if err == nil {
			return &Finding{"sse-as-http", "it speaks HTTP+SSE (2024-11-05), and the configuration says type: http; write type: sse, or leave type out"}
		}
		return first.finding
	}
	var notThere *noStream
	switch {
	case errors.As(err, &notThere): // no stream, so the first refusal tells more
		*x.r = before
		return first.finding
	case err != nil:
		return found(err)
	}
	return nil
}

// oldAddress tries HTTP+SSE alone.
func (x *exam) oldAddress(s *site) *Finding {
	before := *x.r
	err := x.overStream(s)
	if err == nil {
		return nil
	}
	var notThere *noStream
	if errors.As(err, &notThere) {
		*x.r = before
		if x.streamable(s) == nil {
			*x.r = before
			return &Finding{"http-as-sse", "it speaks Streamable HTTP, and the configuration says type: sse; write type: http, or leave type out"}
		}
		*x.r = before
	}
	return found(err)
}

// overStream is a handshake by HTTP+SSE.
func (x *exam) overStream(s *site) error {
	st, err := s.openStream()
	if err != nil {
		return err
	}
	defer st.close()
	x.r.Transport = httpSSE
	return x.handshake(st, x.server.StartTimeout)
}

// goodbye ends the session, if the server gave one.
func (s *site) goodbye() {
	if s.session == "" {
		return
	}
	ctx, cancel := context.WithTimeout(s.x.ctx, farewell)
	defer cancel()
	if resp, err := s.do(ctx, http.MethodDelete, s.url, nil); err == nil {
		_ = resp.Body.Close()
	}
	s.session, s.version = "", ""
}
