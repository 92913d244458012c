package auth

import (
	"slices"
	"strings"
	"time"
)

const (
	// leeway is how far an issuer's clock may be ahead of ours: for nbf and iat.
	leeway = 30 * time.Second
	// lastDate is the end of the year 9999. What is later is no date but a
	// mistake: milliseconds, or an overflow in the making.
	lastDate = 253402300799
)

// claims are those of an access token that are read here (RFC 7519 section 4.1,
// RFC 9068 section 2.2).
type claims struct {
	issuer, subject string
	audience        []string
	expires         time.Time
	notBefore       time.Time // zero if there is none
	issued          time.Time // zero if there is none
	scopes          []string
	raw             []byte
}

func parseClaims(payload []byte) (claims, *Failure) {
	m, err := object(payload)
	if err != nil || ambiguous(m, "iss", "sub", "aud", "exp", "nbf", "iat", "scope", "scp") {
		return claims{}, invalid(reasonMalformed, "the token's claims are not one plain JSON object")
	}
	c := claims{raw: payload}
	var ok bool
	if c.issuer, ok = m["iss"].(string); !ok || !plain(c.issuer) {
		return claims{}, invalid(reasonClaims, "the token has no issuer (iss)")
	}
	if c.subject, ok = m["sub"].(string); !ok || !plain(c.subject) {
		return claims{}, invalid(reasonClaims, "the token has no subject (sub), or none that is plain text")
	}
	if c.audience, ok = texts(m["aud"]); !ok {
		return claims{}, invalid(reasonClaims, "the token's audience (aud) is neither text nor a list of texts")
	}
	if c.expires, ok = date(m, "exp"); !ok || c.expires.IsZero() {
		return claims{}, invalid(reasonClaims, "the token has no expiry (exp) that is a number of seconds")
	}
	if c.notBefore, ok = date(m, "nbf"); !ok {
		return claims{}, invalid(reasonClaims, "the token's nbf is no number of seconds")
	}
	if c.issued, ok = date(m, "iat"); !ok {
		return claims{}, invalid(reasonClaims, "the token's iat is no number of seconds")
	}
	if c.scopes, ok = scopesOf(m); !ok {
		return claims{}, invalid(reasonClaims, "the token's scopes (scope, scp) are neither text nor a list of texts")
	}
	return c, nil
}

// texts reads a string or a list of strings. Absent is an empty list.
func texts(v any) ([]string, bool) {
	switch v := v.(type) {
	case nil:
		return nil, true
	case string:
		return []string{v}, true
	case []any:
		list := make([]string, 0, len(v))
		for _, item := range v {
			s, ok := item.(string)
			if !ok {
				return nil, false
			}
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}

// scopesOf joins scope (RFC 8693 section 4.2: text with spaces) and scp, which
// some issuers write instead, as text or list.
func scopesOf(m map[string]any) ([]string, bool) {
	var all []string
	for _, name := range []string{"scope", "scp"} {
		list, ok := texts(m[name])
		if !ok {
			return nil, false
		}
		for _, item := range list {
			for scope := range strings.SplitSeq(item, " ") {
				if scope != "" && !slices.Contains(all, scope) {
					all = append(all, scope)
				}
			}
		}
	}
	return all, true
}

// date reads a NumericDate (RFC 7519 section 2); a fraction is cut off. Absent
// is the zero time.
func date(m map[string]any, name string) (time.Time, bool) {
	v, there := m[name]
	if !there {
		return time.Time{}, true
	}
	seconds, ok := v.(float64)
	if !ok || seconds < 0 || seconds > lastDate {
		return time.Time{}, false
	}
	return time.Unix(int64(seconds), 0), true
}

// checkTime holds exp, nbf and iat against the clock.
func (c *claims) checkTime(now time.Time) *Failure {
	switch limit := now.Add(leeway); {
	case !now.Before(c.expires):
		f := invalid(reasonExpired, "the token has expired; get a new one")
		f.counted = false // the usual end of every good token
		return f
	case c.notBefore.After(limit):
		return invalid(reasonNotYet, "the token is not valid yet (nbf)")
	case c.issued.After(limit):
		return invalid(reasonNotYet, "the token was issued in the future (iat)")
	}
	return nil
}

// meant tells whether one of a token's audiences is one of the accepted
// (RFC 8707 section 2).
func meant(audience []string, accepted ...string) bool {
	for _, is := range audience {
		for _, want := range accepted {
			if want != "" && strings.TrimSuffix(is, "/") == strings.TrimSuffix(want, "/") {
				return true
			}
		}
	}
	return false
}
