package auth

import (
	"net/http"
	"strings"
	"time"
)

// Failure is why a request was refused; every error of Check and Authorize is
// a *Failure. No field holds anything of the credential.
type Failure struct {
	Status     int           // 400, 401, 403, 429 or 503
	Reason     string        // one of a fixed set of words: a metric's label, and error.data.reason
	Message    string        // what happened and what to do
	Challenge  string        // value for WWW-Authenticate; "" for 400, 429 and 503
	RetryAfter time.Duration // whole seconds, for 429 and 503; else 0

	issuer  string // one that is configured, or "": for the log
	counted bool   // towards the limit for an address
	silent  bool   // no credential came: nothing to log
}

func (f *Failure) Error() string { return f.Message }

// The reasons of failures.
const (
	reasonMissing     = "missing_credential"
	reasonQuery       = "credential_in_query"
	reasonTwo         = "two_credentials"
	reasonScheme      = "scheme"
	reasonMalformed   = "malformed"
	reasonTooLarge    = "too_large"
	reasonUnknownKey  = "unknown_key"
	reasonHeader      = "token_header"
	reasonAlgorithm   = "algorithm"
	reasonClaims      = "claims"
	reasonIssuer      = "issuer"
	reasonAudience    = "audience"
	reasonExpired     = "expired"
	reasonNotYet      = "not_yet_valid"
	reasonKid         = "unknown_kid"
	reasonSignature   = "signature"
	reasonCertificate = "certificate"
	reasonScope       = "insufficient_scope"
	reasonLimited     = "too_many_failures"
	reasonUnavailable = "issuer_unavailable"
)

// invalid is a credential that proves nothing: 401, and it counts.
func invalid(reason, message string) *Failure {
	return &Failure{Status: http.StatusUnauthorized, Reason: reason, Message: message, counted: true}
}

// of names the issuer, which is one of those configured.
func (f *Failure) of(i *issuer) *Failure {
	f.issuer = i.name
	return f
}

// challenge fills in WWW-Authenticate (RFC 6750 section 3, RFC 9728 section 5.1):
// where to find the metadata, and all scopes that this request needs, so that
// one round of authorization is enough.
func (f *Failure) challenge(resource string, scopes []string) {
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+`="`+quotable(value)+`"`)
		}
	}
	switch {
	case f.Status == http.StatusForbidden:
		add("error", "insufficient_scope")
		add("error_description", f.Message)
	case f.Status != http.StatusUnauthorized:
		return
	case f.Reason != reasonMissing && f.Reason != reasonQuery: // without a credential RFC 6750 wants no error code
		add("error", "invalid_token")
		add("error_description", f.Message)
	}
	add("scope", strings.Join(scopes, " "))
	add("resource_metadata", MetadataURL(resource))
	f.Challenge = "Bearer"
	if len(params) > 0 {
		f.Challenge += " " + strings.Join(params, ", ")
	}
}

// quotable leaves out what would need an escape in a quoted-string: clients
// read this header with regular expressions.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s)
}

// seconds rounds up to whole seconds, at least one.
func seconds(d time.Duration) time.Duration {
	return max(time.Second, (d + time.Second - 1).Truncate(time.Second))
}
