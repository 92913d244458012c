package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4/json"
)

const (
	fetchTimeout = 5 * time.Second // for all requests of one refresh together
	maxDocument  = 512 << 10       // bytes of one answer of an issuer
	maxRedirects = 3
)

// httpClient is the client that issuers are asked with: redirects lead nowhere
// but to the same origin.
func httpClient(given *http.Client) *http.Client {
	c := http.Client{Transport: &http.Transport{
		TLSHandshakeTimeout: fetchTimeout, MaxConnsPerHost: 4, IdleConnTimeout: 30 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true,
	}}
	if given != nil {
		c = *given
	}
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host {
			return errors.New("it redirects to another origin")
		}
		if len(via) > maxRedirects {
			return errors.New("too many redirects")
		}
		return nil
	}
	return &c
}

// checkURL refuses a URL whose answers could be forged on the way: it must be
// https, or plain http to this machine.
func checkURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("is no absolute https URL")
	case u.User != nil || u.Fragment != "":
		return nil, errors.New("has a user or a fragment in it")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, errors.New("must be https; plain http is for loopback addresses only")
	}
	return u, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}

// wellKnown are the places where an issuer describes itself: OpenID Connect
// Discovery section 4 (appended), RFC 8414 section 3.1 (inserted), and OpenID's
// name inserted, as RFC 8414 section 5 has it.
func wellKnown(issuer *url.URL) []string {
	origin, path := issuer.Scheme+"://"+issuer.Host, strings.TrimSuffix(issuer.EscapedPath(), "/")
	const openID, oauth = "/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"
	places := []string{origin + path + openID, origin + oauth + path}
	if path != "" {
		places = append(places, origin+openID+path)
	}
	return places
}

// discover finds the URL of the issuer's keys.
func (i *issuer) discover(ctx context.Context) (string, error) {
	var errs []error
	for _, place := range wellKnown(i.location) {
		keys, err := i.describe(ctx, place)
		if err == nil {
			return keys, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", place, err))
	}
	return "", errors.Join(errs...)
}

func (i *issuer) describe(ctx context.Context, place string) (string, error) {
	doc, err := i.get(ctx, place)
	if err != nil {
		return "", err
	}
	var d struct {
		Issuer string `json:"issuer"`
		Keys   string `json:"jwks_uri"`
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		return "", errors.New("this is no JSON document")
	}
	if d.Issuer != i.name { // RFC 8414 section 3.3: identical, or it is not to be used
		return "", fmt.Errorf("it calls itself %.200q; --auth-issuer must be exactly that", d.Issuer)
	}
	u, err := checkURL(d.Keys)
	if err != nil {
		return "", fmt.Errorf("its jwks_uri %w", err)
	}
	if i.location.Scheme == "https" && u.Scheme != "https" {
		return "", errors.New("its jwks_uri must be https, as the issuer is")
	}
	return d.Keys, nil
}

// get fetches one document.
func (i *issuer) get(ctx context.Context, place string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, place, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "application/json")
	resp, err := i.client.Do(r)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			return nil, op // the address that was dialled and why it failed, without the URL again
		}
		var u *url.Error
		if errors.As(err, &u) {
			return nil, u.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers with HTTP status %d", resp.StatusCode)
	}
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("the answer broke off: %w", err)
	}
	if len(doc) > maxDocument {
		return nil, errors.New("its answer is longer than 512 KiB")
	}
	return doc, nil
}
