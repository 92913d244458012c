package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// site is a way to a Streamable HTTP server. It goes where Signalbox goes: by
// HTTP/1.1, through no proxy, uncompressed, with the configured headers, along
// redirects within the origin only.
type site struct {
	x      *exam
	client *http.Client
	url    *url.URL // where requests go; the Host header is that of the server's URL
	modern bool     // requests are of the per-request era

	next             int
	method           string // of the request that is being sent
	session, version string // headers of the session; "" before
	redirects        bool   // the report tells of them
}

const (
	dialTimeout  = 10 * time.Second
	maxRedirects = 3
	maxErrorBody = 64 << 10
)

func newSite(x *exam) *site {
	u := *x.server.URL
	if at := x.server.Address; at != nil {
		u.Scheme, u.Host = at.Scheme, at.Host
	}
	return &site{x: x, url: &u, client: &http.Client{
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, ServerName: x.server.URL.Hostname(), RootCAs: x.o.roots, NextProtos: []string{"http/1.1"}},
			TLSHandshakeTimeout: dialTimeout,
			TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // no HTTP/2
			DisableCompression:  true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// do sends one request and follows what may be followed. An error is a Finding.
func (s *site) do(ctx context.Context, method string, to *url.URL, body []byte) (*http.Response, error) {
	for hop := 0; ; hop++ {
		req, err := http.NewRequestWithContext(ctx, method, to.String(), bytes.NewReader(body))
		if err != nil {
			return nil, &Finding{"request", "no request can be made of its URL; mend it"}
		}
		if err := s.dress(ctx, req); err != nil {
			return nil, err
		}
		resp, err := s.client.Do(req)
		if err != nil {
			return nil, s.x.dialFault(err)
		}
		next := redirected(to, resp)
		if next == nil || hop == maxRedirects || resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect || !sameOrigin(to, next) {
			return resp, nil
		}
		_ = resp.Body.Close()
		if !s.redirects {
			s.redirects = true
			s.x.note("redirects", "it redirects each request to "+s.x.veil.text(shownURL(next), maxQuote)+"; give that URL, and each request is one less")
		}
		to = next
	}
}

// dress puts the headers on a request.
func (s *site) dress(ctx context.Context, req *http.Request) error {
	req.Host = s.x.server.URL.Host
	req.Header.Set("User-Agent", "signalbox/"+s.x.o.Version)
	req.Header.Set("Accept-Encoding", "identity")
	for name, values := range s.x.server.Header {
		if name == "Host" && len(values) > 0 {
			req.Host = values[0]
			continue
		}
		req.Header[name] = values
	}
	if s.x.server.Token != nil {
		token, err := s.x.server.Token(ctx)
		if err != nil {
			return &Finding{"no-token", "no access token for it could be had: " + s.x.veil.text(err.Error(), maxQuote) + "; check its client-credentials"}
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	switch req.Method {
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
	case http.MethodGet:
		req.Header.Set("Accept", "text/event-stream")
	}
	if s.session != "" {
		req.Header.Set(mcp.HeaderSession, s.session)
	}
	switch {
	case s.modern:
		req.Header.Set(mcp.HeaderVersion, string(mcp.R20260728))
		req.Header.Set(mcp.HeaderMethod, s.method)
	case s.version != "":
		req.Header.Set(mcp.HeaderVersion, s.version)
	}
	return nil
}

// redirected is where an answer leads to; nil if nowhere.
func redirected(from *url.URL, resp *http.Response) *url.URL {
	location := resp.Header.Get("Location")
	if resp.StatusCode < 300 || resp.StatusCode > 399 || location == "" {
		return nil
	}
	to, err := from.Parse(location)
	if err != nil {
		return nil
	}
	return to
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && portOf(a) == portOf(b) && b.User == nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// ask implements asker. Its errors are Findings.
func (s *site) ask(ctx context.Context, method, params string) (wire.Message, error) {
	s.next++
	id := fmt.Sprintf(`"signalbox-%d"`, s.next)
	body := []byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + "}")
	s.method = method
	resp, err := s.do(ctx, http.MethodPost, s.url, body)
	if err != nil {
		return wire.Message{}, err
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // "" where it is none
	encoding := resp.Header.Get("Content-Encoding")
	switch {
	case resp.StatusCode != http.StatusOK:
		return wire.Message{}, s.x.wrongStatus(s.url, resp)
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return wire.Message{}, &Finding{"compressed", "it compresses its answer (" + s.x.quote(encoding) + ") although it was asked not to; turn that off in the server, or in the proxy before it"}
	}
	if method == "initialize" {
		s.session = resp.Header.Get(mcp.HeaderSession)
	}
	switch kind {
	case "text/event-stream":
		return s.fromStream(ctx, id, resp)
	case "application/json":
		return s.fromBody(id, resp)
	}
	return wire.Message{}, s.x.wrongContent(kind, resp)
}

// fromBody reads an answer in JSON.
func (s *site) fromBody(id string, resp *http.Response) (wire.Message, error) {
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(s.x.server.MaxMessage)+1))
	switch {
	case err != nil:
		return wire.Message{}, s.x.dialFault(err)
	case len(body) > s.x.server.MaxMessage:
		return wire.Message{}, &Finding{"oversize", "its answer is larger than --max-message allows; raise that"}
	case len(bytes.TrimSpace(body)) == 0:
		return wire.Message{}, &Finding{"empty", "it answers with HTTP 200 and nothing in it; the server has to be mended"}
	}
	msg, err := wire.Parse(body)
	if err != nil {
		return wire.Message{}, &Finding{"bad-json", "its answer is no JSON-RPC message (" + faultOf(err) + ", in " + s.x.quote(string(body)) + "); check that the URL is that of its MCP endpoint"}
	}
	return msg, s.matches(id, &msg)
}

// matches: the answer is to the request.
func (s *site) matches(id string, msg *wire.Message) error {
	switch got := string(msg.Bytes(msg.ID)); {
	case msg.Kind != wire.Response:
		return &Finding{"no-response", "it answers with a " + msg.Kind.String() + " instead of a response; the server has to be mended"}
	case got == "" && msg.Error.Present(): // it could not read the id
		return nil
	case got != id:
		return &Finding{"wrong-id", "it answers under the id " + s.x.veil.text(got, 40) + " instead of the request's own, " + id + "; it has to send each id back as it came, strings included"}
	}
	return nil
}

// fromStream reads an answer from the event stream of its POST.
func (s *site) fromStream(ctx context.Context, id string, resp *http.Response) (wire.Message, error) {
	r := sse.NewReader(resp.Body, s.x.server.MaxMessage)
	defer r.Release()
	for {
		e, err := r.Next()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return wire.Message{}, &Finding{"stream-ended", "its event stream ends before the answer; the server has to be mended, or a proxy before it cuts streams off"}
		case err != nil:
			return wire.Message{}, s.x.dialFault(err)
		case len(e.Data) == 0 || !e.IsMessage():
			continue
		}
		msg, err := wire.Parse(bytes.Clone(e.Data))
		switch {
		case err != nil:
			return wire.Message{}, &Finding{"bad-json", "an event of its stream is no JSON-RPC message (" + faultOf(err) + ", in " + s.x.quote(string(e.Data)) + "); the server has to be mended"}
		case msg.Kind == wire.Request:
			if err := s.send(ctx, s.url, ownAnswer(&msg)); err != nil {
				return wire.Message{}, err
			}
		case msg.Kind == wire.Response:
			return msg, s.matches(id, &msg)
		}
	}
}

// send posts what has no answer.
func (s *site) send(ctx context.Context, to *url.URL, body []byte) error {
	resp, err := s.do(ctx, http.MethodPost, to, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return s.x.wrongStatus(to, resp)
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody) // so that the connection can be used again
	return nil
}

// tell implements way.
func (s *site) tell(ctx context.Context, method string) error {
	return s.send(ctx, s.url, []byte(`{"jsonrpc":"2.0","method":"`+method+`"}`))
}

// negotiated implements way.
func (s *site) negotiated(r mcp.Revision) { s.version = string(r) }
