package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"

	"github.com/signalbox-mcp/signalbox/internal/session"
)

// Defaults of Config.
const (
	DefaultHeartbeat    = 3 * time.Second
	DefaultLease        = 10 * time.Second
	defaultWriteTimeout = 30 * time.Second
)

// Config sets a Node up. Registry, Secret, Listener, Handler, Log and Metrics
// are required.
type Config struct {
	Registry Registry
	Secret   []byte       // shared by all replicas; at least MinSecret bytes
	Listener net.Listener // for peers, plain TCP; the Node closes it
	// Advertise is the host:port that others dial; "": the listener's address,
	// where that is one.
	Advertise string
	// Handler serves requests that other replicas forwarded; FromPeer has their
	// principal, RemoteAddr is the client's.
	Handler http.Handler
	// OnReturn is called each time this replica is registered again after it was
	// not, or could not tell: others may have ended sessions of it meanwhile. One
	// call at a time; ctx ends when the Node leaves. May be nil.
	OnReturn func(ctx context.Context)

	Heartbeat    time.Duration // 0: DefaultHeartbeat
	Lease        time.Duration // 0: DefaultLease; at least 2 heartbeats
	WriteTimeout time.Duration // for each write to a client; 0: 30 s
	Log          *slog.Logger
	Metrics      *Metrics
}

// Node is this replica among the others.
type Node struct {
	// Static after construction.
	members      *members
	server       *server
	transport    *http2.Transport
	cert         tls.Certificate
	handler      http.Handler
	writeTimeout time.Duration
	log          *slog.Logger
	metrics      *Metrics
	stop         context.CancelFunc // ends members.life
	leave        sync.Once

	tasks struct { // goroutines that Leave waits for
		mu     sync.Mutex
		closed bool
		wg     sync.WaitGroup
	}

	mu    sync.Mutex
	pools map[string]*pool // id of a peer → connections to it
}

// Join makes a new identity, listens for peers and registers. The store need
// not be in reach yet: see Registered. An error is one of the settings; then the
// listener is as it was.
func Join(cfg Config) (*Node, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	cert, print, err := newCertificate()
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(cfg.Lease)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.Background())
	self := registration{id: session.NewID(), address: cfg.Advertise, fingerprint: print}
	n := &Node{
		members:   newMembers(life, &cfg, self, derive(cfg.Secret, "signalbox/cluster/registration/v1")),
		transport: transport, cert: cert, handler: cfg.Handler, writeTimeout: cfg.WriteTimeout,
		log: cfg.Log, metrics: cfg.Metrics, stop: stop, pools: make(map[string]*pool),
	}
	n.members.listedHook = n.prune
	n.server, err = newServer(cfg.Listener, &cert, http.HandlerFunc(n.servePeer), n.members)
	if err != nil {
		stop()
		return nil, err
	}
	n.start(n.server.run)
	n.start(n.members.run)
	if cfg.OnReturn != nil {
		n.start(func() { n.watchReturns(cfg.OnReturn) })
	}
	return n, nil
}

// complete fills defaults in, and says what cannot be.
func (cfg *Config) complete() error {
	if len(cfg.Secret) < MinSecret {
		return fmt.Errorf("the peer secret needs %d bytes at least", MinSecret)
	}
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = DefaultHeartbeat
	}
	if cfg.Lease == 0 {
		cfg.Lease = DefaultLease
	}
	if cfg.WriteTimeout == 0 {
		cfg.WriteTimeout = defaultWriteTimeout
	}
	if cfg.Heartbeat < 0 || cfg.Lease < 2*cfg.Heartbeat {
		return fmt.Errorf("a lease of %v is too short for a heartbeat of %v", cfg.Lease, cfg.Heartbeat)
	}
	if cfg.Advertise == "" {
		cfg.Advertise = cfg.Listener.Addr().String()
	}
	if err := checkAddress(cfg.Advertise); err != nil {
		return fmt.Errorf("other replicas cannot dial %q: %w (set --advertise HOST:PORT)", cfg.Advertise, err)
	}
	return nil
}

// start runs f as a goroutine that Leave waits for, unless that is under way.
func (n *Node) start(f func()) bool {
	n.tasks.mu.Lock()
	defer n.tasks.mu.Unlock()
	if !n.tasks.closed {
		n.tasks.wg.Go(f)
	}
	return !n.tasks.closed
}

func (n *Node) watchReturns(hook func(context.Context)) {
	for {
		select {
		case <-n.members.back:
			hook(n.members.life)
		case <-n.members.life.Done():
			return
		}
	}
}

// ID is the identity of this replica, random at each start: what a record's
// Home is for its sessions.
func (n *Node) ID() string { return n.members.self.id }

// Registered tells whether this replica's registration is in the store, as far
// as the last heartbeat knows. Until it is for the first time this replica is
// not ready: others would take it for dead, and its sessions for lost.
func (n *Node) Registered() bool { return n.members.registered() }

// Alive tells whether the replica id is registered, by an answer of the store
// that is at most 1 s old for yes, and new for no. Errors: ErrPeer where its
// registration is forged, session.ErrUnavailable.
func (n *Node) Alive(ctx context.Context, id string) (bool, error) {
	if id == n.ID() {
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		return false, unavailable(err)
	}
	_, err := n.members.lookup(id)
	if errors.Is(err, ErrGone) {
		return false, nil
	}
	return err == nil, err
}

// Peer is a replica, for people to look at.
type Peer struct {
	ID      string
	Address string // host:port of its peer listener
	Self    bool
	Lease   time.Duration // what is left of its registration; 0: the store cannot tell
}

// Peers returns all registered replicas, this one included, by id. With
// session.ErrUnavailable they are those known from before.
func (n *Node) Peers(ctx context.Context) ([]Peer, error) {
	_, err := n.members.list()
	peers := n.members.peers()
	peers = append(peers, Peer{ID: n.ID(), Address: n.members.self.address, Self: true})
	for i := range peers {
		if err == nil {
			peers[i].Lease, err = n.members.left(ctx, peers[i].ID)
		}
	}
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(a.ID, b.ID) })
	return peers, err
}

// poolOf returns the connections to a peer.
func (n *Node) poolOf(r registration) *pool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pools[r.id]
	if p == nil {
		p = &pool{node: n, address: r.address, tls: clientTLS(&n.cert, r.fingerprint)}
		n.pools[r.id] = p
	}
	return p
}

// prune lets go of connections to replicas that are no longer registered.
func (n *Node) prune() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, p := range n.pools {
		if !n.members.knows(id) && p.retire() {
			delete(n.pools, id)
		}
	}
}

// Leave takes the registration back, so that others know at once, then takes no
// new requests of peers and waits for those in flight, until ctx ends: then
// they are cut off. Requests that this replica has forwarded are cut off after
// that, so let the public listener drain first. It may be called again, and
// waits then until the first call is done.
func (n *Node) Leave(ctx context.Context) {
	n.leave.Do(func() {
		n.stop()
		removing, cancel := context.WithTimeout(ctx, storeTimeout)
		defer cancel()
		n.tasks.mu.Lock()
		n.tasks.closed = true
		n.tasks.mu.Unlock()
		<-n.members.done // no heartbeat may register again what is removed
		if err := n.members.registry.Remove(removing, n.ID()); err != nil {
			n.log.Warn("the registration of this replica stays in the store until its lease is over", "err", err)
		}
		n.server.end(ctx)
		n.mu.Lock()
		for id, p := range n.pools {
			p.close()
			delete(n.pools, id)
		}
		n.mu.Unlock()
		n.tasks.wg.Wait()
	})
}
