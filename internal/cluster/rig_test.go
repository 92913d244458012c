package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

var testSecret = bytes.Repeat([]byte{7}, MinSecret)

// replica is a Node and a public listener whose handler forwards everything to
// whom the header To names, as principal of the header As.
type replica struct {
	*Node
	public *httptest.Server
	peer   net.Listener
	errs   chan error // of Forward, as far as they are not nil
	log    *logBuffer
	// principal, if set, is whom Forward is told, in place of As.
	principal atomic.Pointer[string]
}

type rig struct {
	t        testing.TB
	registry *Memory
	config   func(*Config) // may change what a test needs
}

func newRig(t testing.TB) *rig { return &rig{t: t, registry: new(Memory)} }

// replica starts one; home serves what is forwarded to it.
func (g *rig) replica(home http.HandlerFunc) *replica {
	g.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	r := &replica{peer: l, errs: make(chan error, 100), log: new(logBuffer)}
	cfg := Config{
		Registry: g.registry, Secret: testSecret, Listener: l, Handler: home,
		Log: slog.New(slog.NewTextHandler(r.log, nil)), Metrics: NewMetrics(),
	}
	if home == nil {
		cfg.Handler = http.NotFoundHandler()
	}
	if g.config != nil {
		g.config(&cfg)
	}
	if r.Node, err = Join(cfg); err != nil {
		g.t.Fatal(err)
	}
	r.public = httptest.NewServer(http.HandlerFunc(r.forwardAll))
	g.t.Cleanup(func() {
		r.public.CloseClientConnections()
		r.public.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		r.Leave(ctx)
	})
	eventually(g.t, "the replica is registered", r.Registered)
	return r
}

// settle makes all of rs believe the store when it says that one is gone.
func (g *rig) settle(rs ...*replica) {
	for _, r := range rs {
		r.members.mu.Lock()
		r.members.trust = time.Now()
		r.members.mu.Unlock()
	}
}

func (r *replica) forwardAll(w http.ResponseWriter, req *http.Request) {
	StripPeerHeaders(req.Header)
	to, as := req.Header.Get("To"), req.Header.Get("As")
	req.Header.Del("To")
	req.Header.Del("As")
	if p := r.principal.Load(); p != nil {
		as = *p
	}
	err := r.Forward(w, req, to, as, nil)
	if err == nil {
		return
	}
	select {
	case r.errs <- err:
	default:
	}
	var lost *LostError
	if !errors.As(err, &lost) || !lost.Begun {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	panic(http.ErrAbortHandler)
}

// eventually waits for what no channel tells.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("it never came that %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}
