package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// refreshAge: keys older than this are fetched anew in the background.
	refreshAge = 5 * time.Minute
	// maxAge: keys older than this are not used. A key that was withdrawn stops
	// working after refreshAge if the issuer answers, and at the latest after this.
	maxAge = time.Hour
	// refreshPause is the least time between two fetches because of an unknown
	// key: a new key works within it, and random kids cost the issuer no more.
	refreshPause = 5 * time.Second
	// firstRetry doubles with each failure in a row, up to refreshPause.
	firstRetry = time.Second
)

// issuer fetches and keeps the keys of one issuer.
type issuer struct {
	// Static.
	name     string // as configured: what iss must be
	location *url.URL
	client   *http.Client
	log      *slog.Logger
	metrics  *Metrics
	ctx      context.Context // ends with the Authenticator
	fetches  *sync.WaitGroup

	keys atomic.Pointer[keySet] // nil until the first fetch that succeeded

	mu       sync.Mutex
	flight   *flight   // the fetch that is going on, or nil
	next     time.Time // no fetch before
	failures int       // in a row
	lastErr  error     // of the last fetch
	closed   bool

	// Owned by the flight.
	keysURL    string // "" if not known
	discovered time.Time
}

// flight is one fetch that several requests may wait for.
type flight struct {
	done chan struct{}
	err  error // set before done is closed
}

// unavailable is the error of an issuer that cannot be asked now.
type unavailable struct {
	err   error
	retry time.Duration
}

func (u *unavailable) Error() string { return u.err.Error() }

var errClosed = errors.New("auth: closed")

// verify finds out whether t is signed by a key of this issuer.
func (i *issuer) verify(ctx context.Context, t *token) (*publicKey, *keySet, error) {
	set, err := i.current(ctx)
	if err != nil {
		return nil, nil, err
	}
	key, known := set.verify(t)
	if key == nil {
		asked := set
		newer, err := i.refresh(ctx, set)
		// A bad signature under a known name is bad, whether or not the issuer
		// can be asked just now.
		if err != nil && !known {
			return nil, nil, err
		}
		if err == nil && newer != set {
			set = newer
			key, known = set.verify(t)
		}
		if !known && set == asked && t.claims.issued.Add(leeway).After(set.fetched) {
			return nil, nil, i.perhapsNew()
		}
	}
	switch {
	case key != nil:
		return key, set, nil
	case known:
		return nil, nil, invalid(reasonSignature, "the token's signature does not match the issuer's key")
	}
	return nil, nil, invalid(reasonKid, "the token is signed with a key that its issuer does not have")
}

// perhapsNew is for a token that was issued after the keys were fetched, and
// must not be asked for again already. A client that got 401 would throw it away,
// and some ask for another one at once, again and again.
func (i *issuer) perhapsNew() *Failure {
	i.mu.Lock()
	defer i.mu.Unlock()
	return &Failure{Status: http.StatusServiceUnavailable, Reason: reasonKid, RetryAfter: seconds(time.Until(i.next)),
		Message: "the token is signed with a key that its issuer did not have a moment ago; try again with the same token"}
}

// current returns keys that are young enough, fetching them if need be.
func (i *issuer) current(ctx context.Context) (*keySet, error) {
	set := i.keys.Load()
	if set == nil || time.Since(set.fetched) > maxAge {
		return i.refresh(ctx, set)
	}
	i.renew(set)
	return set, nil
}

// renew starts a fetch in the background for keys that are getting old.
func (i *issuer) renew(set *keySet) {
	if time.Since(set.fetched) < refreshAge {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys.Load() == set && i.flight == nil && !i.closed && !time.Now().Before(i.next) {
		i.launchLocked()
	}
}

// warm starts the first fetch in the background.
func (i *issuer) warm() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys.Load() == nil && i.flight == nil && !i.closed && !time.Now().Before(i.next) {
		i.launchLocked()
	}
}

// refresh returns newer keys than have (nil: any), waiting for a fetch if one is
// allowed now; else have itself, or an *unavailable where the last fetch failed.
func (i *issuer) refresh(ctx context.Context, have *keySet) (*keySet, error) {
	i.mu.Lock()
	if set := i.keys.Load(); set != have {
		i.mu.Unlock()
		return set, nil
	}
	if i.flight == nil {
		if wait := time.Until(i.next); wait > 0 || i.closed {
			defer i.mu.Unlock()
			if i.closed {
				return nil, &unavailable{errClosed, refreshPause}
			}
			if i.lastErr != nil {
				return nil, &unavailable{i.lastErr, wait}
			}
			return have, nil
		}
		i.launchLocked()
	}
	f := i.flight
	i.mu.Unlock()
	select {
	case <-f.done:
	case <-ctx.Done():
		return nil, &unavailable{ctx.Err(), refreshPause}
	}
	if f.err != nil {
		return nil, &unavailable{f.err, firstRetry}
	}
	return i.keys.Load(), nil
}

func (i *issuer) launchLocked() {
	f := &flight{done: make(chan struct{})}
	i.flight = f
	i.fetches.Go(func() { i.fly(f) })
}

// fly is one fetch. Whatever happens, the old keys stay until there are new.
func (i *issuer) fly(f *flight) {
	ctx, cancel := context.WithTimeout(i.ctx, fetchTimeout)
	defer cancel()
	set, err := i.fetch(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	defer close(f.done)
	i.flight, f.err, i.lastErr = nil, err, err
	if err != nil {
		i.next = time.Now().Add(min(refreshPause, firstRetry<<min(i.failures, 10)))
		i.failedLocked(err)
		return
	}
	if i.failures > 0 || i.keys.Load() == nil {
		i.log.Info("the keys of an issuer were fetched", "issuer", i.name, "count", len(set.keys))
	}
	i.metrics.refreshes.WithLabelValues(i.name, "ok").Inc()
	i.keys.Store(set)
	i.next, i.failures = time.Now().Add(refreshPause), 0
}

// failedLocked counts a failure and logs the first of a row.
func (i *issuer) failedLocked(err error) {
	i.failures++
	if i.ctx.Err() != nil {
		return
	}
	i.metrics.refreshes.WithLabelValues(i.name, "failed").Inc()
	level := slog.LevelDebug
	if i.failures == 1 {
		level = slog.LevelWarn
	}
	i.log.Log(i.ctx, level, "the keys of an issuer cannot be fetched", "issuer", i.name, "err", err,
		"hint", "tokens under keys that are known still work for an hour; others get 503 meanwhile")
}

// fetch asks the issuer where its keys are, if that is not known or old, and
// for the keys.
func (i *issuer) fetch(ctx context.Context) (*keySet, error) {
	if i.keysURL == "" || time.Since(i.discovered) >= refreshAge {
		keysURL, err := i.discover(ctx)
		if err != nil {
			return nil, err
		}
		i.keysURL, i.discovered = keysURL, time.Now()
	}
	asked := time.Now()
	place := i.keysURL
	doc, err := i.get(ctx, place)
	if err == nil {
		var set *keySet
		if set, err = parseKeySet(doc, asked); err == nil {
			return set, nil
		}
	}
	i.keysURL = "" // it may have moved
	return nil, fmt.Errorf("%s: %w", place, err)
}

// close lets no further fetch begin.
func (i *issuer) close() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
}
