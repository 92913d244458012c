package front

import (
	"container/list"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-mcp/signalbox/internal/auth"
)

// maxBuckets bounds the principals whose rate is remembered. Beyond it the one
// that has asked for nothing the longest begins anew.
const maxBuckets = 16 << 10

// requester is whose requests are counted together: a principal, or, where all
// are anonymous, a client address.
type requester struct {
	principal string
	network   netip.Prefix
}

// rates holds a token bucket for each requester.
type rates struct {
	limit  rate.Limit
	burst  int
	refill time.Duration // after it an unused bucket is as good as a new one

	mu      sync.Mutex
	buckets map[requester]*list.Element // of *bucket
	used    list.List                   // the last used first
}

type bucket struct {
	of     requester
	tokens *rate.Limiter
	last   time.Time
}

// newRates allows perSecond requests a second, and twice as many at once, at
// least 10. It is nil where perSecond is 0: everything is allowed.
func newRates(perSecond int) *rates {
	if perSecond == 0 {
		return nil
	}
	burst := max(2*perSecond, 10)
	return &rates{
		limit: rate.Limit(perSecond), burst: burst, refill: time.Second * time.Duration(burst) / time.Duration(perSecond),
		buckets: make(map[requester]*list.Element),
	}
}

// wait is how long who has to wait for one more request; 0: this one is
// allowed, and counted.
func (l *rates) wait(who requester, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketLocked(who, now)
	b.last = now
	if b.tokens.AllowN(now, 1) {
		return 0
	}
	missing := 1 - b.tokens.TokensAt(now)
	return max(time.Duration(missing/float64(l.limit)*float64(time.Second)), 1)
}

func (l *rates) bucketLocked(who requester, now time.Time) *bucket {
	if e := l.buckets[who]; e != nil {
		l.used.MoveToFront(e)
		return e.Value.(*bucket)
	}
	for e := l.used.Back(); e != nil; e = l.used.Back() {
		old := e.Value.(*bucket)
		if len(l.buckets) < maxBuckets && now.Sub(old.last) < l.refill {
			break
		}
		l.used.Remove(e)
		delete(l.buckets, old.of)
	}
	b := &bucket{of: who, tokens: rate.NewLimiter(l.limit, l.burst)}
	l.buckets[who] = l.used.PushFront(b)
	return b
}

// pace refuses a request of somebody who asks too often.
func (f *Front) pace(r *http.Request) error {
	if f.rates == nil {
		return nil
	}
	var by requester
	if p := who(r); p.Kind == auth.KindAnonymous {
		by.network = f.network(r)
	} else {
		by.principal = p.Key()
	}
	if wait := f.rates.wait(by, time.Now()); wait > 0 {
		return tooFast(wait)
	}
	return nil
}

// network is where r is from: the peer, or, where trusted proxies have passed
// it on, the last address in X-Forwarded-For that is not one of theirs. What
// stands before that anybody may have written.
func (f *Front) network(r *http.Request) netip.Prefix {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{} // such as a Unix socket: one client
	}
	addr := peer.Addr()
	hops := strings.Join(r.Header["X-Forwarded-For"], ",")
	for more := hops != ""; more && f.trustedAddr(addr); {
		hop := hops
		if i := strings.LastIndexByte(hops, ','); i >= 0 {
			hops, hop = hops[:i], hops[i+1:]
		} else {
			more = false
		}
		next, ok := parseHop(strings.TrimSpace(hop))
		if !ok {
			break
		}
		addr = next
	}
	return auth.Network(addr)
}

// parseHop reads an element of X-Forwarded-For. Some proxies add the port.
func parseHop(s string) (netip.Addr, bool) {
	if ap, err := netip.ParseAddrPort(s); err == nil {
		return ap.Addr(), true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	return addr, err == nil
}
