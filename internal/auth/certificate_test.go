package auth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// certOf is a certificate with the names of a template.
func certOf(t *testing.T, template x509.Certificate) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func named(cn string) x509.Certificate { return x509.Certificate{Subject: pkix.Name{CommonName: cn}} }

// with adds what the TLS server has verified.
func with(q *http.Request, chains ...[]*x509.Certificate) *http.Request {
	q.TLS = &tls.ConnectionState{VerifiedChains: chains}
	if len(chains) > 0 {
		q.TLS.PeerCertificates = chains[0]
	}
	return q
}

// certRig has no other credential than certificates.
func certRig(t *testing.T) *rig {
	return newRig(t, func(c *Config) { *c = Config{ClientCerts: true, Log: c.Log, Metrics: c.Metrics} })
}

func TestCertificateNames(t *testing.T) {
	r := certRig(t)
	ca := certOf(t, named("authority"))
	sum := sha256.Sum256(ca.RawSubject)
	spiffe, err := url.Parse("spiffe://example.org/agent")
	if err != nil {
		t.Fatal(err)
	}
	other, _ := url.Parse("https://example.org/")
	all := x509.Certificate{
		Subject: pkix.Name{CommonName: "cn"}, URIs: []*url.URL{spiffe, other},
		DNSNames: []string{"a.example", "b.example"}, EmailAddresses: []string{"alice@example.com"},
	}
	noURI, noDNS, noName := all, all, all
	noURI.URIs = nil
	noDNS.URIs, noDNS.DNSNames = nil, nil
	noName.URIs, noName.DNSNames, noName.EmailAddresses = nil, nil, nil
	noName.Subject = pkix.Name{CommonName: `a,b+"c"`, Organization: []string{"Ü"}, Country: []string{"DE"}}
	for want, template := range map[string]x509.Certificate{
		"uri:spiffe://example.org/agent":   all,
		"dns:a.example":                    noURI,
		"email:alice@example.com":          noDNS,
		`dn:CN=a\,b\+\"c\",O=Ü,C=DE`:       noName,
		"dns:spiffe://example.org/agent":   {DNSNames: []string{"spiffe://example.org/agent"}},
		"email:spiffe://example.org/agent": {EmailAddresses: []string{"spiffe://example.org/agent"}},
	} {
		leaf := certOf(t, template)
		p := r.accepted(with(request(), []*x509.Certificate{leaf, ca}))
		if p.Kind != KindCert || p.Subject != want || p.Issuer != hex.EncodeToString(sum[:]) || !p.Expires.Equal(leaf.NotAfter) || p.Scopes != nil {
			t.Errorf("%+v, want %s", p, want)
		}
		if !strings.HasPrefix(p.Key(), "cert/64:"+p.Issuer+",") || !strings.HasSuffix(p.Key(), ":"+want+",") {
			t.Error(p.Key())
		}
		if said := p.String(); strings.Contains(said, "example") || !strings.HasPrefix(said, "certificate of "+p.Issuer[:8]+", subject ") {
			t.Errorf("in logs: %s", said)
		}
		again := r.accepted(with(request(), []*x509.Certificate{certOf(t, template), ca})) // renewed
		if again.Key() != p.Key() {
			t.Errorf("%s became %s", p.Key(), again.Key())
		}
		byOther := r.accepted(with(request(), []*x509.Certificate{leaf, certOf(t, named("another"))}))
		if byOther.Key() == p.Key() {
			t.Error("the same name of another authority is the same principal")
		}
	}
	r.refused(http.StatusUnauthorized, reasonCertificate, with(request(), []*x509.Certificate{certOf(t, x509.Certificate{}), ca}))
}

// Names in another order are another subject.
func TestCertificateSubjectInOrder(t *testing.T) {
	cn := pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 3}, Value: "x"}
	o := pkix.AttributeTypeAndValue{Type: asn1.ObjectIdentifier{2, 5, 4, 10}, Value: "y"}
	var subjects []string
	for _, dn := range []pkix.RDNSequence{{{cn}, {o}}, {{o}, {cn}}, {{o, cn}}} {
		raw, err := asn1.Marshal(dn)
		if err != nil {
			t.Fatal(err)
		}
		leaf := certOf(t, x509.Certificate{RawSubject: raw})
		_, subject := nameOf([][]*x509.Certificate{{leaf}})
		subjects = append(subjects, subject)
	}
	if subjects[0] == subjects[1] || subjects[1] == subjects[2] || subjects[0] == subjects[2] {
		t.Error(subjects)
	}
}

