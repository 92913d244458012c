package remote

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// inWorldOf3 has three addresses behind one name.
func inWorldOf3(t *testing.T, test func(t *testing.T, w *world, sites []*site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.close()
		w.name("mcp.test", "10.0.0.1", "10.0.0.2", "10.0.0.3")
		var sites []*site
		for i := range 3 {
			sites = append(sites, w.site(fmt.Sprintf("10.0.0.%d:80", i+1)))
		}
		test(t, w, sites)
	})
}

// home is the address that answers a session's calls.
func (c *client) home() string {
	c.t.Helper()
	reply := c.call(list)
	_, addr, _ := strings.Cut(reply, `"from":"`)
	addr, _, _ = strings.Cut(addr, `"`)
	return addr
}

func counts(srv *Server) map[string]int {
	srv.addrs.mu.Lock()
	defer srv.addrs.mu.Unlock()
	n := make(map[string]int)
	for _, x := range srv.addrs.list {
		n[x.key] = x.sessions
	}
	return n
}

// TestPinned: a session stays where initialize was answered, with the Host of
// the URL, and new ones go to the address with the fewest.
func TestPinned(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		srv := w.server()
		defer srv.Close()
		var clients []*client
		for range 9 {
			clients = append(clients, open(t, srv))
		}
		perHome := make(map[string]int)
		for _, c := range clients {
			home := c.home()
			perHome[home]++
			if st := c.conn.(upstream.Stateful).State(); st.Address != "http://"+home || st.Session != "sess-"+home {
				t.Errorf("state %+v at %s", st, home)
			}
			for range 20 {
				if got := c.home(); got != home {
					t.Fatalf("moved from %s to %s", home, got)
				}
			}
		}
		for _, s := range sites {
			if perHome[s.addr] != 3 {
				t.Errorf("%d sessions at %s", perHome[s.addr], s.addr)
			}
			for _, r := range s.all("") {
				if r.host != "mcp.test" || r.uri != "/base/mcp?tenant=a%2Fb" || r.what == "tools/list" && r.header.Get("Mcp-Session-Id") != s.session {
					t.Fatalf("%s got %+v", s.addr, r)
				}
			}
		}
		// Two leave one address: the next two go there.
		left := 0
		for _, c := range clients {
			if left < 2 && c.home() == sites[1].addr {
				c.conn.End(upstream.ErrClosed)
				left++
			}
		}
		time.Sleep(farewell)
		synctest.Wait()
		for range 2 {
			if got := open(t, srv).home(); got != sites[1].addr {
				t.Errorf("a new session went to %s", got)
			}
		}
	})
}

// TestDeadAddress: new sessions go elsewhere at once, and a probe brings the
// address back when it is up again.
func TestDeadAddress(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		srv := w.server()
		defer srv.Close()
		sites[0].setUp(false)
		for range 12 {
			if got := open(t, srv).home(); got == sites[0].addr {
				t.Fatal("at the dead one")
			}
		}
		tries := 0
		for _, addr := range w.dialled() {
			if addr == sites[0].addr {
				tries++
			}
		}
		if tries != 1 {
			t.Errorf("the dead one was tried %d times", tries)
		}
		sites[0].setUp(true)
		time.Sleep(2 * time.Second)
		open(t, srv) // makes the probe start
		synctest.Wait()
		if got := open(t, srv).home(); got != sites[0].addr {
			t.Errorf("a new session went to %s", got)
		}
	})
}

// TestProbesAreFew: an address that stays dead is tried ever more seldom,
// however many sessions begin.
func TestProbesAreFew(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		srv := w.server()
		defer srv.Close()
		sites[0].setUp(false)
		for range 600 {
			open(t, srv).conn.End(upstream.ErrClosed)
			time.Sleep(time.Second)
		}
		tries := 0
		for _, addr := range w.dialled() {
			if addr == sites[0].addr {
				tries++
			}
		}
		if tries < 15 || tries > 30 {
			t.Errorf("the dead one was tried %d times in ten minutes", tries)
		}
	})
}

func TestAllDead(t *testing.T) {
	inWorldOf3(t, func(t *testing.T, w *world, sites []*site) {
		srv := w.server()
		defer srv.Close()
		for _, s := range sites {
			s.setUp(false)
		}
		c, reply := begin(t, srv)
		reply.fails("unreachable", "connection refused")
		c.conn.End(upstream.ErrClosed)
		if len(w.dialled()) != 3 {
			t.Errorf("dialled %v", w.dialled())
		}
		sites[2].setUp(true)
		if got := open(t, srv).home(); got != sites[2].addr {
			t.Errorf("at %s", got)
		}
		for key, n := range counts(srv) {
			if n != map[bool]int{true: 1}[key == "http://"+sites[2].addr] {
				t.Errorf("%d sessions at %s", n, key)
			}
		}
	})
}

// TestOwnFault: that there are no descriptors left says nothing of an address,
// nor of a session.
func TestOwnFault(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world, s *site) {
		var broken atomic.Bool
		srv := w.server(func(cfg *Config) {
			cfg.dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if broken.Load() {
					return nil, &net.OpError{Op: "dial", Err: syscall.EMFILE}
				}
				return w.dial(ctx, network, addr)
			}
		})
		defer srv.Close()
		c := open(t, srv)
		time.Sleep(time.Minute) // no idle connection is left
		broken.Store(true)
		sink, _ := c.start(tool)
		sink.fails("unreachable", "too many open files")
		if err := c.send(logMs); upstream.RPCError(err).Reason != "unreachable" {
			t.Errorf("Send: %v", err)
		}
		if srv.addrs.list[0].down {
			t.Error("the address is down")
		}
		broken.Store(false)
		c.home()
	})
}

func TestNames2Addresses(t *testing.T) {
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
