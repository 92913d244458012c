package cluster

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// middle is a TCP proxy before a peer listener, so that the network can fail.
type middle struct {
	net.Listener

	mu    sync.Mutex
	to    string        // address of the peer listener
	hole  chan struct{} // nil: packets pass; else nothing does, until it is closed
	conns []net.Conn
	wg    sync.WaitGroup
}

func newMiddle(t *testing.T) *middle {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &middle{Listener: l}
	m.wg.Go(m.run)
	t.Cleanup(func() { _ = l.Close(); m.kill(); m.wg.Wait() })
	return m
}

func (m *middle) run() {
	for {
		in, err := m.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		to := m.to
		m.mu.Unlock()
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = in.Close()
			continue
		}
		m.mu.Lock()
		m.conns = append(m.conns, in, out)
		m.mu.Unlock()
		m.wg.Go(func() { m.pass(in, out) })
		m.wg.Go(func() { m.pass(out, in) })
	}
}

func (m *middle) pass(to, from net.Conn) {
	defer to.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		m.mu.Lock()
		hole := m.hole
		m.mu.Unlock()
		if hole != nil {
			<-hole
			return
		}
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// swallow makes the network silent: no packet comes through, nobody is told.
func (m *middle) swallow() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hole = make(chan struct{})
}

// kill resets all connections, as the kernel of a killed process does.
func (m *middle) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hole != nil {
		close(m.hole)
		m.hole = nil
	}
	for _, c := range m.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	m.conns = nil
}

const testLease = 2 * time.Second

// behind makes a home replica whose peers reach it through a middle.
func (g *rig) behind(home http.HandlerFunc) (*replica, *middle) {
	m := newMiddle(g.t.(*testing.T))
	g.config = func(c *Config) {
		c.Heartbeat, c.Lease = testLease/4, testLease
		m.mu.Lock()
		m.to, c.Advertise = c.Listener.Addr().String(), m.Addr().String()
		m.mu.Unlock()
	}
	r := g.replica(home)
	g.config = func(c *Config) { c.Heartbeat, c.Lease = testLease/4, testLease }
	return r, m
}

func TestHomeDiesWhileRequestsWait(t *testing.T) {
	for name, fail := range map[string]func(*middle){"killed": (*middle).kill, "silent": (*middle).swallow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			waiting := make(chan struct{}, 2)
			home, m := g.behind(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/stream" {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, "data: one\n\n")
					_ = http.NewResponseController(w).Flush()
				}
				waiting <- struct{}{}
				<-r.Context().Done()
			})
			front := g.replica(nil)
			errs := make(chan error, 2)
			for _, path := range []string{"/stream", "/call"} {
				r := request(t, http.MethodPost, path, "", nil)
				go func() {
					errs <- front.Forward(&recorder{header: make(http.Header)}, r, home.ID(), "p", strings.NewReader("{}"))
				}()
			}
			<-waiting
			<-waiting
			began := time.Now()
			fail(m)
			for range 2 {
				err := <-errs
				var lost *LostError
				if !errors.As(err, &lost) || !errors.Is(err, ErrLost) || lost.Begun != lost.Events {
					t.Errorf("what waited got %#v, want a LostError", err)
				}
			}
			if took := time.Since(began); took > testLease+time.Second {
				t.Errorf("they waited for %v, the lease is %v", took, testLease)
			}
			if n := counted(t, front.metrics.forwards, "lost"); n != 2 {
				t.Errorf("%v counted as lost, want 2", n)
			}
		})
	}
}

// A client that is still sending is told, too, and does not have to go on first.
func TestHomeDiesWhileAClientIsSending(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	reading := make(chan struct{})
	home, m := g.behind(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, 5))
		close(reading)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	front := g.replica(nil)
	body, write := io.Pipe()
	defer write.Close()
	go func() {
		_, _ = io.WriteString(write, "begin")
		<-reading
		m.kill()
	}()
	res := do(t, request(t, http.MethodPost, front.public.URL, home.ID(), body))
	if err := <-front.errs; !errors.Is(err, ErrLost) || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("Forward gave %v, the client got %d", err, res.StatusCode)
	}
}

