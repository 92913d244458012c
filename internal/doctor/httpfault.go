package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// statusFault is an HTTP status that is no answer. msg is the JSON-RPC error in
// its body, if there is one.
type statusFault struct {
	code    int
	msg     wire.Message
	finding *Finding
}

func (s *statusFault) Error() string { return s.finding.Text }
func (s *statusFault) Unwrap() error { return s.finding }

// wrongStatus reads an answer that is not HTTP 200.
func (x *exam) wrongStatus(from *url.URL, resp *http.Response) *statusFault {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as much as there is
	s := &statusFault{code: resp.StatusCode}
	said := ""
	if msg, err := wire.Parse(body); err == nil && msg.Error.Present() {
		s.msg = msg
		said = readError(&msg).Message
	} else if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "text/html" && !strings.HasPrefix(strings.TrimSpace(string(body)), "<") {
		said = string(body)
	}
	if said = x.veil.text(said, maxQuote); said != "" {
		said = ` "` + said + `"`
	}
	s.finding = x.statusFinding(from, resp, said)
	return s
}

// statusFinding: said is what the body says in words, in quotes after a blank,
// or empty.
func (x *exam) statusFinding(from *url.URL, resp *http.Response, said string) *Finding {
	status := fmt.Sprintf("HTTP %d", resp.StatusCode)
	switch code := resp.StatusCode; {
	case code == 401 || code == 403:
		return x.refusal(resp, said)
	case code >= 300 && code <= 399:
		return x.redirect(from, resp)
	case code == 400 && strings.Contains(said, "HTTP request to an HTTPS server") || strings.Contains(said, "plain HTTP request was sent to HTTPS port"):
		return &Finding{"http-to-https", "it speaks HTTPS at this port; write https:// in the URL"}
	case code == 421 || code == 400 && strings.Contains(strings.ToLower(said), "host"):
		return x.hostRefused(status + said)
	case code == 404 || code == 410:
		return &Finding{"not-found", "there is nothing for MCP at this path (" + status + said + "); mend the path of the URL, which is /mcp or /sse at most servers"}
	case code == 405:
		return &Finding{"method", "it takes no POST at this path (" + status + "), and opens no event stream there either; mend the path of the URL, which is /mcp or /sse at most servers"}
	case code == 429 || code == 503:
		wait := "later"
		if after := resp.Header.Get("Retry-After"); after != "" {
			wait = "after " + x.veil.text(after, 40) + " (Retry-After)"
		}
		return &Finding{"busy", "it is busy, or not up (" + status + said + "); try again " + wait}
	case code == 502 || code == 504:
		return &Finding{"gateway", "a proxy before it does not reach it (" + status + "); check that the server runs, and the proxy's own configuration"}
	case code >= 500:
		return &Finding{"http-error", "it fails (" + status + said + "); look into the server's log"}
	case code < 300:
		return &Finding{"no-answer", "it takes the request and gives no answer (" + status + "); the server has to be mended, or the URL is not that of its MCP endpoint"}
	}
	return &Finding{"http-status", "it refuses the request (" + status + said + "); mend what it names, or the URL"}
}

var (
	resourceMetadata = regexp.MustCompile(`(?i)resource_metadata="?([^"\s,]+)`)
	scopeParam       = regexp.MustCompile(`(?i)\bscope="([^"]+)"`)
)

// refusal: 401 and 403.
func (x *exam) refusal(resp *http.Response, said string) *Finding {
	challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
	metadata := ""
	if m := resourceMetadata.FindStringSubmatch(challenge); m != nil {
		metadata = "; " + x.veil.text(m[1], maxQuote) + " says where credentials come from"
	}
	sent := resp.Request.Header.Get("Authorization") != "" || resp.Request.Header.Get("X-Api-Key") != ""
	switch {
	case resp.StatusCode == 401 && sent:
		return &Finding{"credential-refused", "it refuses the credential that it gets (HTTP 401" + said + "); give a valid one" + metadata}
	case resp.StatusCode == 401:
		return &Finding{"credential-missing", `it wants a credential (HTTP 401); give one with --header "Authorization: Bearer ..." (in a file: headers, or client-credentials)` + metadata}
	case strings.Contains(strings.ToLower(said), "host"):
		return x.hostRefused("HTTP 403" + said)
	}
	if m := scopeParam.FindStringSubmatch(challenge); m != nil {
		return &Finding{"scope", "the credential has not the scope that it wants, " + x.quote(m[1]) + " (HTTP 403); ask for that scope" + metadata}
	}
	if sent {
		return &Finding{"forbidden", "the credential may not use it (HTTP 403" + said + "); use another one, or let it be given the right" + metadata}
	}
	return &Finding{"forbidden", `it forbids the request (HTTP 403` + said + `); it may want a credential: --header "Authorization: Bearer ..."` + metadata}
}

