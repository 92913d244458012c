package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"
)

// failed counts and logs a failure and completes it for the client.
func (a *Authenticator) failed(f *Failure, r *http.Request, resource string, scopes []string, now time.Time) *Failure {
	network := networkOf(r.RemoteAddr)
	if f.counted {
		a.limit.failed(network, now)
	}
	a.metrics.failures.WithLabelValues(f.Reason).Inc()
	if !f.silent && a.tell.AllowN(now, 1) {
		level := slog.LevelInfo // an expired token, a scope: the course of things
		if f.counted {
			level = slog.LevelWarn
		}
		a.log.Log(r.Context(), level, "request refused: "+f.Message, "reason", f.Reason, "issuer", f.issuer, "client", network)
	}
	f.challenge(resource, a.required(scopes))
	return f
}

// failureOf makes a failure of what an issuer's verify returned.
func failureOf(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	retry := refreshPause
	var u *unavailable
	if errors.As(err, &u) {
		retry = u.retry
	}
	return &Failure{Status: http.StatusServiceUnavailable, Reason: reasonUnavailable, RetryAfter: seconds(retry),
		Message: "the token's issuer is out of reach, so the token cannot be checked now; try again with the same token"}
}

// accepts tells whether one of a token's audiences is accepted for resource, or for
// one of its other names.
// The URL of a resource may be made of a Host header, which its sender chooses:
// it counts only below a public URL.
func (a *Authenticator) accepts(audience []string, resource string, names []string) bool {
	if len(a.audiences) > 0 {
		return meant(audience, a.audiences...)
	}
	return meant(audience, a.publicURLs...) || a.public(resource) && meant(audience, resource) ||
		slices.ContainsFunc(names, func(name string) bool { return a.public(name) && meant(audience, name) })
}

// public tells whether a URL lies below one of the public URLs.
func (a *Authenticator) public(name string) bool {
	return slices.ContainsFunc(a.publicURLs, func(public string) bool {
		below, ok := strings.CutPrefix(name, strings.TrimSuffix(public, "/"))
		return ok && strings.HasPrefix(below, "/")
	})
}
