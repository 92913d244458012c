package front

import (
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func TestForwardedPrefixIsBelievedOfListedPeersOnly(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		peer, header, want string
	}{
		{"10.1.2.3:80", "/team/a", "/team/a"},
		{"10.1.2.3:80", "/team/a/", "/team/a"},
		{"[::ffff:10.1.2.3]:80", "/team/a", "/team/a"},
		{"[fd00::1]:80", "/team/a", "/team/a"},
		{"11.1.2.3:80", "/team/a", ""},
		{"nonsense", "/team/a", ""},
		{"10.1.2.3:80", "", ""},
		{"10.1.2.3:80", "/", ""},
		{"10.1.2.3:80", "team", ""},
		{"10.1.2.3:80", "//evil.example", ""},
		{"10.1.2.3:80", "/a//evil", ""},
		{"10.1.2.3:80", "/../x", ""},
		{"10.1.2.3:80", "/a?b", ""},
		{"10.1.2.3:80", "/a b", ""},
		{"10.1.2.3:80", "http://evil.example", ""},
	} {
		f := &Front{cfg: Config{Proxies: proxies}}
		r := httptest.NewRequest("GET", "/sse", nil)
		r.RemoteAddr = c.peer
		r.Header.Set("X-Forwarded-Prefix", c.header)
		if got := f.publicPrefix(r); got != c.want {
			t.Errorf("%q of %s: %q, want %q", c.header, c.peer, got, c.want)
		}
	}
	f := &Front{cfg: Config{Proxies: proxies, PublicURL: &url.URL{Path: "/set"}}, prefix: "/set"}
	r := httptest.NewRequest("GET", "/sse", nil)
	r.RemoteAddr = "10.1.2.3:80"
	r.Header.Set("X-Forwarded-Prefix", "/team")
	if got := f.publicPrefix(r); got != "/set" {
		t.Errorf("beside a public URL: %q", got)
	}
}

// busyServer accepts sessions and refuses each call as an HTTP server that
// answers 429 does.
type busyServer struct{}

func (busyServer) Open(init upstream.Request, reply, _ upstream.Sink) (upstream.Conn, error) {
	reply.Deliver(upstream.Frame{Data: wire.AppendResult(nil, init.Msg.Bytes(init.Msg.ID), []byte(`{"protocolVersion":"2025-06-18"}`)), Relation: upstream.Reply})
	reply.End(nil)
	return busyServer{}, nil
}

func (busyServer) Start(_ upstream.Request, s upstream.Sink) (upstream.Call, error) {
	return nil, &upstream.Error{Code: mcp.CodeInternal, Reason: "server_busy", Message: "busy", Status: 429, RetryAfter: "7"}
}

func (busyServer) Send(upstream.Request) error { return nil }
func (busyServer) End(error)                   {}
func (busyServer) Close()                      {}

func TestRetryAfterOfTheServerIsPassedOn(t *testing.T) {
	inBubble(t, setup{upstream: busyServer{}}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":8,"method":"x"}`, session)
		if got.status != 200 || got.header.Get("Retry-After") != "7" || lookup(got.body, "error", "data", "reason") != `"server_busy"` {
			t.Errorf("got %d %v %s", got.status, got.header, got.body)
		}
	})
}

// The servers of a new configuration are found at once; one that is left out
// serves the session that it has, and no new one.
func TestSetBackends(t *testing.T) {
	inBubble(t, setup{names: []string{"a", "b"}}, func(t *testing.T, r *rig) {
		was := r.front.backends.Load().offered
		got := r.do("POST", "/servers/b/mcp", initBody(rev))
		session := "Mcp-Session-Id: " + got.header.Get("Mcp-Session-Id")
		changed := &live.Backend{Name: "a", Server: busyServer{}}
		r.front.SetBackends([]*live.Backend{changed})
		r.live.Retire(was[0])
		r.live.Retire(was[1])
		if got := r.do("POST", "/servers/b/mcp", `{"jsonrpc":"2.0","id":8,"method":"ping"}`, session); got.status != 200 {
			t.Errorf("the session of a server that is no longer offered: %d %s", got.status, got.body)
		}
		if got := r.do("POST", "/servers/b/mcp", initBody(rev)); got.status != 404 || !strings.Contains(got.body, "no longer offered") {
			t.Errorf("a new session of it: %d %s", got.status, got.body)
		}
		for _, path := range []string{"/mcp", "/servers/a/mcp"} { // alone now
			if got := r.do("POST", path, initBody(rev)); got.status != 200 || got.header.Get("Mcp-Session-Id") == "" {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
		r.do("DELETE", "/servers/b/mcp", "", session)
		r.settle()
		r.front.SetBackends([]*live.Backend{changed})
		if got := r.do("POST", "/servers/b/mcp", initBody(rev)); got.status != 404 || !strings.Contains(got.body, "nothing is served") {
			t.Errorf("after its last session: %d %s", got.status, got.body)
		}
	})
}
