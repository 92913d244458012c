// Package guard refuses HTTP requests that a browser was tricked into sending.
package guard

import (
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
)

// Guard checks Host (a rebinding attack needs a name that is not ours) and
// Origin. It may be used by several goroutines at once.
type Guard struct {
	anyHost bool            // set by AnyHost
	hosts   map[string]bool // "name" or "name:port", lower case
	origins map[string]bool // "scheme://host[:port]", lower case
	log     *slog.Logger
	told    *onceEach
}

// Refused is the error of Check. It names the flag that would allow the request.
type Refused struct {
	What string // "host" or "origin"
	Flag string
}

func (e *Refused) Error() string {
	return "the " + e.What + " of this request is not allowed (" + e.Flag + ")"
}

// New makes a guard that allows loopback names, IP addresses as Host, and what
// is listed: hosts as "name" or "name:port", origins as "scheme://host[:port]".
// public, if not nil, is allowed as both.
func New(hosts, origins []string, public *url.URL, log *slog.Logger) *Guard {
	g := &Guard{hosts: make(map[string]bool), origins: make(map[string]bool), log: log, told: &onceEach{seen: make(map[string]bool)}}
	for _, h := range hosts {
		g.hosts[strings.ToLower(h)] = true
	}
	for _, o := range origins {
		g.origins[plainOrigin(strings.TrimSuffix(strings.ToLower(o), "/"))] = true
	}
	if public != nil {
		g.hosts[strings.ToLower(public.Hostname())] = true
		g.origins[plainOrigin(strings.ToLower(public.Scheme+"://"+public.Host))] = true
	}
	return g
}

// AnyHost returns a guard that does not look at Host: where each request needs a
// credential, which no browser adds by itself, rebinding gives nothing.
func (g *Guard) AnyHost() *Guard {
	open := *g
	open.anyHost = true
	return &open
}

// Check returns a *Refused for a request that must not be served. For an
// allowed Origin it sets the CORS headers, so that errors carry them too;
// credentials are never allowed.
func (g *Guard) Check(w http.ResponseWriter, r *http.Request) error {
	if err := g.CheckHost(r); err != nil {
		return err
	}
	origins := r.Header["Origin"]
	if len(origins) == 0 {
		return nil
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if len(origins) > 1 || !g.originAllowed(origins[0]) {
		return g.refuse("origin", strings.Join(origins, ", "), "--allowed-origin")
	}
	h.Set("Access-Control-Allow-Origin", origins[0])
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
	return nil
}

// CheckHost is Check without a look at Origin.
func (g *Guard) CheckHost(r *http.Request) error {
	if !g.anyHost && !g.hostAllowed(r.Host) {
		return g.refuse("host", r.Host, "--allowed-host")
	}
	return nil
}

func (g *Guard) hostAllowed(host string) bool {
	host = strings.ToLower(host)
	name, port := host, ""
	if n, p, err := net.SplitHostPort(host); err == nil {
		name, port = n, p
	}
	name = strings.TrimSuffix(strings.Trim(name, "[]"), ".")
	if loopbackName(name) || isIP(name) || g.hosts[name] {
		return true
	}
	return port != "" && g.hosts[name+":"+port] || port == "" && (g.hosts[name+":80"] || g.hosts[name+":443"])
}

func (g *Guard) originAllowed(origin string) bool {
	origin = plainOrigin(strings.ToLower(origin))
	if origin == "null" {
		return false
	}
	if g.origins[origin] || g.origins["*"] {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return false
	}
	name := strings.TrimSuffix(u.Hostname(), ".")
	ip, err := netip.ParseAddr(name)
	return loopbackName(name) || err == nil && ip.IsLoopback()
}

// plainOrigin leaves out the port that the scheme implies, as browsers do.
func plainOrigin(origin string) string {
	for scheme, port := range map[string]string{"http://": ":80", "https://": ":443"} {
		if host, ok := strings.CutSuffix(origin, port); ok && strings.HasPrefix(origin, scheme) {
			return host
		}
	}
	return origin
}

func loopbackName(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func isIP(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

// refuse logs each refused value once.
func (g *Guard) refuse(what, value, flag string) error {
	if g.told.first(what + " " + value) {
		g.log.Warn("request refused: its "+what+" is not allowed", "header", what, "value", value, "hint", "allow it with "+flag)
	}
	return &Refused{What: what, Flag: flag}
}

// onceEach remembers a bounded number of values.
type onceEach struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (o *onceEach) first(value string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen[value] || len(o.seen) >= 256 || len(value) > 512 {
		return false
	}
	o.seen[value] = true
	return true
}
