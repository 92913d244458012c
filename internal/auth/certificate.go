package auth

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"net/http"
	"time"
)

// ofCertificate is the principal of a request whose headers hold no credential:
// the subject of the certificate that its client has shown, and the TLS server
// has verified.
func (a *Authenticator) ofCertificate(state *tls.ConnectionState, now time.Time) (*Principal, *Failure) {
	if !a.certs {
		return nil, missing()
	}
	if state == nil || len(state.VerifiedChains) == 0 {
		f := missing()
		f.Message += "; or connect with a client certificate"
		return nil, f
	}
	leaf := state.VerifiedChains[0][0]
	if now.After(leaf.NotAfter) { // the connection is older than that
		return nil, &Failure{Status: http.StatusUnauthorized, Reason: reasonExpired, Message: "the client certificate has expired"}
	}
	issuer, subject := nameOf(state.VerifiedChains)
	if subject == "" {
		return nil, &Failure{Status: http.StatusUnauthorized, Reason: reasonCertificate, Message: "the client certificate names nobody: it has no subject and no alternative name"}
	}
	p := &Principal{Kind: KindCert, Issuer: issuer, Subject: subject, Expires: leaf.NotAfter}
	p.key = p.Key()
	return p, nil
}

// nameOf is who a certificate is of, the same for a renewed one. The issuer is
// the SHA-256, in hex, of the subject of the trusted authority at the chain's
// end, which stays when that has new keys; of several chains the smallest, for
// the client has a say in which there are. The subject is the first alternative
// name that there is, of the kinds URI, DNS and e-mail in this order, else the
// distinguished name (RFC 2253); the kind stands before it, so that no name of
// one kind is one of another. It is empty where the certificate has neither.
func nameOf(chains [][]*x509.Certificate) (issuer, subject string) {
	for _, chain := range chains {
		sum := sha256.Sum256(chain[len(chain)-1].RawSubject)
		if at := hex.EncodeToString(sum[:]); issuer == "" || at < issuer {
			issuer = at
		}
	}
	switch leaf := chains[0][0]; {
	case len(leaf.URIs) > 0:
		return issuer, "uri:" + leaf.URIs[0].String()
	case len(leaf.DNSNames) > 0:
		return issuer, "dns:" + leaf.DNSNames[0]
	case len(leaf.EmailAddresses) > 0:
		return issuer, "email:" + leaf.EmailAddresses[0]
	default:
		// Not leaf.Subject, which has lost the order of the names.
		var dn pkix.RDNSequence
		if rest, err := asn1.Unmarshal(leaf.RawSubject, &dn); err != nil || len(rest) > 0 || len(dn) == 0 {
			return issuer, ""
		}
		return issuer, "dn:" + dn.String()
	}
}
