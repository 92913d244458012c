package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// knock does what a client of the peer listener does, with cert, and returns
// the error of a request, or the response.
func knock(t *testing.T, address string, conf *tls.Config, header http.Header) (*http.Response, error) {
	t.Helper()
	tr := &http2.Transport{TLSClientConfig: conf}
	t.Cleanup(tr.CloseIdleConnections)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/mcp", nil)
	if header != nil {
		req.Header = header
	}
	res, err := tr.RoundTrip(req)
	if err == nil {
		t.Cleanup(func() { _ = res.Body.Close() })
	}
	return res, err
}

func TestStrangersAtThePeerListener(t *testing.T) {
	t.Parallel()
	own, print, err := newCertificate()
	if err != nil {
		t.Fatal(err)
	}
	forged := registration{id: "forged-forged-forged-1", address: "127.0.0.1:9", fingerprint: print}
	for name, c := range map[string]struct {
		prepare func(g *rig, victim *replica)
		conf    *tls.Config
		reason  string
	}{
		"no certificate":  {nil, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}, refusedNoCert},
		"own certificate": {nil, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own}}, refusedUnknown},
		"TLS 1.2":         {nil, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own}, MaxVersion: tls.VersionTLS12}, refusedHandshake},
		"HTTP/1.1":        {nil, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{own}}, refusedProtocol},
		"store out of reach": {func(g *rig, _ *replica) { g.registry.Fault(down) },
			&tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own}}, refusedStore},
		"forged registration": {func(g *rig, _ *replica) {
			_ = g.registry.Put(t.Context(), forged.id, forged.encode([]byte("not the secret")), time.Hour)
		}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own}}, refusedUnknown},
		"a registration of the right secret under another id": {func(g *rig, _ *replica) {
			_ = g.registry.Put(t.Context(), "another", forged.encode(testKey), time.Hour)
		}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{own}}, refusedUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			victim := g.replica(func(http.ResponseWriter, *http.Request) { t.Error("a stranger was served") })
			if c.prepare != nil {
				c.prepare(g, victim)
			}
			if name == "HTTP/1.1" {
				if conn, err := tls.Dial("tcp", victim.peer.Addr().String(), c.conf); err == nil {
					_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
					if b, _ := io.ReadAll(conn); len(b) > 0 {
						t.Errorf("answered %q", b)
					}
					_ = conn.Close()
				}
			} else if _, err := knock(t, victim.peer.Addr().String(), c.conf, nil); err == nil {
				t.Error("admitted")
			}
			eventually(t, "it is counted as "+c.reason, func() bool { return counted(t, victim.metrics.refused, c.reason) >= 1 })
		})
	}
}

func TestPlainTextAtThePeerListener(t *testing.T) {
	t.Parallel()
	victim := newRig(t).replica(nil)
	conn, err := net.Dial("tcp", victim.peer.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "GET /mcp HTTP/1.1\r\nHost: x\r\nSignalbox-Peer-Principal: eA\r\n\r\n")
	if b, _ := io.ReadAll(conn); strings.Contains(string(b), " 200 ") {
		t.Errorf("answered %q", b)
	}
	eventually(t, "it is counted", func() bool { return counted(t, victim.metrics.refused, refusedHandshake) == 1 })
}

// A peer that is one, with headers that make no sense.
func TestPeerHeadersMustMakeSense(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	victim := g.replica(func(http.ResponseWriter, *http.Request) { t.Error("served") })
	own, print, _ := newCertificate()
	id := session.NewID()
	_ = g.registry.Put(t.Context(), id, registration{id: id, address: "127.0.0.1:9", fingerprint: print}.encode(testKey), time.Hour)
	conf := clientTLS(&own, victim.members.self.fingerprint)
	for i, h := range []http.Header{
		{},
		{headerHop: {"1"}, headerPrincipal: {"eA"}},
		{headerHop: {"2"}, headerPrincipal: {"eA"}, headerRemote: {"x"}},
		{headerHop: {"1", "1"}, headerPrincipal: {"eA"}, headerRemote: {"x"}},
		{headerHop: {"1"}, headerPrincipal: {"not base64!"}, headerRemote: {"x"}},
		{headerHop: {"1"}, headerPrincipal: {"eA", "eQ"}, headerRemote: {"x"}},
	} {
		res, err := knock(t, victim.peer.Addr().String(), conf, h)
		if err != nil || res.StatusCode != http.StatusBadRequest {
			t.Fatalf("%v: %v, %v", h, res, err)
		}
		if n := counted(t, victim.metrics.refused, refusedHeaders); n != float64(i+1) {
			t.Errorf("%v refusals counted after %d", n, i+1)
		}
	}
}

