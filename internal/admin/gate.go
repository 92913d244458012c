package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/guard"
)

// gate lets through who may be here. What it refuses is answered with plain text.
type gate struct {
	guard *guard.Guard
	token *[sha256.Size]byte // its hash; nil: none is needed
	next  http.Handler
}

func newGate(g *guard.Guard, token string, next http.Handler) *gate {
	if token == "" {
		return &gate{guard: g, next: next}
	}
	sum := sha256.Sum256([]byte(token))
	// Rebinding gives nothing where a browser does not show the credential to
	// another name.
	return &gate{guard: g.AnyHost(), token: &sum, next: next}
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	if err := g.guard.CheckHost(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if !g.known(r) {
		h.Add("WWW-Authenticate", `Bearer realm="signalbox admin"`)
		h.Add("WWW-Authenticate", `Basic realm="signalbox admin, any name, the token as password", charset="UTF-8"`)
		http.Error(w, "the token of --admin-token-file is needed here: Authorization: Bearer TOKEN, or in a browser any user name and the token as password", http.StatusUnauthorized)
		return
	}
	if why := crossSite(r); why != "" {
		http.Error(w, why, http.StatusForbidden)
		return
	}
	g.next.ServeHTTP(w, r)
}

// known tells whether the request shows the token: as a bearer token, or, for
// browsers, as the password of HTTP Basic (RFC 7617).
func (g *gate) known(r *http.Request) bool {
	if g.token == nil {
		return true
	}
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return false
	}
	shown := ""
	if scheme, rest, ok := strings.Cut(values[0], " "); ok && strings.EqualFold(scheme, "bearer") {
		shown = strings.TrimSpace(rest)
	} else if _, password, ok := r.BasicAuth(); ok {
		shown = password
	}
	sum := sha256.Sum256([]byte(shown))
	return subtle.ConstantTimeCompare(sum[:], g.token[:]) == 1
}

// crossSite says why a request is refused that a page of another origin has
// made; "": it is none. What is no browser sends none of these headers. A link
// may lead to the page itself, which shows nothing to where the link stood.
func crossSite(r *http.Request) string {
	const why = "requests that a page of another origin makes are refused here"
	if origins := r.Header.Values("Origin"); len(origins) > 1 || len(origins) == 1 && !ownOrigin(origins[0], r) {
		return why
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch site := r.Header.Get("Sec-Fetch-Site"); {
	case site == "" || site == "same-origin":
	case site == "none" && reads: // typed in, or a bookmark
	case reads && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && !strings.HasPrefix(r.URL.Path, "/api/"):
	default:
		return why
	}
	return ""
}

func ownOrigin(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}
