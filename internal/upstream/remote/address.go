package remote

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/h1"
)

// address is one IP address and port behind a server. Guarded by addresses.mu
// where not static.
type address struct {
	key     string // scheme://ip:port
	pool    *h1.Pool
	brokeAt atomic.Pointer[time.Time] // when a connection last ended under a call without a session; nil: never

	sessions int  // and open calls without one
	gone     bool // the names no longer lead to it: only sessions that it has use it
	down     bool // it could not be connected to
	probeAt  time.Time
	probing  bool
	fails    int
}

// addresses are all the places where a server is found: of its URL, or of the
// configured endpoints, or behind a DNS name. Names are resolved anew when a
// session begins and the last look is old.
type addresses struct {
	// static
	bases   []*url.URL
	options h1.Options // of the pools; TLS only for https
	tls     *tls.Config
	resolve func(ctx context.Context, host string) ([]string, error)
	spawn   func(func()) bool // runs a probe in the background
	ctx     context.Context

	mu        sync.Mutex
	list      []*address
	looked    time.Time
	resolving bool
	next      int // round robin among equals
}

const (
	resolveEvery   = 10 * time.Second
	resolveTimeout = 10 * time.Second
	probeMin       = time.Second
	probeMax       = 30 * time.Second
)

// newAddresses: Host header and TLS name are those of the server's URL,
// whatever is dialled.
func newAddresses(cfg *Config) *addresses {
	a := &addresses{bases: cfg.Endpoints, resolve: cfg.resolve, options: h1.Options{Dial: cfg.dial}}
	if len(a.bases) == 0 {
		a.bases = []*url.URL{cfg.URL}
	}
	if a.resolve == nil {
		a.resolve = net.DefaultResolver.LookupHost
	}
	a.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.TLS != nil {
		a.tls = cfg.TLS.Clone()
	}
	a.tls.ServerName = cfg.URL.Hostname()
	a.tls.NextProtos = []string{"http/1.1"}
	return a
}

// refresh resolves the names when it is time, or when force is set. While the
// names cannot be resolved, or another refresh is at it, the old addresses are
// the best guess.
func (a *addresses) refresh(ctx context.Context, force bool) error {
	a.mu.Lock()
	known := len(a.list) > 0
	if known && (a.resolving || !force && time.Since(a.looked) < resolveEvery) {
		a.mu.Unlock()
		return nil
	}
	a.resolving = true
	a.mu.Unlock()
	found, order, failure := a.lookUp(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resolving = false
	if len(found) == 0 {
		if len(a.list) == 0 {
			return fmt.Errorf("no address: %w", failure)
		}
		a.looked = time.Now() // not again for each session: a broken resolver is slow
		return nil
	}
	a.looked = time.Now()
	a.list = slices.DeleteFunc(a.list, func(x *address) bool {
		_, still := found[x.key]
		delete(found, x.key)
		x.gone = !still
		if x.gone && x.sessions == 0 && !x.probing {
			x.pool.Close()
			return true
		}
		return false
	})
	for _, key := range order {
		if dial, isNew := found[key]; isNew {
			a.list = append(a.list, a.newAddress(key, dial))
		}
	}
	return nil
}

// ready is refresh for a call that waits: old addresses are looked up anew in the
// background. It calls before first if there are none yet.
func (a *addresses) ready(before func()) error {
	a.mu.Lock()
	known := len(a.list) > 0
	due := !a.resolving && time.Since(a.looked) >= resolveEvery
	a.mu.Unlock()
	switch {
	case !known:
		before()
		return a.refresh(a.ctx, false)
	case due:
		a.spawn(func() { _ = a.refresh(a.ctx, false) })
	}
	return nil
}

// lookUp finds HOST:PORT of each address by its key.
func (a *addresses) lookUp(ctx context.Context) (found map[string]string, order []string, failure error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found = make(map[string]string)
	for _, u := range a.bases {
		ips, err := a.resolve(ctx, u.Hostname())
		if err != nil {
			failure = err
			continue
		}
		for _, ip := range ips {
			dial := net.JoinHostPort(ip, port(u))
			if key := u.Scheme + "://" + dial; found[key] == "" {
				found[key] = dial
				order = append(order, key)
			}
		}
	}
	return found, order, failure
}

func (a *addresses) newAddress(key, dial string) *address {
	o := a.options
	if key[:5] == "https" {
		o.TLS = a.tls
	}
	return &address{key: key, pool: h1.NewPool(dial, o)}
}

// pick takes the address with the fewest sessions of those that are up; not is
// left out. The session counts from now on. Where all are down, any is better
// than none.
func (a *addresses) pick(not map[*address]bool) *address {
	a.mu.Lock()
	var best *address
	var probes []*address
	now := time.Now()
	a.next++
	for i := range a.list {
		x := a.list[(i+a.next)%len(a.list)]
		if x.gone || not[x] {
			continue
		}
		if x.down && !x.probing && !now.Before(x.probeAt) {
			x.probing = true
			probes = append(probes, x)
		}
		if best == nil || better(x, best) {
			best = x
		}
	}
	if best != nil {
		best.sessions++
	}
	a.mu.Unlock()
	for _, x := range probes {
		if !a.spawn(func() { a.probe(x) }) {
			a.probed(x)
		}
	}
	return best
}

func better(x, y *address) bool {
	switch {
	case x.down != y.down:
		return y.down
	case x.down:
		return x.probeAt.Before(y.probeAt)
	}
	return x.sessions < y.sessions
}

// probe brings an address back that can be connected to again. No session is
// used to find that out: its client might wait for long.
func (a *addresses) probe(x *address) {
	defer a.probed(x)
	h, err := x.pool.Get(a.ctx, true)
	if err != nil {
		a.failed(x)
		return
	}
	x.pool.Drop(h)
	a.worked(x)
}

func (a *addresses) probed(x *address) {
	a.mu.Lock()
	x.probing = false
	a.mu.Unlock()
}

// find is the address of a stored key, if it is still one of the server's own.
func (a *addresses) find(key string) *address {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.list {
		if x.key == key && !x.gone {
			x.sessions++
			return x
		}
	}
	return nil
}

func (a *addresses) release(x *address) {
	a.mu.Lock()
	x.sessions--
	a.mu.Unlock()
}

// retain counts one more session at x.
func (a *addresses) retain(x *address) {
	a.mu.Lock()
	x.sessions++
	a.mu.Unlock()
}

// failed notes that x could not be connected to. Several who find that out at
// once count as one.
func (a *addresses) failed(x *address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	if x.down && now.Before(x.probeAt) {
		return
	}
	x.down = true
	x.probeAt = now.Add(min(probeMin<<min(x.fails, 8), probeMax))
	x.fails++
}

func (a *addresses) worked(x *address) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x.down, x.fails = false, 0
}

func (a *addresses) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range a.list {
		x.pool.Close()
	}
}

// AddressState is one address of a server.
type AddressState struct {
	Address  string // scheme://ip:port
	Down     bool   // it could not be connected to, and is probed
	Sessions int    // of this process, and open requests without one
}

// Addresses are those that are known by now: none before the first session.
func (s *Server) Addresses() []AddressState {
	s.addrs.mu.Lock()
	defer s.addrs.mu.Unlock()
	list := make([]AddressState, len(s.addrs.list))
	for i, a := range s.addrs.list {
		list[i] = AddressState{a.key, a.down, a.sessions}
	}
	return list
}
