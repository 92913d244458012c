package h1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Pool keeps idle connections to one address.
type Pool struct {
	// static
	addr    string // HOST:PORT to dial
	tls     *tls.Config
	dialTCP func(ctx context.Context, network, addr string) (net.Conn, error)
	maxIdle int
	maxAge  time.Duration // idle for longer: not used again

	mu     sync.Mutex
	closed bool
	age    int     // raised by Doubt
	idle   []*Conn // the one used last at the end
	open   map[*Conn]struct{}
	timer  *time.Timer // runs sweep while there is something idle; nil before the first
	armed  bool
}

// Options of a pool; zero values are the defaults.
type Options struct {
	TLS     *tls.Config   // nil: plain TCP. ServerName must be set
	MaxIdle int           // 512
	MaxAge  time.Duration // 20 s: below the idle time of common servers
	// Dial opens the connection below TLS; nil: TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// dialTimeout bounds the connection and the TLS handshake together.
const dialTimeout = 10 * time.Second

// NewPool makes a pool for addr, HOST:PORT.
func NewPool(addr string, o Options) *Pool {
	p := &Pool{addr: addr, tls: o.TLS, dialTCP: o.Dial, maxIdle: o.MaxIdle, maxAge: o.MaxAge, open: make(map[*Conn]struct{})}
	if p.maxIdle == 0 {
		p.maxIdle = 512
	}
	if p.maxAge == 0 {
		p.maxAge = 20 * time.Second
	}
	if p.dialTCP == nil {
		p.dialTCP = (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext
	}
	return p
}

// ErrClosed is what Get returns after Close.
var ErrClosed = errors.New("h1: pool is closed")

// Get returns an idle connection, or dials. fresh asks for a new one.
func (p *Pool) Get(ctx context.Context, fresh bool) (*Conn, error) {
	if c := p.Idle(fresh); c != nil {
		return c, nil
	}
	return p.Dial(ctx)
}

// Idle returns a connection that has been idle and is open still; nil where
// there is none, or a fresh one is asked for.
func (p *Pool) Idle(fresh bool) *Conn {
	for !fresh {
		c := p.pop()
		if c == nil {
			break
		}
		if c.fresh(p.maxAge) && c.stillOpen() {
			c.Reused = true
			return c
		}
		p.Drop(c)
	}
	return nil
}

func (p *Pool) pop() *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle)
	if n == 0 {
		return nil
	}
	c := p.idle[n-1]
	p.idle[n-1] = nil
	p.idle = p.idle[:n-1]
	return c
}

// Dial makes a new connection.
func (p *Pool) Dial(ctx context.Context) (*Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	socket, err := p.dialTCP(ctx, "tcp", p.addr)
	if err != nil {
		return nil, err
	}
	raw := socket
	if p.tls != nil {
		t := tls.Client(socket, p.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = socket.Close()
			return nil, fmt.Errorf("TLS: %w", err)
		}
		raw = t
	}
	c := newConn(raw, socket)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.Abort()
		return nil, ErrClosed
	}
	p.open[c] = struct{}{}
	c.age = p.age
	return c, nil
}

// Put takes a connection back. It is kept if the answer was read to its end
// and the server keeps it open, else closed.
func (p *Pool) Put(c *Conn) {
	c.waiter = nil
	if !c.reusable {
		p.Drop(c)
		return
	}
	// One that runs out while the connection is idle would make it look closed.
	c.SetDeadline(time.Time{})
	c.idleSince = time.Now()
	var old *Conn
	p.mu.Lock()
	if p.closed || c.age != p.age {
		old = c
	} else {
		if p.idle = append(p.idle, c); len(p.idle) > p.maxIdle {
			old = p.idle[0]
			p.idle = slices.Delete(p.idle, 0, 1)
		}
		p.armLocked()
	}
	p.mu.Unlock()
	if old != nil {
		p.Drop(old)
	}
}

// Drop closes a connection for good.
func (p *Pool) Drop(c *Conn) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
	_ = c.raw.Close()
}

// Doubt closes what is idle, and keeps no connection that is in use now. It is
// for whoever met the end of one in the middle of an exchange: the others may
// be about to end too, where the server was killed, and not show it yet.
func (p *Pool) Doubt() {
	p.mu.Lock()
	p.age++
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, c := range idle {
		p.Drop(c)
	}
}

func (p *Pool) armLocked() {
	if p.armed {
		return
	}
	p.armed = true
	if p.timer == nil {
		p.timer = time.AfterFunc(p.maxAge, p.sweep)
	} else {
		p.timer.Reset(p.maxAge)
	}
}

// sweep closes what has been idle too long: it would hold a descriptor here
// and, where the server has closed it, there.
func (p *Pool) sweep() {
	var old []*Conn
	p.mu.Lock()
	p.armed = false
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.idle = slices.DeleteFunc(p.idle, func(c *Conn) bool {
		if c.fresh(p.maxAge) {
			return false
		}
		old = append(old, c)
		return true
	})
	if len(p.idle) > 0 {
		p.armLocked()
	}
	p.mu.Unlock()
	for _, c := range old {
		p.Drop(c)
	}
}

// Close closes every connection, also those in use.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	open := p.open
	p.open = make(map[*Conn]struct{})
	p.idle = nil
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	for c := range open {
		c.Abort()
	}
}

// Stats are the connections that are open, and those of them that are idle.
func (p *Pool) Stats() (open, idle int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open), len(p.idle)
}
