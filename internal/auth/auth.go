package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Config says who is let in. Where KeysFile and Issuers are empty and ClientCerts
// is false, authorization is off and everybody is anonymous.
type Config struct {
	KeysFile  string   // static keys, see NewKey; watched for changes
	Issuers   []string // issuer identifiers, as in iss; https, or http for loopback
	Audiences []string // what aud must hold one of; empty: PublicURLs and what lies below them
	Scopes    []string // required of every credential

	// ClientCerts takes a client certificate that the TLS server has verified for
	// a credential, where a request has no other.
	ClientCerts bool

	// PublicURLs are those under which clients know this Signalbox: --public-url,
	// or, without it, the names of a listener on loopback.
	PublicURLs []string

	HTTPClient *http.Client // asks issuers; nil: one without a proxy
	Log        *slog.Logger // required
	Metrics    *Metrics     // required
}

// Authenticator tells who requests are from. It may be used by several
// goroutines at once. A nil Authenticator is one where authorization is off.
type Authenticator struct {
	// Static.
	issuers    map[string]*issuer // by iss
	issuerURLs []string           // in the order of the configuration
	audiences  []string
	publicURLs []string
	scopes     []string
	certs      bool
	log        *slog.Logger
	metrics    *Metrics
	tell       *rate.Limiter // log lines on failures

	keys   *keyring
	tokens *tokenCache
	limit  *limiter

	stop    context.CancelFunc
	running sync.WaitGroup
}

// New reads the key file and starts to watch it; an error names the flag that
// is wrong. It does not touch the network: keys of issuers are fetched when the
// first token comes, or by Warm. Close ends what it started.
func New(cfg Config) (*Authenticator, error) {
	ctx, stop := context.WithCancel(context.Background())
	a := &Authenticator{
		issuers: make(map[string]*issuer), audiences: cfg.Audiences, publicURLs: cfg.PublicURLs, certs: cfg.ClientCerts,
		log: cfg.Log, metrics: cfg.Metrics, tell: rate.NewLimiter(1, 10),
		keys: &keyring{path: cfg.KeysFile, log: cfg.Log}, tokens: newTokenCache(), limit: newLimiter(), stop: stop,
	}
	if err := a.configure(ctx, cfg); err != nil {
		stop()
		return nil, err
	}
	if cfg.KeysFile != "" {
		a.running.Go(func() { a.keys.watch(ctx) })
	}
	return a, nil
}

func (a *Authenticator) configure(ctx context.Context, cfg Config) error {
	for _, s := range cfg.Scopes {
		if !scopeToken.MatchString(s) {
			return fmt.Errorf("--auth-scope %.80q: a scope is visible ASCII without spaces, quotes and backslashes", s)
		}
	}
	a.scopes = a.required(cfg.Scopes)
	client := httpClient(cfg.HTTPClient)
	for _, name := range cfg.Issuers {
		u, err := checkURL(name)
		if err != nil {
			if strings.Contains(name, "@") {
				name = "URL" // which may hold a password
			}
			return fmt.Errorf("--auth-issuer %.200s %w", name, err)
		}
		if u.RawQuery != "" || u.ForceQuery { // RFC 8414 section 2
			return fmt.Errorf("--auth-issuer %s: it has a query", u.Redacted())
		}
		if a.issuers[name] == nil {
			a.issuers[name] = &issuer{name: name, location: u, client: client, log: cfg.Log, metrics: cfg.Metrics, ctx: ctx, fetches: &a.running}
			a.issuerURLs = append(a.issuerURLs, name)
		}
	}
	if slices.Contains(cfg.Audiences, "") || slices.Contains(cfg.PublicURLs, "") {
		return errors.New("--auth-audience and --public-url must not be empty")
	}
	if len(cfg.Issuers) > 0 && len(cfg.Audiences) == 0 && len(cfg.PublicURLs) == 0 {
		return errors.New("--auth-issuer needs --public-url or --auth-audience, so that tokens for others are not taken")
	}
	if cfg.KeysFile == "" && len(cfg.Issuers) == 0 && len(cfg.Scopes)+len(cfg.Audiences) > 0 { // certificates have neither
		return errors.New("--auth-scope and --auth-audience mean nothing without --auth-keys or --auth-issuer")
	}
	return a.keys.reload()
}

// Close ends the watch of the key file and what is being fetched, and waits for
// both. Credentials that are known are still recognized.
func (a *Authenticator) Close() {
	if a == nil {
		return
	}
	for _, i := range a.issuers {
		i.close()
	}
	a.stop()
	a.running.Wait()
	for _, i := range a.issuers {
		i.client.CloseIdleConnections()
	}
}

// Enabled tells whether authorization is on.
func (a *Authenticator) Enabled() bool {
	return a != nil && (a.keys.path != "" || len(a.issuers) > 0 || a.certs)
}

