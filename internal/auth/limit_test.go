package auth

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"
)

func TestTooManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		known := bearer(r.issuer.Token(nil))
		r.accepted(known)
		for range failureBurst {
			r.refused(bad, reasonUnknownKey, bearer("wrong"))
		}
		fresh := bearer(r.issuer.Token(m{"sub": "bob"}))
		f := r.refused(http.StatusTooManyRequests, reasonLimited, fresh)
		if f.RetryAfter != time.Second || f.Challenge != "" {
			t.Errorf("retry after %v, challenge %q", f.RetryAfter, f.Challenge)
		}
		r.refused(bad, reasonMissing, request()) // nothing to guess with
		r.accepted(known)                        // others behind the same address go on
		r.accepted(request("X-API-Key", r.key))
		elsewhere := bearer("wrong")
		elsewhere.RemoteAddr = "198.51.100.7:1"
		r.refused(bad, reasonUnknownKey, elsewhere)

		for range 10 { // being refused does not put the end off
			r.refused(http.StatusTooManyRequests, reasonLimited, fresh)
		}
		time.Sleep(f.RetryAfter)
		r.accepted(fresh)
	})
}

// TestNotCounted: what happens to good clients brings them nearer to no limit.
func TestNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		expired := bearer(r.issuer.Token(m{"exp": 1}))
		for range 2 * failureBurst {
			r.refused(bad, reasonExpired, expired)
			r.refused(bad, reasonMissing, request())
			r.refused(http.StatusForbidden, reasonScope, request("X-API-Key", r.key), "write")
		}
		r.accepted(bearer(r.issuer.Token(nil)))
	})
}

func TestLimiterForgets(t *testing.T) {
	l, now := newLimiter(), time.Now()
	addr := networkOf("192.0.2.1:1")
	for range failureBurst {
		l.failed(addr, now)
	}
	if got := l.blocked(addr, now); got != failurePace {
		t.Errorf("blocked for %v", got)
	}
	if got := l.blocked(addr, now.Add(failurePace)); got != 0 {
		t.Errorf("blocked for %v after %v", got, failurePace)
	}
	now = now.Add(24 * time.Hour) // long after: the whole burst again, and no more
	for range failureBurst {
		if l.blocked(addr, now) != 0 {
			t.Fatal("blocked too early")
		}
		l.failed(addr, now)
	}
	if l.blocked(addr, now) == 0 {
		t.Error("not blocked")
	}
}

func TestLimiterIsBounded(t *testing.T) {
	l, now := newLimiter(), time.Now()
	add := func(n int) {
		for i := range n {
			l.failed(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32), now)
			if len(l.debt) > maxAddresses {
				t.Fatalf("%d addresses", len(l.debt))
			}
		}
	}
	add(3 * maxAddresses)
	now = now.Add(time.Minute)
	l.failed(networkOf("192.0.2.1:1"), now)
	if len(l.debt) != 1 {
		t.Errorf("%d addresses, though all but one are forgiven", len(l.debt))
	}
}

func TestNetworkOf(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.1:80":                "192.0.2.1/32",
		"[::ffff:192.0.2.1]:80":       "192.0.2.1/32",
		"[2001:db8:1:2:3:4:5:6]:80":   "2001:db8:1:2::/64",
		"[fe80::1%eth0]:80":           "fe80::/64",
		"[::1]:80":                    "::/64",
		"@":                           "invalid Prefix",
		"":                            "invalid Prefix",
		"example.com:80":              "invalid Prefix",
		"[2001:db8:1:2:ffff:4:5:6]:1": "2001:db8:1:2::/64",
	} {
		if got := fmt.Sprint(networkOf(in)); got != want {
			t.Errorf("networkOf(%q) = %s, want %s", in, got, want)
		}
	}
}
