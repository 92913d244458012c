package auth

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestKnownTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		q := bearer(r.issuer.Token(m{"exp": in(3 * time.Second)}))
		r.accepted(q)
		time.Sleep(3*time.Second - 1)
		r.accepted(q)
		time.Sleep(time.Nanosecond)
		r.refused(bad, reasonExpired, q)
	})
}

// TestKnownTokenIsVerifiedAgain: after cacheAge, and not before.
func TestKnownTokenIsVerifiedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		q := bearer(r.issuer.Token(m{"exp": in(time.Hour)}))
		first := r.accepted(q)
		time.Sleep(cacheAge - 1)
		if r.accepted(q) != first {
			t.Error("verified again too early")
		}
		time.Sleep(time.Nanosecond)
		if r.accepted(q) == first {
			t.Error("not verified again")
		}
	})
}

func TestCacheIsBounded(t *testing.T) {
	i := &issuer{}
	set := &keySet{fetched: time.Now()}
	set.keys = []*publicKey{{kid: "k"}}
	i.keys.Store(set)
	c := newTokenCache()
	now := time.Now()
	sum := func(n int) digest { return sha256.Sum256(fmt.Append(nil, n)) }
	used := sum(-1)
	c.put(used, &verified{principal: Anonymous(), issuer: i, set: set, key: set.keys[0], until: now.Add(time.Hour)})
	for n := range 5 * cacheGeneration {
		c.put(sum(n), &verified{principal: Anonymous(), issuer: i, set: set, key: set.keys[0], until: now.Add(time.Hour)})
		if n%100 == 0 && c.get(used, now) == nil {
			t.Fatalf("a token in use was forgotten after %d others", n)
		}
		if held := len(c.young) + len(c.elder); held > 2*cacheGeneration {
			t.Fatalf("%d tokens held", held)
		}
	}
	if c.get(sum(0), now) != nil {
		t.Error("a token that nobody uses is still held")
	}
	if c.get(sum(5*cacheGeneration-1), now) == nil {
		t.Error("the newest token is not held")
	}
}

// TestConcurrentChecks is for the race detector: keys rotate and tokens come
// and go while many check.
func TestConcurrentChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for step := range 50 {
					token := r.issuer.Token(m{"sub": fmt.Sprint(n, step%3)})
					p, err := r.Check(bearer(token), resource, nil)
					if err != nil && err.(*Failure).Reason != reasonKid { // within the pause
						t.Error(err)
					}
					if p != nil && p.Subject != fmt.Sprint(n, step%3) {
						t.Errorf("somebody else's principal: %v", p)
					}
					time.Sleep(time.Second)
				}
			})
		}
		wg.Go(func() {
			for range 5 {
				time.Sleep(10 * time.Second)
				r.issuer.Rotate("ES256")
				if err := r.Reload(); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
	})
}

// TestClose: what waits for an issuer ends, and Close waits for it.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.issuer.Handle("/tenant/keys", func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() })
		answer := make(chan error, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := r.Check(bearer(r.issuer.Token(nil)), resource, nil)
			answer <- err
		})
		synctest.Wait()
		r.Close()
		wg.Wait()
		if f, ok := (<-answer).(*Failure); !ok || f.Status != http.StatusServiceUnavailable {
			t.Errorf("got %v", f)
		}
		r.refused(http.StatusServiceUnavailable, reasonUnavailable, bearer(r.issuer.Token(nil)))
		r.Warm()
	})
}

func BenchmarkCachedCheck(b *testing.B) {
	r := newRig(b, func(c *Config) { c.Scopes = []string{"mcp"} })
	r.issuer.Publish(r.issuer.Rotate("RS256"))
	q := bearer(r.issuer.Token(m{"scope": "mcp read", "exp": in(time.Hour)}))
	benchmark(b, r, q)
}

func BenchmarkKeyCheck(b *testing.B) {
	r := newRig(b, nil)
	benchmark(b, r, request("X-API-Key", r.key))
}

func BenchmarkUncachedCheck(b *testing.B) {
	for _, alg := range []string{"RS256", "ES256"} {
		b.Run(alg, func(b *testing.B) {
			r := newRig(b, nil)
			r.issuer.Publish(r.issuer.Rotate(alg))
			q := bearer(r.issuer.Token(nil))
			r.accepted(q)
			b.ReportAllocs()
			for b.Loop() {
				r.tokens = newTokenCache()
				if _, err := r.Check(q, resource, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func benchmark(b *testing.B, r *rig, q *http.Request) {
	r.accepted(q, "read")
	scopes := []string{"read"}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Check(q, resource, scopes); err != nil {
			b.Fatal(err)
		}
	}
}
