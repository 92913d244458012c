package auth

import (
	"crypto/sha256"
	"sync"
	"time"
)

const (
	cacheAge        = 5 * time.Minute // how long a verified token is not verified again
	cacheGeneration = 2048            // tokens; twice as many are held at most
)

// digest is the SHA-256 of a credential. It is what credentials are looked up
// by, so that neither the time of a look-up nor a dump of memory tells them.
type digest = [sha256.Size]byte

// digestOf hashes a credential of usual length without allocating.
func digestOf(secret string) digest {
	var buf [2 << 10]byte
	if len(secret) > len(buf) {
		return sha256.Sum256([]byte(secret))
	}
	return sha256.Sum256(buf[:copy(buf[:], secret)])
}

// verified is a token that proved itself.
type verified struct {
	principal *Principal
	issuer    *issuer
	key       *publicKey // that signed it
	set       *keySet    // where the key was last seen; guarded by the cache's mutex
	until     time.Time
}

// tokenCache holds verified tokens in two generations: when the younger is full
// it becomes the elder, and what nobody used since is gone.
type tokenCache struct {
	mu           sync.Mutex
	young, elder map[digest]*verified
}

func newTokenCache() *tokenCache { return &tokenCache{young: make(map[digest]*verified)} }

// get returns the principal of a token, or nil where it must be verified: it is
// not known, expired, verified too long ago, or its key is gone or too old.
func (c *tokenCache) get(sum digest, now time.Time) *Principal {
	c.mu.Lock()
	v, inYoung := c.young[sum]
	if v == nil {
		v = c.elder[sum]
	}
	if v == nil {
		c.mu.Unlock()
		return nil
	}
	set := v.issuer.keys.Load()
	if !now.Before(v.until) || now.Sub(set.fetched) > maxAge || set != v.set && !set.has(v.key) {
		delete(c.young, sum)
		delete(c.elder, sum)
		c.mu.Unlock()
		return nil
	}
	v.set = set
	if !inYoung {
		c.addLocked(sum, v)
	}
	c.mu.Unlock()
	v.issuer.renew(set)
	return v.principal
}

// put remembers a verified token.
func (c *tokenCache) put(sum digest, v *verified) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addLocked(sum, v)
}

func (c *tokenCache) addLocked(sum digest, v *verified) {
	if len(c.young) >= cacheGeneration {
		c.elder, c.young = c.young, make(map[digest]*verified)
	}
	c.young[sum] = v
}
