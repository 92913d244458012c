// Package authtest is an issuer of access tokens for tests: discovery, keys that
// rotate, tokens good and bad. It shares no code with package auth.
package authtest

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// Issuer is a fake issuer. It may be used by several goroutines at once.
type Issuer struct {
	Name     string // iss
	Audience string // aud of its tokens

	mu          sync.Mutex
	signing     *Key
	published   []*Key
	handlers    map[string]http.HandlerFunc // by path, instead of its own
	down        bool
	discoveries int
	keyFetches  int
	keysMade    int
}

// New makes an issuer with one ES256 key that is reached by Client only.
func New(name, audience string) *Issuer {
	i := &Issuer{Name: name, Audience: audience, handlers: make(map[string]http.HandlerFunc)}
	i.Rotate("ES256")
	return i
}

// Start makes an issuer that listens on loopback until the test ends.
func Start(tb testing.TB, audience string) *Issuer {
	tb.Helper()
	i := New("", audience)
	server := httptest.NewServer(i)
	tb.Cleanup(server.Close)
	i.Name = server.URL
	return i
}

// Client reaches the issuer without a network, under any host.
func (i *Issuer) Client() *http.Client { return &http.Client{Transport: (*direct)(i)} }

type direct Issuer

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) {
	i := (*Issuer)(d)
	i.mu.Lock()
	down := i.down
	i.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	i.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// ServeHTTP is discovery (OpenID Connect, appended) and the key set.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	handler, down := i.handlers[r.URL.Path], i.down
	switch {
	case strings.Contains(r.URL.Path, "/.well-known/"):
		i.discoveries++
	case strings.HasSuffix(r.URL.Path, "/keys"):
		i.keyFetches++
	}
	i.mu.Unlock()
	switch {
	case down:
		http.Error(w, "down", http.StatusBadGateway)
	case handler != nil:
		handler(w, r)
	case strings.HasSuffix(r.URL.Path, "/.well-known/openid-configuration"):
		w.Write(i.Description())
	case strings.HasSuffix(r.URL.Path, "/keys"):
		w.Write(i.KeySet())
	default:
		http.NotFound(w, r)
	}
}

// Description is the discovery document.
func (i *Issuer) Description() []byte {
	return JSON(map[string]any{"issuer": i.Name, "jwks_uri": strings.TrimSuffix(i.Name, "/") + "/keys"})
}

// KeySet is the JWK set.
func (i *Issuer) KeySet() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	keys := []any{}
	for _, k := range i.published {
		keys = append(keys, k.JWK())
	}
	return JSON(map[string]any{"keys": keys})
}

// Handle answers a path in another way; nil is the usual one.
func (i *Issuer) Handle(path string, h http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers[path] = h
}

// Rotate makes a key, publishes it beside the others and signs with it from now on.
func (i *Issuer) Rotate(alg string) *Key {
	i.mu.Lock()
	i.keysMade++
	id := fmt.Sprintf("key-%d", i.keysMade)
	i.mu.Unlock()
	k := NewKey(id, alg)
	i.Use(k)
	return k
}

// Use publishes a key beside the others and signs with it from now on.
func (i *Issuer) Use(k *Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.signing = k
	i.published = append(i.published, k)
}

// Publish makes these the whole key set; it does not change what is signed with.
func (i *Issuer) Publish(keys ...*Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.published = keys
}

// Key is the key that is signed with.
func (i *Issuer) Key() *Key {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.signing
}

// SetDown lets every request fail, or no longer.
func (i *Issuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Fetches counts the requests for descriptions and for keys.
func (i *Issuer) Fetches() (discoveries, keys int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.discoveries, i.keyFetches
}

// Claims are those of a good token for alice, with changes laid over them; a
// nil leaves a claim out.
func (i *Issuer) Claims(changes map[string]any) map[string]any {
	now := time.Now()
	c := map[string]any{"iss": i.Name, "sub": "alice", "aud": i.Audience,
		"iat": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	return overlay(c, changes)
}

// Token signs Claims(changes) with Key.
func (i *Issuer) Token(changes map[string]any) string {
	return i.Sign(nil, JSON(i.Claims(changes)))
}

// Sign signs a payload with Key, under the usual header with changes laid over it.
func (i *Issuer) Sign(header map[string]any, payload []byte) string {
	k := i.Key()
	h := overlay(map[string]any{"alg": k.Alg, "kid": k.ID, "typ": "at+jwt"}, header)
	return k.Sign(JSON(h), payload)
}

func overlay(base, changes map[string]any) map[string]any {
	maps.Copy(base, changes)
	maps.DeleteFunc(base, func(_ string, v any) bool { return v == nil })
	return base
}