func TestUnreachableIsNotGone(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	home, m := g.behind(func(w http.ResponseWriter, r *http.Request) {})
	front := g.replica(nil)
	g.settle(front)
	forward := func() error {
		return front.Forward(&recorder{header: make(http.Header)}, request(t, http.MethodGet, "/", "", nil), home.ID(), "p", nil)
	}
	if err := forward(); err != nil {
		t.Fatal(err)
	}
	_ = m.Close()
	m.kill()
	eventually(t, "the connection is seen to be closed", func() bool { return errors.Is(forward(), ErrPeer) })
	if err := forward(); !errors.Is(err, ErrPeer) { // home's heartbeats go on
		t.Errorf("while it is registered: %v, want ErrPeer", err)
	}
	g.registry.Fault(down)
	eventually(t, "the store is out of reach", func() bool { return errors.Is(forward(), session.ErrUnavailable) })
	if alive, err := front.Alive(t.Context(), home.ID()); alive || !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("alive %v, %v", alive, err)
	}
	g.registry.Fault(nil)
	// And dies.
	home.stop()
	<-home.members.done
	eventually(t, "the lease is over", func() bool { return errors.Is(forward(), ErrGone) })
	eventually(t, "its connections are let go", func() bool {
		front.mu.Lock()
		defer front.mu.Unlock()
		return front.pools[home.ID()] == nil
	})
}

func TestOneCutOffFromTheStoreGoesOn(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	lines := make(chan string)
	home, _ := g.behind(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		for line := range lines {
			_, _ = io.WriteString(w, line)
			_ = http.NewResponseController(w).Flush()
		}
	})
	front := g.replica(nil)
	res := do(t, request(t, http.MethodGet, front.public.URL, home.ID(), nil))
	home.stop() // its lease runs out; its server goes on
	eventually(t, "it is taken for dead", func() bool { return !front.members.knows(home.ID()) })
	events := bufio.NewReader(res.Body)
	for range 3 {
		front.prune()
		lines <- "data: still here\n"
		if line, err := events.ReadString('\n'); line != "data: still here\n" || err != nil {
			t.Fatalf("%q, %v", line, err)
		}
	}
	close(lines)
	if rest, err := io.ReadAll(events); len(rest) > 0 || err != nil {
		t.Errorf("at the end: %q, %v", rest, err)
	}
}

func TestReturnIsTold(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	told := make(chan struct{}, 10)
	g.config = func(c *Config) {
		c.Heartbeat, c.Lease = testLease/4, testLease
		c.OnReturn = func(context.Context) { told <- struct{}{} }
	}
	r := g.replica(nil)
	g.registry.Fault(down)
	eventually(t, "the outage is seen", func() bool { return !r.Registered() })
	select {
	case <-told:
		t.Error("told before it returned")
	default:
	}
	g.registry.Fault(nil)
	<-told
	if !r.Registered() {
		t.Error("told before it was registered")
	}
}

func TestPeersAreListed(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	a, b := g.replica(nil), g.replica(nil)
	peers, err := a.Peers(t.Context())
	if err != nil || len(peers) != 2 {
		t.Fatalf("%v, %v", peers, err)
	}
	for _, p := range peers {
		want := Peer{ID: a.ID(), Address: a.peer.Addr().String(), Self: true}
		if p.ID != a.ID() {
			want = Peer{ID: b.ID(), Address: b.peer.Addr().String()}
		}
		if p.Lease <= 0 || p.Lease > DefaultLease {
			t.Errorf("%s has %v of its lease left", p.ID, p.Lease)
		}
		if p.Lease = 0; p != want {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	g.registry.Fault(down)
	if peers, err := a.Peers(t.Context()); !errors.Is(err, session.ErrUnavailable) || len(peers) != 2 {
		t.Errorf("without the store: %v, %v", peers, err)
	}
}
