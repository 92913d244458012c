package remote

import (
	"context"
	"fmt"
	"net"
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
			if st := c.conn.(upstream.Movable).State(); st.Address != "http://"+home || st.Session != "sess-"+home || !c.conn.(upstream.Movable).Moves() {
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
