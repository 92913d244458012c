package remote

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestNamesAndAddresses(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		w.name("mcp.test", "10.0.0.1")
		srv := w.server()
		defer srv.Close()
		a := open(t, srv)
		if srv.addrs.find("http://10.0.0.2:80") != nil {
			t.Error("found an address that is not the server's")
		}
		w.name("mcp.test", "10.0.0.2", "10.0.0.3")
		if got := open(t, srv).home(); got != sites[0].addr {
			t.Errorf("resolved anew too soon: at %s", got)
		}
		time.Sleep(resolveEvery)
		for range 4 {
			if got := open(t, srv).home(); got == sites[0].addr {
				t.Error("a new session at an address that the name no longer has")
			}
		}
		if got := a.home(); got != sites[0].addr {
			t.Errorf("the old session moved to %s", got)
		}
		for key, want := range map[string]bool{
			"http://10.0.0.1:80": false, "http://10.0.0.2:80": true, "https://10.0.0.2:80": false, "http://10.0.0.2:81": false,
			"http://169.254.169.254:80": false, "": false,
		} {
			x := srv.addrs.find(key)
			if (x != nil) != want {
				t.Errorf("find %q: %v", key, x)
			}
			if x != nil {
				srv.addrs.release(x)
			}
		}
		// Back again, it is used again.
		w.name("mcp.test", "10.0.0.1")
		time.Sleep(resolveEvery)
		if got := open(t, srv).home(); got != sites[0].addr {
			t.Errorf("at %s", got)
		}
		// While nothing can be resolved, the old addresses are good.
		w.name("mcp.test")
		time.Sleep(resolveEvery)
		open(t, srv)
	})
}

func TestNoName(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		w.mu.Lock()
		delete(w.names, "mcp.test")
		w.mu.Unlock()
		srv := w.server()
		defer srv.Close()
		_, reply := begin(t, srv)
		reply.fails("unreachable", "no such host")
		w.name("mcp.test", "10.0.0.1")
		open(t, srv)
	})
}

// TestEndpoints: scheme and host of each are dialled, path, query and Host are
// the URL's.
func TestEndpoints(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		w.mu.Lock()
		delete(w.names, "mcp.test") // is not even resolved
		w.names["pod"] = []string{"10.0.0.3"}
		w.mu.Unlock()
		srv := w.server(func(cfg *Config) {
			for _, raw := range []string{"http://10.0.0.1", "http://10.0.0.2:80/ignored?x", "http://pod:80"} {
				u, err := url.Parse(raw)
				must(t, err)
				cfg.Endpoints = append(cfg.Endpoints, u)
			}
		})
		defer srv.Close()
		for range 3 {
			open(t, srv)
		}
		for _, s := range sites {
			if got := s.all("initialize"); len(got) != 1 || got[0].uri != "/base/mcp?tenant=a%2Fb" || got[0].host != "mcp.test" {
				t.Errorf("%s got %v", s.addr, got)
			}
		}
	})
}

// TestTLSName: the certificate must be the URL's, whatever is dialled.
func TestTLSName(t *testing.T) {
	var name, host atomic.Value
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name.Store(r.TLS.ServerName)
		host.Store(r.Host)
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		reply(w, r, `{"protocolVersion":"2025-06-18"}`)
	}))
	ts.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	ts.StartTLS()
	defer ts.Close()
	for hostname, ok := range map[string]bool{"example.com": true, "other.test": false} {
		u, err := url.Parse("https://" + hostname + "/mcp")
		must(t, err)
		endpoint, err := url.Parse(ts.URL)
		must(t, err)
		cfg := newWorld(t).config()
		cfg.URL, cfg.Endpoints, cfg.dial, cfg.resolve = u, []*url.URL{endpoint}, nil, nil
		cfg.TLS = &tls.Config{RootCAs: ts.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
		srv := New(cfg)
		_, reply := begin(t, srv)
		if !ok {
			reply.fails("unreachable", "certificate")
		} else if err := reply.end(); err != nil || name.Load() != "example.com" || host.Load() != "example.com" {
			t.Errorf("error %v, TLS name %v, Host %v", err, name.Load(), host.Load())
		}
		srv.Close()
	}
}
