// Package auth tells who a request is from.
//
// One request, seen from here:
//
//	Authenticator.Check     each request, no path is left out
//	  credentialOf          exactly one, from a header
//	  ofCertificate         a verified client certificate, where no header has one
//	  keyring.find          static keys: one look-up of a SHA-256
//	  tokenCache.get        tokens verified before; their key must still be valid
//	  limiter.blocked       too many failures from this address: 429
//	  Authenticator.verify
//	    parseToken          form, size, header, claims; nothing is trusted yet
//	    claims.check        exp, nbf, iat, aud
//	    issuer.verify       the signature, by the keys of exactly this issuer
//	      issuer.refresh    discovery and JWKS: single flight, bounded, kept on failure
//	  Authenticator.Authorize   scopes: 403
//
// What a check costs where the credential is known: one SHA-256 and two map
// look-ups. Nothing is asked of the network at start, and an issuer out of reach
// stops nobody whose token is signed by a key that is known: keys are kept for
// an hour. A token under an unknown key, while its issuer cannot be asked, is
// answered with 503 and Retry-After instead of 401, because a client that gets
// 401 throws its token away and asks its user to log in. So is one under an
// unknown key that was issued after the keys were fetched, for the 5 s in which
// the issuer is not asked again.
//
// Where the documents leave room:
//
//   - A token in the query is never read (RFC 6750 section 2.3 is not offered, and
//     MCP forbids it): alone it is 401, beside a header it is 400.
//   - aud must hold an accepted audience, byte for byte, but for one slash at the
//     end, since a trailing slash is the same path here and URL libraries add one.
//   - exp has no leeway, nbf and iat have 30 s.
//   - kid may be absent; then every key of the issuer that fits the algorithm is tried.
//   - jku, jwk, x5u and x5c in a token's header are never looked at.
//   - A claim that differs from one read here only in letter case is refused, as
//     is a duplicate of any member at any level: two readers could see two tokens.
//   - A key without the scopes that are asked of everyone is refused too (403).
//
// Keys stand in their file as plain SHA-256 hashes. That is right for 256 random
// bits, which nobody can guess whatever the hash costs, and wrong for passwords:
// keys are made by NewKey and never chosen.
package auth
