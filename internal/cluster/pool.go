package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

const (
	dialTimeout      = 2 * time.Second
	handshakeTimeout = 3 * time.Second // TLS; and again for admission and the answer to a first ping
	maxConns         = 16              // to one peer, each with maxStreams
	maxStreams       = 1000            // forwarded requests at once on one connection
	frameSize        = 128 << 10
	streamWindow     = 1 << 20   // bytes on their way to a reader that is behind
	connWindow       = 64 << 20  // of all requests to a home; each is read as fast as its handler wants
	headerLimit      = 256 << 10 // what clients may send (64 KiB), and a long principal
)

// pings are the settings by which both sides notice that the other is dead: one
// that is silent is soon asked by a ping, and given up a little before its lease
// can be over. So nobody waits longer for a dead peer, and one that is only slow
// has all the time that there is.
func pings(lease time.Duration) (silent, unanswered, unwritten time.Duration) {
	return lease * 2 / 10, lease * 7 / 10, lease * 9 / 10
}

// newTransport makes what turns a TLS connection into an HTTP/2 one.
//
// It is golang.org/x/net/http2 and not the copy in net/http, on both sides: that
// one hides Ping, by which a dial knows that the peer has admitted this side (in
// TLS 1.3 a client is done before its certificate has been looked at), and
// SetDoNotReuse, which lets a connection end with its last request; and it takes
// no connection that is not bare TLS (see peerConn).
func newTransport(lease time.Duration) (*http2.Transport, error) {
	// The window of a whole connection stays at the default, 1 GiB: it may not be
	// full of what a few slow clients have not taken.
	t, err := http2.ConfigureTransports(&http.Transport{HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: streamWindow}})
	if err != nil {
		return nil, err
	}
	t.DisableCompression = true
	t.MaxHeaderListSize = headerLimit
	t.MaxReadFrameSize = frameSize
	t.ReadIdleTimeout, t.PingTimeout, t.WriteByteTimeout = pings(lease)
	return t, nil
}

// pool is the connections to one peer.
type pool struct {
	// Static after construction.
	node    *Node
	address string
	tls     *tls.Config

	mu      sync.Mutex
	conns   []*http2.ClientConn
	dialing *dialing // nil: none is under way
	retired bool     // no longer in the node's table
}

// dialing is one dial that all who need a connection wait for.
type dialing struct {
	done chan struct{}
	err  error // set before done is closed
}

var (
	errBusy = fmt.Errorf("%w: it has too many requests of this replica", ErrPeer)
	errLeft = fmt.Errorf("%w: one of the two is leaving", ErrPeer)
)

// acquire returns a connection with room for one request, which is reserved for
// the caller: exactly one RoundTrip must follow. Errors: ErrPeer, or ctx's.
func (p *pool) acquire(ctx context.Context) (*http2.ClientConn, error) {
	for {
		p.mu.Lock()
		if p.retired {
			p.mu.Unlock()
			return nil, errLeft
		}
		cc := p.reserveLocked()
		if cc != nil {
			p.mu.Unlock()
			return cc, nil
		}
		if p.dialing == nil && len(p.conns) >= maxConns {
			p.mu.Unlock()
			return nil, errBusy
		}
		if p.dialing == nil {
			p.dialing = &dialing{done: make(chan struct{})}
			d := p.dialing
			if !p.node.start(func() { p.dial(d) }) {
				p.dialing = nil
				p.mu.Unlock()
				return nil, errLeft
			}
		}
		d := p.dialing
		p.mu.Unlock()
		select {
		case <-d.done:
			if d.err != nil {
				return nil, fmt.Errorf("%w: %w", ErrPeer, d.err)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// reserveLocked finds room on a connection, and drops those that are closed.
func (p *pool) reserveLocked() *http2.ClientConn {
	var found *http2.ClientConn
	kept := p.conns[:0]
	for _, cc := range p.conns {
		if found == nil && cc.ReserveNewRequest() {
			found = cc
		} else if found == nil && cc.State().Closed {
			continue
		}
		kept = append(kept, cc)
	}
	clear(p.conns[len(kept):])
	p.conns = kept
	return found
}

// dial opens a connection. It is a goroutine of the node, bound to no request.
func (p *pool) dial(d *dialing) {
	cc, err := p.connect()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil && p.retired:
		_ = cc.Close()
		err = errLeft
	case err == nil:
		p.conns = append(p.conns, cc)
	}
	d.err = err
	p.dialing = nil
	close(d.done)
}

func (p *pool) connect() (*http2.ClientConn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	raw, err := dialer.DialContext(p.node.members.life, "tcp", p.address)
	if err != nil {
		return nil, err
	}
	cc, err := p.handshake(raw)
	if err != nil {
		_ = raw.Close()
	}
	return cc, err
}

// handshake makes an HTTP/2 connection of raw, and waits until the peer has
// admitted this side.
func (p *pool) handshake(raw net.Conn) (*http2.ClientConn, error) {
	ctx, cancel := context.WithTimeout(p.node.members.life, handshakeTimeout)
	defer cancel()
	b := newBatch(raw)
	conn := tls.Client(b, p.tls)
	if err := conn.HandshakeContext(ctx); err != nil {
		if errors.Is(err, errPin) {
			p.node.metrics.refuse(refusedPin)
		}
		return nil, err
	}
	cc, err := p.node.transport.NewClientConn(peerConn{conn, b})
	if err != nil {
		return nil, err
	}
	ctx, cancel = context.WithTimeout(p.node.members.life, handshakeTimeout)
	defer cancel()
	if err := cc.Ping(ctx); err != nil {
		_ = cc.Close()
		return nil, fmt.Errorf("not admitted: %w", err)
	}
	return cc, nil
}

// retire lets the connections end with their requests: a peer that lost its
// lease may be alive, and what it is busy with goes on. It tells whether the
// pool is empty, and then it is of no use any more.
func (p *pool) retire() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.conns[:0]
	for _, cc := range p.conns {
		cc.SetDoNotReuse()
		st := cc.State()
		if !st.Closed && st.StreamsActive+st.StreamsReserved+st.StreamsPending > 0 {
			kept = append(kept, cc)
		} else {
			_ = cc.Close()
		}
	}
	clear(p.conns[len(kept):])
	p.conns = kept
	p.retired = len(kept) == 0 && p.dialing == nil
	return p.retired
}

// close ends all connections, and what is on them.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for _, cc := range p.conns {
		_ = cc.Close()
	}
	p.conns = nil
}
