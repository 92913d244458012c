package auth

import (
	"net/netip"
	"sync"
	"time"
)

// The limit on failed authentications of one client address: failureBurst at
// once, and then one in each failurePace. It exists to bound what bad tokens
// cost; keys are not to be guessed anyway.
const (
	failureBurst = 300
	failurePace  = 200 * time.Millisecond
	maxAddresses = 4096
)

// limiter counts failures by address: an IPv4 address, or the /64 of an IPv6
// address, which is what one client has. What it holds is bounded; when it is
// full an arbitrary address is forgotten.
type limiter struct {
	mu    sync.Mutex
	debt  map[netip.Prefix]time.Time // address to when its failures are forgiven
	swept time.Time
}

func newLimiter() *limiter { return &limiter{debt: make(map[netip.Prefix]time.Time)} }

// blocked returns how long until this address may fail again, 0 for now.
func (l *limiter) blocked(addr netip.Prefix, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.debt[addr]
	if !known {
		return 0
	}
	return max(0, until.Sub(now)-(failureBurst-1)*failurePace)
}

// failed counts one failure.
func (l *limiter) failed(addr netip.Prefix, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	until, known := l.debt[addr]
	if !known && len(l.debt) >= maxAddresses {
		l.makeRoomLocked(now)
	}
	if until.Before(now) {
		until = now
	}
	l.debt[addr] = until.Add(failurePace)
}

// makeRoomLocked forgets what is forgiven, at most once a second, or else one.
func (l *limiter) makeRoomLocked(now time.Time) {
	if now.Sub(l.swept) >= time.Second {
		l.swept = now
		for addr, until := range l.debt {
			if !until.After(now) {
				delete(l.debt, addr)
			}
		}
	}
	if len(l.debt) < maxAddresses {
		return
	}
	for addr := range l.debt {
		delete(l.debt, addr)
		return
	}
}

// networkOf is the key of a limiter for a remote address as net/http gives it.
// What is no IP address (a Unix socket) is one client.
func networkOf(remote string) netip.Prefix {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Prefix{}
	}
	return Network(ap.Addr())
}

// Network is what one client has: an IPv4 address, or the /64 of an IPv6 one.
func Network(addr netip.Addr) netip.Prefix {
	addr, bits := addr.Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	prefix, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