func TestForgedHome(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	home, front := g.replica(func(http.ResponseWriter, *http.Request) { t.Error("served") }), g.replica(nil)
	forward := func(id string) error {
		return front.Forward(&recorder{header: make(http.Header)}, request(t, http.MethodGet, "/", "", nil), id, "p", nil)
	}
	put := func(id string, value []byte) {
		t.Helper()
		if err := g.registry.Put(t.Context(), id, value, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	// Somebody without the secret says where a replica is.
	put("forged\nlog line", registration{id: "forged\nlog line", address: home.peer.Addr().String(), fingerprint: home.members.self.fingerprint}.encode([]byte("guess")))
	// The registration of a living one, under another id.
	value, err := g.registry.Get(t.Context(), home.ID())
	if err != nil {
		t.Fatal(err)
	}
	put("replayed", value)
	for _, id := range []string{"forged\nlog line", "replayed"} {
		for range 3 {
			if err := forward(id); !errors.Is(err, ErrPeer) {
				t.Errorf("%q: %v, want ErrPeer", id, err)
			}
		}
		if alive, err := front.Alive(t.Context(), id); alive || !errors.Is(err, ErrPeer) {
			t.Errorf("%q: alive %v, %v", id, alive, err)
		}
	}
	for _, reason := range []error{errMAC, errOtherID} {
		if n := counted(t, front.metrics.refused, reason.Error()); n != 1 {
			t.Errorf("%v counted %v times, want once", reason, n)
		}
		if n := strings.Count(front.log.String(), reason.Error()); n != 1 {
			t.Errorf("%v stands %d times in the log, want once:\n%s", reason, n, front.log)
		}
	}
	// The right secret, but another process answers at that address.
	_, other, _ := newCertificate()
	id := session.NewID()
	put(id, registration{id: id, address: home.peer.Addr().String(), fingerprint: other}.encode(testKey))
	if err := forward(id); !errors.Is(err, ErrPeer) || counted(t, front.metrics.refused, refusedPin) != 1 {
		t.Errorf("a peer with another certificate: %v", err)
	}
}

func TestStripPeerHeaders(t *testing.T) {
	for _, c := range []struct {
		in   http.Header
		want bool
	}{
		{http.Header{"Accept": {"x"}}, false},
		{http.Header{"Accept": {"x"}, headerPrincipal: {"eA"}}, true},
		{http.Header{"Accept": {"x"}, "signalbox-peer-principal": {"eA"}, "SIGNALBOX-PEER-HOP": {"1"}, "Signalbox-Peer-": {""}}, true},
	} {
		if got := StripPeerHeaders(c.in); got != c.want || len(c.in) != 1 || c.in.Get("Accept") != "x" {
			t.Errorf("%v, %v left", got, c.in)
		}
	}
	if who, ok := FromPeer(t.Context()); ok || who != "" {
		t.Error("a request of a client is from a peer")
	}
}

func TestTheSecretIsInNoLog(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	_ = g.registry.Put(t.Context(), "forged", []byte{1, 2, 3}, time.Hour)
	r := g.replica(nil)
	eventually(t, "the forged one is seen", func() bool { return strings.Contains(r.log.String(), "forged") })
	if strings.Contains(r.log.String(), string(testSecret)) {
		t.Error("the secret is in the log")
	}
}
