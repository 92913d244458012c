package remote

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// heads are the parts of request heads that do not change.
type heads struct {
	post, get, del string   // request line and what every such request carries
	forward        []string // canonical names of the client's headers to pass on
}

const accept = "application/json, text/event-stream"

func newHeads(cfg *Config) heads {
	target := cfg.URL.RequestURI()
	common := commonLines(cfg)
	return heads{
		post:    "POST " + target + " HTTP/1.1\r\n" + common + postLines,
		get:     "GET " + target + " HTTP/1.1\r\n" + common + "Accept: text/event-stream\r\n",
		del:     "DELETE " + target + " HTTP/1.1\r\n" + common,
		forward: forwardable(cfg),
	}
}

const postLines = "Content-Type: application/json\r\nAccept: " + accept + "\r\n"

// commonLines: Host stays that of the URL, whatever address is dialled.
func commonLines(cfg *Config) string {
	host := cfg.URL.Host
	if h := cfg.Header.Get("Host"); h != "" {
		host = h
	}
	lines := appendHeader(nil, "Host", host)
	if cfg.Header.Get("User-Agent") == "" {
		lines = appendHeader(lines, "User-Agent", "signalbox/"+cfg.Version)
	}
	lines = appendHeader(lines, "Accept-Encoding", "identity")
	names := make([]string, 0, len(cfg.Header))
	for name := range cfg.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if ownHeader(name) {
			continue
		}
		for _, v := range cfg.Header[name] {
			before := len(lines)
			if lines = appendHeader(lines, name, strings.TrimSpace(v)); len(lines) == before {
				cfg.Log.Error("configured header holds a line end or another control character; not sent", "header", name)
			}
		}
	}
	return string(lines)
}

// forwardable are the configured names, less those which would say two things
// at once or change what the request is. A configured header is stronger than
// the client's of that name.
func forwardable(cfg *Config) []string {
	var names []string
	for _, name := range cfg.ForwardHeaders {
		name = http.CanonicalHeaderKey(name)
		_, configured := cfg.Header[name]
		if !ownHeader(name) && !configured && !slices.Contains(names, name) && !strings.HasPrefix(name, mcp.HeaderParamPrefix) {
			names = append(names, name)
		}
	}
	return names
}

// ownHeader names what Signalbox itself says to a server, and what concerns one
// connection only (RFC 9110, section 7.6.1).
func ownHeader(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Type", "Content-Length", "Content-Encoding", "Accept", "Accept-Encoding",
		"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
		mcp.HeaderSession, mcp.HeaderVersion, mcp.HeaderLastEvent, mcp.HeaderMethod, mcp.HeaderName:
		return true
	}
	return false
}

// appendForwarded adds the client's headers that may be passed on: those that
// the configuration names, and every Mcp-Param-* (2026-07-28: an intermediary
// passes on those it does not know).
func (h *heads) appendForwarded(dst []byte, client http.Header) []byte {
	dst = h.appendNamed(dst, client)
	for name, values := range client {
		if !strings.HasPrefix(name, mcp.HeaderParamPrefix) {
			continue
		}
		for _, v := range values {
			dst = appendHeader(dst, name, v)
		}
	}
	return dst
}

// appendNamed adds those that the configuration names.
func (h *heads) appendNamed(dst []byte, client http.Header) []byte {
	for _, name := range h.forward {
		for _, v := range client[name] {
			dst = appendHeader(dst, name, v)
		}
	}
	return dst
}

// appendHeader drops a value with control characters: it could end the line.
func appendHeader(dst []byte, name, value string) []byte {
	for i := range len(value) {
		if value[i] < ' ' && value[i] != '\t' || value[i] == 0x7F {
			return dst
		}
	}
	dst = append(dst, name...)
	dst = append(dst, ": "...)
	dst = append(dst, value...)
	return append(dst, "\r\n"...)
}

func appendLength(dst []byte, n int) []byte {
	dst = append(dst, "Content-Length: "...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, "\r\n\r\n"...)
}

// visible tells whether s can stand in a header or a request line: ASCII from
// 0x21 to 0x7E.
func visible(s string) bool {
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7E {
			return false
		}
	}
	return true
}

// requestTarget is what stands for u in a request line.
func requestTarget(u *url.URL) (string, bool) {
	target := u.RequestURI()
	return target, visible(target) && strings.HasPrefix(target, "/")
}

// sameOrigin: scheme, host and port are equal, and there is nobody to log in as.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b) && b.User == nil
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