// Reload reads the key file now, as after SIGHUP. On an error the keys of
// before stay valid.
func (a *Authenticator) Reload() error { return a.keys.reload() }

// Warm begins to fetch the keys of all issuers and does not wait: so a mistake
// in an issuer's URL is in the log at start, and the first token need not wait.
func (a *Authenticator) Warm() {
	for _, i := range a.issuers {
		i.warm()
	}
}

// Check tells who r is from, and that they have the scopes: those required of
// everyone and those given. resource is the URL of what is asked for, as
// clients know it (RFC 9728 section 1.2): it stands in the challenge, and is an
// accepted audience if it lies under one of PublicURLs; it need not be trusted. The
// same goes for other names of that resource, which the challenge does not name. Every
// error is a *Failure. It waits only where an issuer must be asked, 5 s at most.
func (a *Authenticator) Check(r *http.Request, resource string, scopes []string, names ...string) (*Principal, error) {
	if !a.Enabled() {
		return anonymous, nil
	}
	now := time.Now()
	p, f := a.identify(r, now, resource, names)
	if f == nil {
		f = a.lacking(p, scopes)
	}
	if f == nil {
		return p, nil
	}
	return nil, a.failed(f, r, resource, scopes, now)
}

// Authorize returns a *Failure (403, insufficient_scope) unless p has the
// scopes, and those required of everyone. For scopes that show in the body only,
// as of a tool.
func (a *Authenticator) Authorize(p *Principal, resource string, scopes []string) error {
	if !a.Enabled() {
		return nil
	}
	f := a.lacking(p, scopes)
	if f == nil {
		return nil
	}
	a.metrics.failures.WithLabelValues(f.Reason).Inc()
	f.challenge(resource, a.required(scopes))
	return f
}

func (a *Authenticator) lacking(p *Principal, scopes []string) *Failure {
	if p.HasScopes(a.scopes...) && p.HasScopes(scopes...) {
		return nil
	}
	message := "the token lacks a scope that this needs"
	switch p.Kind {
	case KindKey:
		message = "the key lacks a scope that this needs; add it to the key's entry in the key file"
	case KindCert:
		message = "this needs a scope, and a client certificate has none; send a token or a key too"
	}
	return &Failure{Status: http.StatusForbidden, Reason: reasonScope, Message: message, issuer: p.Issuer}
}

// identify finds the principal: by what is cheap first, so that a known
// credential works also from an address which others use for bad ones.
func (a *Authenticator) identify(r *http.Request, now time.Time, resource string, names []string) (*Principal, *Failure) {
	c, f := credentialOf(r)
	if f != nil {
		return nil, f
	}
	if c.secret == "" {
		return a.ofCertificate(r.TLS, now)
	}
	sum := digestOf(c.secret)
	if p := a.keys.find(sum); p != nil {
		return p, nil
	}
	if p := a.tokens.get(sum, now); p != nil && !c.apiKey && a.accepts(p.audience, resource, names) {
		return p, nil
	}
	if wait := a.limit.blocked(networkOf(r.RemoteAddr), now); wait > 0 {
		return nil, &Failure{Status: http.StatusTooManyRequests, Reason: reasonLimited, RetryAfter: seconds(wait),
			Message: "too many credentials from this address were not valid; wait"}
	}
	if c.apiKey || len(a.issuers) == 0 {
		return nil, invalid(reasonUnknownKey, "this key is not known")
	}
	accepted := func(audience []string) bool { return a.accepts(audience, resource, names) }
	return a.verify(r.Context(), c.secret, sum, accepted, now)
}

// verify proves a token that is not known yet. What costs nothing comes first.
func (a *Authenticator) verify(ctx context.Context, compact string, sum digest, accepted func(audience []string) bool, now time.Time) (*Principal, *Failure) {
	t, f := parseToken(compact)
	if f != nil {
		return nil, f
	}
	i := a.issuers[t.claims.issuer]
	if i == nil {
		return nil, invalid(reasonIssuer, "the token is of an issuer that is not trusted here")
	}
	if f := t.claims.checkTime(now); f != nil {
		return nil, f.of(i)
	}
	if !accepted(t.claims.audience) {
		return nil, invalid(reasonAudience, "the token is meant for another resource (aud); ask the issuer for one for this").of(i)
	}
	key, set, err := i.verify(ctx, t)
	if err != nil {
		return nil, failureOf(err).of(i)
	}
	p := &Principal{Kind: KindToken, Issuer: i.name, Subject: t.claims.subject, Scopes: t.claims.scopes,
		Expires: t.claims.expires, audience: t.claims.audience, claims: t.claims.raw}
	p.key = p.Key()
	until := now.Add(cacheAge)
	if p.Expires.Before(until) {
		until = p.Expires
	}
	a.tokens.put(sum, &verified{principal: p, issuer: i, key: key, set: set, until: until})
	return p, nil
}
