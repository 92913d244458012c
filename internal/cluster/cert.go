package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"
)

const alpn = "h2"

// errPin: the other side has another certificate than its registration says.
var errPin = errors.New("the peer's certificate is not the registered one")

// newCertificate makes the certificate of this start. Nobody checks what it
// says, only its fingerprint, so it needs no name and no end.
func newCertificate() (tls.Certificate, fingerprint, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fingerprint{}, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280, 4.1.2.5: no end
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fingerprint{}, fmt.Errorf("make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, sha256.Sum256(der), nil
}

// clientTLS is for dialing a peer whose certificate has the fingerprint want.
func clientTLS(own *tls.Certificate, want fingerprint) *tls.Config {
	return &tls.Config{
		MinVersion:                  tls.VersionTLS13,
		NextProtos:                  []string{alpn},
		GetClientCertificate:        func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil },
		DynamicRecordSizingDisabled: true, // as on the other side
		InsecureSkipVerify:          true, // no chain and no name: VerifyConnection pins the very certificate
		VerifyConnection: func(cs tls.ConnectionState) error {
			if len(cs.PeerCertificates) == 0 || sha256.Sum256(cs.PeerCertificates[0].Raw) != want {
				return errPin
			}
			if cs.NegotiatedProtocol != alpn {
				return errors.New("the peer does not speak HTTP/2")
			}
			return nil
		},
	}
}
