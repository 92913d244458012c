package auth

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/json"
)

const (
	maxToken = 16 << 10 // bytes
	maxName  = 1 << 10  // bytes of a kid, sub or aud
)

// algorithms are those accepted: signatures with a public key, nothing else.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

// token is a JWT in compact form (RFC 7515 section 7.1), taken apart. Nothing
// in it is to be believed before its signature was verified.
type token struct {
	compact string
	alg     jose.SignatureAlgorithm
	kid     string // "" if there is none
	claims  claims
}

// parseToken takes a token apart and refuses what is not in the one form
// that every reader understands alike.
func parseToken(compact string) (*token, *Failure) {
	if len(compact) > maxToken {
		return nil, invalid(reasonTooLarge, "the token is longer than 16 KiB")
	}
	switch strings.Count(compact, ".") {
	case 2:
	case 4:
		return nil, invalid(reasonMalformed, "encrypted tokens (JWE) are not taken")
	default:
		return nil, invalid(reasonUnknownKey, "this is neither a known key nor a token")
	}
	head, rest, _ := strings.Cut(compact, ".")
	body, signature, _ := strings.Cut(rest, ".")
	header, ok := segment(head)
	payload, ok2 := segment(body)
	if _, ok3 := segment(signature); !ok || !ok2 || !ok3 {
		return nil, invalid(reasonMalformed, "the token is not three parts in base64url")
	}
	t := &token{compact: compact}
	if f := t.header(header); f != nil {
		return nil, f
	}
	var f *Failure
	t.claims, f = parseClaims(payload)
	return t, f
}

// segment decodes base64url in its only form: no padding, no white space, no
// bits left over, so that one token has one spelling.
func segment(s string) ([]byte, bool) {
	if strings.ContainsAny(s, "\r\n") { // which the decoder skips
		return nil, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return b, err == nil
}

// header reads the JOSE header (RFC 7515 section 4, RFC 8725 section 3).
func (t *token) header(raw []byte) *Failure {
	h, err := object(raw)
	if err != nil || ambiguous(h, "alg", "kid", "typ", "crit", "b64", "cty") {
		return invalid(reasonMalformed, "the token's header is not one plain JSON object")
	}
	alg, _ := h["alg"].(string)
	t.alg = jose.SignatureAlgorithm(alg)
	if !slices.Contains(algorithms, t.alg) {
		return invalid(reasonAlgorithm, "the token's algorithm is not accepted; use RS, PS or ES with 256, 384 or 512, or EdDSA")
	}
	for _, name := range []string{"crit", "b64"} {
		if _, there := h[name]; there {
			return invalid(reasonHeader, "the token's header asks for an extension ("+name+") that is not known here")
		}
	}
	if typ, there := h["typ"]; there && !accessTokenType(typ) {
		return invalid(reasonHeader, "the token is of another type than at+jwt or JWT")
	}
	if cty, there := h["cty"]; there {
		if s, _ := cty.(string); s == "" || strings.EqualFold(s, "JWT") {
			return invalid(reasonHeader, "nested tokens are not taken")
		}
	}
	if kid, there := h["kid"]; there {
		var ok bool
		if t.kid, ok = kid.(string); !ok || !plain(t.kid) {
			return invalid(reasonHeader, "the token's kid is not a plain string")
		}
	}
	return nil
}

// accessTokenType: RFC 9068 section 4, and JWT, which most issuers write.
func accessTokenType(typ any) bool {
	s, _ := typ.(string)
	s = strings.TrimPrefix(strings.ToLower(s), "application/")
	return s == "at+jwt" || s == "jwt"
}

// object decodes a JSON object. Duplicate members are refused at every level,
// and so is what is no UTF-8, or a number beyond a float64.
func object(raw []byte) (map[string]any, error) {
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	m, ok := value.(map[string]any)
	if !ok || !utf8.Valid(raw) {
		return nil, errors.New("no JSON object in UTF-8")
	}
	return m, nil
}

// ambiguous tells whether a member differs from one of names in letter case
// only: a reader that does not mind the case would take it.
func ambiguous(m map[string]any, names ...string) bool {
	for member := range m {
		for _, name := range names {
			if member != name && strings.EqualFold(member, name) {
				return true
			}
		}
	}
	return false
}

// plain tells whether s can name something: not empty, bounded, without control
// characters, and without U+FFFD, which is what a broken escape is read as, so
// that two names could become one.
func plain(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return r < 0x20 || r >= 0x7f && r < 0xa0 || r == utf8.RuneError
	})
}
