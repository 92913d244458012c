package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/config"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/policy"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/remote"
)

// guarded is server with the filters and rules of its entry.
func (a *app) guarded(server upstream.Server, s spec) upstream.Server {
	wrap := func(server upstream.Server, rules func(upstream.Request) (*policy.Rules, error), header func(upstream.Request) http.Header) upstream.Server {
		return policy.Wrap(server, policy.Config{Name: s.Name, Rules: rules, Header: header, Log: a.log.With("server", s.Name), Metrics: a.policies})
	}
	var header func(upstream.Request) http.Header
	if len(s.ClaimHeaders) > 0 {
		header = func(req upstream.Request) http.Header { return withClaimHeaders(s.ClaimHeaders, req) }
	}
	// One credential for all users, and nothing that tells them apart.
	oneUser := s.url != nil && a.auth.Enabled() && len(s.ClaimHeaders) == 0
	if s.Tools != nil || header != nil || oneUser {
		rules := &policy.Rules{Tools: filterOf(s.Tools), Shared: true, NoTasks: oneUser}
		server = wrap(server, func(upstream.Request) (*policy.Rules, error) { return rules, nil }, header)
	}
	if len(s.Access) > 0 {
		server = wrap(server, newAccess(s).rules, nil)
	}
	return server
}

func filterOf(f *config.Filter) *policy.Filter {
	if f == nil {
		return nil
	}
	return policy.NewFilter(f.Allow, f.Deny)
}

// access decides who may use what of one server.
type access struct {
	server string
	who    []config.Rule
	what   []*policy.Rules // of the same index

	mu    sync.Mutex
	known map[*auth.Principal]*policy.Rules // nil: may use nothing
}

// maxKnown bounds the principals whose rules are remembered.
const maxKnown = 4096

func newAccess(s spec) *access {
	a := &access{server: s.Name, who: s.Access, known: make(map[*auth.Principal]*policy.Rules)}
	for _, r := range s.Access {
		a.what = append(a.what, &policy.Rules{Tools: filterOf(r.Tools), Prompts: filterOf(r.Prompts), Resources: filterOf(r.Resources)})
	}
	return a
}

// rules is what the sender of a message may use, by the first rule that fits.
func (a *access) rules(req upstream.Request) (*policy.Rules, error) {
	p, ok := req.Principal.(*auth.Principal)
	if !ok {
		return nil, a.refusal()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	rules, known := a.known[p]
	if !known {
		if len(a.known) >= maxKnown {
			clear(a.known)
		}
		if i := slices.IndexFunc(a.who, func(r config.Rule) bool { return fits(r, p) }); i >= 0 {
			rules = a.what[i]
		}
		a.known[p] = rules
	}
	if rules == nil {
		return nil, a.refusal()
	}
	return rules, nil
}

// refusal is HTTP status 403 for a new session, and an error for a call.
func (a *access) refusal() error {
	return &upstream.Error{Code: mcp.CodeInvalidRequest, Reason: "access", Message: "no rule of the server " + a.server + " lets you use it (access)",
		Err: &auth.Failure{Status: http.StatusForbidden, Reason: "access", Message: "no rule of this server lets you use it; ask whoever runs it"}}
}

func fits(r config.Rule, p *auth.Principal) bool {
	switch {
	case r.Keys != nil && !(p.Kind == auth.KindKey && slices.Contains(r.Keys, p.Subject)),
		r.Subjects != nil && !(p.Kind == auth.KindToken && slices.Contains(r.Subjects, p.Subject)),
		len(r.Scopes) > 0 && !p.HasScopes(r.Scopes...):
		return false
	}
	for name, want := range r.Claims {
		if !slices.Contains(p.Claim(name), want) {
			return false
		}
	}
	return true
}

// claim is the text that a server is told of a claim; "" where the token does
// not say it.
func claim(req upstream.Request, name string) string {
	p, ok := req.Principal.(*auth.Principal)
	if !ok {
		return ""
	}
	return strings.Join(p.Claim(name), ",")
}

// withClaimHeaders are the client's headers with those from claims, which no
// client can set itself.
func withClaimHeaders(claims map[string]string, req upstream.Request) http.Header {
	h := make(http.Header, len(req.Header)+len(claims))
	for name, values := range req.Header {
		h[name] = values
	}
	for name, of := range claims {
		h.Del(name)
		if value := claim(req, of); value != "" {
			h.Set(name, value)
		}
	}
	return h
}

// withClientEnv is the program with variables from claims and headers of the
// client. One that the client does not say is empty, whatever else would set it.
func withClientEnv(program child.Spec, s spec, init upstream.Request) child.Spec {
	if len(s.ClaimEnv)+len(s.HeaderEnv) == 0 {
		return program
	}
	set := make(map[string]string)
	for name, of := range s.HeaderEnv {
		set[name] = init.Header.Get(of)
	}
	for name, of := range s.ClaimEnv {
		set[name] = strings.ReplaceAll(claim(init, of), "\x00", "")
	}
	var pass []string // all that it has
	for _, kv := range program.Env {
		name, _, _ := strings.Cut(kv, "=")
		pass = append(pass, name)
	}
	program.Env = child.BaseEnv(program.Env, pass, set)
	return program
}

// clientCredentials is how Signalbox logs in to a server (RFC 6749, section
// 4.4). A token is kept until shortly before it runs out, or is refused.
type clientCredentials struct {
	cfg clientcredentials.Config

	mu      sync.Mutex
	now     *oauth2.Token
	asking  chan struct{} // closed when the one who asks has an answer; nil: nobody asks
	err     error         // of the last time
	retryAt time.Time     // not before, after an error
}

func newClientCredentials(c *config.Credentials) remote.Authorizer {
	if c == nil {
		return nil
	}
	cfg := clientcredentials.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, TokenURL: c.TokenURL, Scopes: c.Scopes}
	if c.Audience != "" {
		cfg.EndpointParams = url.Values{"resource": {c.Audience}} // RFC 8707
	}
	return &clientCredentials{cfg: cfg}
}

const (
	tokenTimeout = 10 * time.Second
	tokenRetry   = 2 * time.Second // after a failure: an issuer that is down is not asked for each call
)

// Token makes it a remote.Authorizer. One asks, the others wait for the answer.
func (c *clientCredentials) Token(ctx context.Context) (string, error) {
	for {
		c.mu.Lock()
		switch {
		case c.now.Valid():
			defer c.mu.Unlock()
			return c.now.AccessToken, nil
		case time.Now().Before(c.retryAt):
			defer c.mu.Unlock()
			return "", c.err
		case c.asking == nil:
			asking := make(chan struct{})
			c.asking = asking
			c.mu.Unlock()
			c.ask(ctx, asking)
			continue
		}
		asking := c.asking
		c.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func (c *clientCredentials) ask(ctx context.Context, asking chan struct{}) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Timeout: tokenTimeout}), tokenTimeout)
	defer cancel()
	token, err := c.cfg.Token(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asking = nil
	if err != nil {
		c.err, c.retryAt = tokenError(err), time.Now().Add(tokenRetry)
	} else {
		c.now, c.retryAt = token, time.Time{}
	}
	close(asking)
}

// tokenError leaves out the body of the issuer's answer, but for its error code.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		return fmt.Errorf("the issuer answered HTTP %d %s", refused.Response.StatusCode, refused.ErrorCode)
	}
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err // without the URL
	}
	return err
}

// Refused makes it a remote.Authorizer.
func (c *clientCredentials) Refused(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil && c.now.AccessToken == token {
		c.now = nil
	}
}
