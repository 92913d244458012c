package remote

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// TestHeaders: what a server sees of the configuration and of the client.
func TestHeaders(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server(func(cfg *Config) {
			cfg.Header = http.Header{
				"Authorization": {"Bearer ours"}, "X-Team": {" a", "b "}, "X-Bad": {"x\r\nX-Evil: 1"},
				"Content-Length": {"3"}, "Accept": {"x/y"}, "Mcp-Session-Id": {"forged"}, "Transfer-Encoding": {"chunked"},
			}
			cfg.ForwardHeaders = []string{"x-tenant", "X-Tenant", "Authorization", "Connection", "Content-Length", "Transfer-Encoding", "Host", "Mcp-Session-Id", "Mcp-Param-A"}
		})
		defer srv.Close()
		c := open(t, srv)
		req := request(t, tool)
		req.Header = http.Header{
			"X-Tenant": {"one", "two"}, "Authorization": {"Bearer theirs"}, "Cookie": {"c=1"}, "X-Api-Key": {"k"}, "X-Forwarded-For": {"1.2.3.4"},
			"Mcp-Session-Id": {"theirs"}, "Mcp-Protocol-Version": {"2099-01-01"}, "Mcp-Param-A": {"p"}, "Mcp-Param-B": {"=?base64?eA==?="},
			"Connection": {"X-Tenant"}, "Keep-Alive": {"timeout=1"}, "Te": {"trailers"}, "Upgrade": {"h2c"}, "Transfer-Encoding": {"chunked"},
			"Content-Length": {"1"}, "Host": {"evil.test"}, "Last-Event-Id": {"9"}, "Mcp-Param-C": {"a\nb"}, "Accept-Encoding": {"gzip"},
		}
		sink := newSink(t)
		_, err := c.conn.Start(req, sink)
		must(t, err)
		must(t, sink.end())
		got := s.all("tools/call")[0]
		want := http.Header{
			"User-Agent": {"signalbox/1.2.3"}, "Accept-Encoding": {"identity"}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
			"Authorization": {"Bearer ours"}, "X-Team": {"a", "b"}, "X-Tenant": {"one", "two"}, "Mcp-Param-A": {"p"}, "Mcp-Param-B": {"=?base64?eA==?="},
			"Mcp-Session-Id": {s.session}, "Mcp-Protocol-Version": {"2025-06-18"}, "Content-Length": {"96"},
		}
		want.Set("Content-Length", got.header.Get("Content-Length"))
		for _, name := range slices.Sorted(maps.Keys(got.header)) {
			if !slices.Equal(got.header[name], want[name]) {
				t.Errorf("%s: %q, want %q", name, got.header[name], want[name])
			}
		}
		if len(got.header) != len(want) || len(got.body) != len(tool) {
			t.Errorf("headers %v, body %s", got.header, got.body)
		}
		if got.host != "mcp.test" || got.uri != "/base/mcp?tenant=a%2Fb" {
			t.Errorf("host %s, uri %s", got.host, got.uri)
		}
		if !strings.Contains(w.log.String(), "X-Bad") {
			t.Error("the log does not tell of the header that was left out")
		}
		c.conn.End(upstream.ErrClosed)
		srv.Close()
		for _, r := range s.all("") {
			if r.uri != got.uri || r.host != got.host || r.header.Get("Authorization") != "Bearer ours" || r.header.Get("Cookie") != "" {
				t.Errorf("%s %s of %s: %v", r.http, r.uri, r.host, r.header)
			}
		}
		if init := s.all("initialize")[0].header; init.Get("Mcp-Session-Id") != "" || init.Get("Mcp-Protocol-Version") != "" {
			t.Errorf("initialize: %v", init)
		}
		if n := s.count("DELETE"); n != 1 {
			t.Errorf("%d DELETEs", n)
		}
	})
}

// TestRedirects: 307 and 308 within the server's origin are followed with
// method and body; nothing else is, and nothing is sent elsewhere.
func TestRedirects(t *testing.T) {
	tests := []struct {
		code     int
		location string
		follows  string // request target; "" if not
	}{
		{307, "/other?x=%20y", "/other?x=%20y"},
		{308, "mcp/", "/base/mcp/"},
		{307, "http://mcp.test/abs", "/abs"},
		{307, "http://MCP.test:80/abs", "/abs"},
		{307, "?only=query", "/base/mcp?only=query"},
		{307, "https://mcp.test/tls", ""},
		{307, "http://mcp.test:81/port", ""},
		{307, "http://evil.test/", ""},
		{308, "//evil.test/", ""},
		{308, "http://user@mcp.test/", ""},
		{307, "http://169.254.169.254/latest", ""},
		{307, "", ""},
		{307, "http://[::1", ""},
		{301, "/moved", ""},
		{302, "/moved", ""},
		{303, "/moved", ""},
	}
	for _, tt := range tests {
		t.Run(tt.location, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				w.name("evil.test", "10.6.6.6")
				evil := w.site("10.6.6.6:80")
				srv := w.server()
				defer srv.Close()
				c := open(t, srv)
				s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
					if r.RequestURI == tt.follows {
						reply(w, r, "{}")
						return
					}
					w.Header().Set("Location", tt.location)
					w.WriteHeader(tt.code)
				})
				sink, _ := c.start(tool)
				if tt.follows == "" {
					sink.fails("redirect", "redirects to "+tt.location)
				} else if err := sink.end(); err != nil || sink.frame() != result("2", "{}") {
					t.Errorf("error %v", err)
				}
				got := s.all("tools/call")
				if last := got[len(got)-1]; tt.follows != "" && (last.body != tool || last.http != "POST" || last.header.Get("Mcp-Session-Id") != s.session) {
					t.Errorf("followed with %+v", last)
				}
				if evil.count("") > 0 || slices.Contains(w.dialled(), "10.6.6.6:80") || slices.Contains(w.dialled(), "169.254.169.254:80") {
					t.Errorf("dialled %v", w.dialled())
				}
			})
		})
	}
}

func TestRedirectLoop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		srv := w.server()
		defer srv.Close()
		c := open(t, srv)
		s.handle("tools/call", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", r.RequestURI+"x")
			w.WriteHeader(308)
		})
		sink, _ := c.start(tool)
		sink.fails("redirect", "")
		if n := s.count("tools/call"); n != 1+maxRedirects {
			t.Errorf("%d requests", n)
		}
	})
}

func TestSameOrigin(t *testing.T) {
	base, _ := url.Parse("https://h.test/a")
	for ref, want := range map[string]bool{
		"/b": true, "b?c": true, "https://h.test:443/": true, "https://H.TEST/": true, "//h.test/x": true,
		"http://h.test/": false, "https://h.test:444/": false, "https://h.test.evil/": false, "https://a@h.test/": false, "//evil/": false, "data:x": false,
	} {
		u, err := base.Parse(ref)
		must(t, err)
		if got := sameOrigin(base, u); got != want {
			t.Errorf("%s: %v", ref, got)
		}
	}
}