// Which chains the client makes possible does not matter for what has the same
// authorities.
func TestCertificateOfSeveralChains(t *testing.T) {
	leaf, a, b := certOf(t, named("leaf")), certOf(t, named("a")), certOf(t, named("b"))
	one, _ := nameOf([][]*x509.Certificate{{leaf, a}, {leaf, b}})
	two, _ := nameOf([][]*x509.Certificate{{leaf, b}, {leaf, a}})
	if one != two {
		t.Errorf("%s and %s", one, two)
	}
}

func TestWithoutCertificate(t *testing.T) {
	r := certRig(t)
	leaf := certOf(t, named("leaf"))
	chain := []*x509.Certificate{leaf, certOf(t, named("ca"))}
	if !r.Enabled() {
		t.Error("authorization is off")
	}
	for name, q := range map[string]*http.Request{"plain": request(), "none shown": with(request())} {
		if f := r.refused(http.StatusUnauthorized, reasonMissing, q); !strings.Contains(f.Message, "client certificate") || f.Challenge == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
	unverified := request()
	unverified.TLS = &tls.ConnectionState{PeerCertificates: chain}
	r.refused(http.StatusUnauthorized, reasonMissing, unverified)
	old := []*x509.Certificate{certOf(t, x509.Certificate{Subject: pkix.Name{CommonName: "old"}, NotAfter: time.Now().Add(-time.Minute)})}
	r.refused(http.StatusUnauthorized, reasonExpired, with(request(), old))
	// A credential beside the certificate decides, also if it is no good.
	r.refused(http.StatusUnauthorized, reasonUnknownKey, with(bearer("x"), chain))
	r.refused(http.StatusUnauthorized, reasonUnknownKey, with(request("X-API-Key", "x"), chain))
	r.refused(http.StatusUnauthorized, reasonScheme, with(request("Authorization", "Basic eA=="), chain))
	r.refused(http.StatusUnauthorized, reasonMissing, with(request("Authorization", "Bearer "), chain))
	query := with(request(), chain)
	query.URL.RawQuery = "access_token=x"
	r.refused(http.StatusUnauthorized, reasonQuery, query)

	off := newRig(t, nil) // certificates are no credential there
	off.refused(http.StatusUnauthorized, reasonMissing, with(request(), chain))
}

func TestCertificateBesideOthers(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ClientCerts = true })
	chain := []*x509.Certificate{certOf(t, named("leaf")), certOf(t, named("ca"))}
	if p := r.accepted(with(bearer(r.issuer.Token(nil)), chain)); p.Kind != KindToken {
		t.Errorf("a token beside a certificate: %s", p)
	}
	if p := r.accepted(with(request("X-API-Key", r.key), chain)); p.Kind != KindKey {
		t.Errorf("a key beside a certificate: %s", p)
	}
	p := r.accepted(with(request(), chain))
	if p.Kind != KindCert {
		t.Errorf("a certificate: %s", p)
	}
	f := r.refused(http.StatusForbidden, reasonScope, with(request(), chain), "read")
	if !strings.Contains(f.Message, "certificate") {
		t.Error(f.Message)
	}
	text, err := p.MarshalText()
	var back Principal
	if err != nil || back.UnmarshalText(text) != nil || back.Key() != p.Key() || back.Kind != KindCert || !back.Expires.Equal(p.Expires) {
		t.Errorf("%+v came back as %+v, %v", p, back, err)
	}
}

// Scopes without anything that could have them would refuse everybody.
func TestScopesForCertificatesOnly(t *testing.T) {
	_, err := New(Config{ClientCerts: true, Scopes: []string{"read"}, Log: certRig(t).log, Metrics: NewMetrics()})
	if err == nil || !strings.Contains(err.Error(), "--auth-scope") {
		t.Error(err)
	}
}
