package front

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// backends are the servers of one configuration.
type backends struct {
	offered []*live.Backend          // in the configuration's order
	byName  map[string]*live.Backend // those, and others that have sessions still
}

// SetBackends replaces the servers. Those that were retired stay reachable for
// the sessions that they have.
func (f *Front) SetBackends(offered []*live.Backend) {
	next := &backends{offered: slices.Clone(offered), byName: make(map[string]*live.Backend)}
	if old := f.backends.Load(); old != nil {
		for name, b := range old.byName {
			if !f.cfg.Live.Gone(b) {
				next.byName[name] = b
			}
		}
	}
	for _, b := range offered {
		next.byName[b.Name] = b
	}
	f.backends.Store(next)
}

// endpoint is what a path leads to.
type endpoint uint8

const (
	noEndpoint endpoint = iota
	endpointMCP
	endpointSSE
	endpointMessages
)

// route finds server and endpoint of a path. base is the path before the
// endpoint. A lone server is at the root too.
func (f *Front) route(path string) (b *live.Backend, what endpoint, base string, err error) {
	all := f.backends.Load()
	name, rest := "", path
	if after, ok := strings.CutPrefix(path, "/servers/"); ok {
		name, rest, _ = strings.Cut(after, "/")
		base, rest = "/servers/"+name, "/"+rest
		b = all.byName[name]
	} else if len(all.offered) == 1 {
		b = all.offered[0]
	}
	switch rest {
	case "/mcp":
		what = endpointMCP
	case "/sse":
		what = endpointSSE
	case "/messages", "/message":
		what = endpointMessages
	}
	if b != nil && what != noEndpoint {
		return b, what, base, nil
	}
	return nil, noEndpoint, "", refuse(http.StatusNotFound, mcp.CodeInvalidRequest, "path", "nothing is served at this path%s", f.tryPaths())
}

var errNoPath = refuse(http.StatusNotFound, mcp.CodeInvalidRequest, "path", "nothing is served at this path")

func (f *Front) tryPaths() string {
	if paths := f.Paths(); len(paths) > 0 {
		return "; try " + strings.Join(paths, ", ")
	}
	return "; no server is configured"
}

// maxPaths bounds those that an error names.
const maxPaths = 20

// Paths are those at which servers are found.
func (f *Front) Paths() []string {
	all := f.backends.Load()
	if len(all.offered) == 1 {
		return []string{"/mcp", "/sse"}
	}
	var paths []string
	for _, b := range all.offered[:min(len(all.offered), maxPaths/2)] {
		paths = append(paths, "/servers/"+b.Name+"/mcp", "/servers/"+b.Name+"/sse")
	}
	return paths
}

// publicPrefix is what stands before our paths where clients see them: that of
// the public URL, else what a trusted proxy says that it has cut off.
func (f *Front) publicPrefix(r *http.Request) string {
	if f.cfg.PublicURL != nil {
		return f.prefix
	}
	prefix := strings.TrimSuffix(r.Header.Get("X-Forwarded-Prefix"), "/")
	if prefix == "" || !f.trusted(r) || !plainPath(prefix) {
		return ""
	}
	return prefix
}

func (f *Front) trusted(r *http.Request) bool {
	if len(f.cfg.Proxies) == 0 {
		return false
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && f.trustedAddr(peer.Addr())
}

func (f *Front) trustedAddr(addr netip.Addr) bool {
	addr = addr.Unmap()
	return slices.ContainsFunc(f.cfg.Proxies, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// plainPath tells whether s is an absolute path that means the same to
// everybody: it goes into a reference that clients resolve.
func plainPath(s string) bool {
	if len(s) > 256 || s[0] != '/' || strings.Contains(s, "//") || strings.Contains(s, "/.") {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._~-", c))
	})
}

// maxMessage bounds a body for b.
func (f *Front) maxMessage(b *live.Backend) int64 {
	if b.MaxMessage > 0 {
		return b.MaxMessage
	}
	return f.cfg.MaxMessage
}
