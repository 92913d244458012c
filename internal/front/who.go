package front

import (
	"context"
	"net/http"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// whoKey is the context key of the *auth.Principal whom a request is from.
type whoKey struct{}

func withPrincipal(r *http.Request, p *auth.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), whoKey{}, p))
}

// who is whom the request is from.
func who(r *http.Request) *auth.Principal {
	if p, ok := r.Context().Value(whoKey{}).(*auth.Principal); ok {
		return p
	}
	return auth.Anonymous()
}

// authenticate finds out whom a request is from. A client is told of the resource
// whose URL it was given, /mcp or /sse, for it must refuse the metadata of another
// (RFC 9728 section 3.3); a token for either is good at all endpoints of a server.
func (f *Front) authenticate(r *http.Request, what endpoint, base string) (*http.Request, error) {
	if !f.cfg.Auth.Enabled() {
		return r, nil
	}
	server := f.publicURL(r) + base
	asked, other := server+"/mcp", server+"/sse"
	if what != endpointMCP {
		asked, other = other, asked
	}
	p, err := f.cfg.Auth.Check(r, asked, nil, other)
	if err != nil {
		return r, err
	}
	return withPrincipal(r, p), nil
}

// publicURL is where clients find us, without a slash at the end: as configured,
// else as this client has found us, which proves nothing.
func (f *Front) publicURL(r *http.Request) string {
	if u := f.cfg.PublicURL; u != nil {
		return u.Scheme + "://" + u.Host + f.prefix
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host + f.publicPrefix(r)
}

// metadata answers with the document of a protected resource (RFC 9728,
// section 3): rest is the path of the resource, empty for all of them.
func (f *Front) metadata(w http.ResponseWriter, r *http.Request, rest string) {
	rest = trimPath(strings.TrimPrefix(rest, f.publicPrefix(r)))
	if rest != "" && rest != "/" {
		if _, _, _, err := f.route(rest); err != nil {
			f.fail(w, nil, errNoPath)
			return
		}
	}
	if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" {
		f.preflight(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		f.fail(w, nil, methodNotAllowed("GET, HEAD"))
		return
	}
	doc := f.cfg.Auth.Metadata(f.publicURL(r) + strings.TrimSuffix(rest, "/"))
	if doc == nil {
		f.fail(w, nil, refuse(http.StatusNotFound, mcp.CodeInvalidRequest, "no_authorization", "there is no authorization here"))
		return
	}
	f.writeJSON(w, http.StatusOK, doc)
}
