package auth

import (
	"net/http"
	"strings"
)

// credential is what a request offers as proof.
type credential struct {
	secret string
	apiKey bool // came as X-API-Key, so it is no token
}

// credentialOf finds the one credential of a request, with an empty secret if
// its headers hold none. Repeated headers count as
// one if their values are equal, as everywhere in Signalbox.
func credentialOf(r *http.Request) (credential, *Failure) {
	authorization, ok := single(r.Header["Authorization"])
	if !ok {
		return credential{}, twoCredentials("two different Authorization headers")
	}
	apiKey, ok := single(r.Header["X-Api-Key"])
	if !ok {
		return credential{}, twoCredentials("two different X-API-Key headers")
	}
	query := tokenInQuery(r.URL.RawQuery)
	switch {
	case authorization != "" && apiKey != "":
		return credential{}, twoCredentials("an Authorization header and an X-API-Key in one request")
	case query && authorization+apiKey != "":
		return credential{}, twoCredentials("a header and an access_token in the query in one request")
	case query:
		return credential{}, &Failure{Status: http.StatusUnauthorized, Reason: reasonQuery, silent: true,
			Message: "a token in the query is never read, for URLs are logged; send it as Authorization: Bearer"}
	case apiKey != "":
		return credential{secret: apiKey, apiKey: true}, nil
	case authorization == "":
		return credential{}, nil
	}
	scheme, secret, _ := strings.Cut(authorization, " ")
	if !strings.EqualFold(scheme, "bearer") {
		return credential{}, invalid(reasonScheme, "the Authorization header must be Bearer and a token or key")
	}
	secret = strings.TrimLeft(secret, " ") // RFC 9110 section 11.4: one space or more
	if secret == "" {
		return credential{}, missing()
	}
	return credential{secret: secret}, nil
}

// tokenInQuery finds the parameter of RFC 6750 section 2.3.
func tokenInQuery(raw string) bool {
	for raw != "" {
		var param string
		param, raw, _ = strings.Cut(raw, "&")
		if strings.HasPrefix(param, "access_token=") {
			return true
		}
	}
	return false
}

func single(values []string) (string, bool) {
	if len(values) == 0 {
		return "", true
	}
	for _, v := range values[1:] {
		if v != values[0] {
			return "", false
		}
	}
	return values[0], true
}

func missing() *Failure {
	return &Failure{Status: http.StatusUnauthorized, Reason: reasonMissing, silent: true,
		Message: "a credential is needed: send Authorization: Bearer with a token or key, or X-API-Key with a key"}
}

func twoCredentials(what string) *Failure {
	return &Failure{Status: http.StatusBadRequest, Reason: reasonTwo, Message: what + "; send exactly one credential"}
}