func (x *exam) hostRefused(said string) *Finding {
	return &Finding{"host-refused", "it refuses the host name " + x.quote(x.server.URL.Host) + " (" + said + "); allow that name in the server, or use a URL with a name that it knows"}
}

// redirect: one that is not followed.
func (x *exam) redirect(from *url.URL, resp *http.Response) *Finding {
	to := redirected(from, resp)
	if to == nil {
		return &Finding{"redirect", fmt.Sprintf("it redirects to nowhere (HTTP %d without a valid Location); mend the URL", resp.StatusCode)}
	}
	where := x.veil.text(shownURL(to), maxQuote)
	if !sameOrigin(from, to) {
		return &Finding{"redirect-foreign", fmt.Sprintf("it redirects to another origin, %s (HTTP %d), which is not followed, for credentials stay where they belong; give that URL if it is the server's own", where, resp.StatusCode)}
	}
	return &Finding{"redirect", fmt.Sprintf("it redirects to %s (HTTP %d), which is not followed, for a POST would become a GET or go on for ever; give that URL", where, resp.StatusCode)}
}

// wrongContent: HTTP 200, and neither JSON nor an event stream.
func (x *exam) wrongContent(kind string, resp *http.Response) *Finding {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // as much as there is
	text := strings.TrimSpace(string(body))
	switch {
	case kind == "text/html" || strings.HasPrefix(strings.ToLower(text), "<!doctype html") || strings.HasPrefix(strings.ToLower(text), "<html"):
		return &Finding{"html", "a web page stands at this URL, no MCP server; mend the path, which is /mcp or /sse at most servers"}
	case text == "":
		return &Finding{"empty", "it answers with HTTP 200 and nothing in it; the server has to be mended, or the URL is not that of its MCP endpoint"}
	}
	return &Finding{"content-type", "it answers with the content type " + x.quote(resp.Header.Get("Content-Type")) + " instead of JSON or an event stream (" + x.quote(text) + "); check that the URL is that of its MCP endpoint"}
}

func timedOut(err error) bool {
	var f *Finding
	return errors.As(err, &f) && f.Case == "http-silent"
}

// dialFault says why no answer came at all.
func (x *exam) dialFault(err error) *Finding {
	host := x.server.URL.Host
	if x.server.Address != nil {
		host = x.server.Address.Host
	}
	var dns *net.DNSError
	var op *net.OpError
	if f := x.tlsFault(err); f != nil {
		return f
	}
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return &Finding{"name-not-found", "the name " + x.quote(dns.Name) + " is not known in DNS; mend the URL, or check the network that this machine is in"}
	case errors.As(err, &dns):
		return &Finding{"dns", "the name " + x.quote(dns.Name) + " could not be looked up, for DNS does not answer; check the network of this machine"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Finding{"connection-refused", "nothing listens at " + host + " (connection refused); start the server, or mend the port of the URL"}
	case errors.As(err, &op) && op.Op == "dial":
		return &Finding{"unreachable", "no connection to " + host + " could be made (" + x.veil.text(op.Err.Error(), maxQuote) + "); check the address, and firewalls on the way"}
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return x.noAnswer()
	case strings.Contains(err.Error(), "malformed HTTP"):
		return &Finding{"not-http", "what listens at " + host + " does not speak HTTP; mend the port of the URL"}
	}
	return &Finding{"connection-lost", "it closes the connection without an answer; look into the server's log, or mend the port or the scheme (http, https) of the URL"}
}

// tlsFault says why no TLS connection came about; nil if it is not for that.
func (x *exam) tlsFault(err error) *Finding {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &authority):
		return &Finding{"tls-authority", "its certificate is of an authority that this machine does not know; add the authority's certificate to the system's (or name it in SSL_CERT_FILE)"}
	case errors.As(err, &name):
		return &Finding{"tls-name", "its certificate is not for the name " + x.quote(x.server.URL.Hostname()) + "; use the name that is in the certificate"}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &Finding{"tls-expired", "its certificate has expired, or is not valid yet; renew it, and check this machine's clock"}
	case errors.As(err, &record) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return &Finding{"https-to-http", "it speaks plain HTTP at this port; write http:// in the URL"}
	case errors.As(err, &alert) || strings.Contains(err.Error(), "tls: "):
		return &Finding{"tls", "no TLS connection came about: " + x.veil.text(lastPart(err.Error()), maxQuote) + "; the server has to offer TLS 1.2 or later, and may want a client's certificate, which is not supported"}
	}
	return nil
}

// lastPart of an error is the cause; what stands before names the URL.
func lastPart(s string) string {
	if i := strings.LastIndex(s, "tls: "); i >= 0 {
		return s[i:]
	}
	return s
}
