package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T, name string) *authority {
	a := &authority{t: t}
	var der []byte
	der, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, _ = x509.ParseCertificate(der)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

// sign signs with the authority's key, or the new one if it has none yet.
func (a *authority) sign(template *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer); err != nil {
		a.t.Fatal(err)
	}
	return der, key
}

// pair is a certificate and its key, in PEM.
func (a *authority) pair(template x509.Certificate) (cert, key []byte) {
	a.t.Helper()
	der, k := a.sign(&template)
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

func clientTemplate(name string) x509.Certificate {
	return x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
}

// client trusts a, and shows a certificate of signer if it is not nil.
func (a *authority) client(signer *authority, name string, http2 bool) *http.Client {
	a.t.Helper()
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.cert)
	if signer != nil {
		pair, err := tls.X509KeyPair(signer.pair(clientTemplate(name)))
		if err != nil {
			a.t.Fatal(err)
		}
		// Also to a server that names other authorities.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
	}
	tr := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: http2}
	a.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func (a *authority) file(name string, text []byte) string {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// serveTLS starts signalbox with a certificate of a, which clients need one of.
func (a *authority) serveTLS(flags ...string) (r *running, base string) {
	a.t.Helper()
	cert, key := a.pair(x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	args := []string{"serve", "--listen", "127.0.0.1:0", "--tls-cert", a.file("cert.pem", cert), "--tls-key", a.file("key.pem", key), "--tls-client-ca", a.file("ca.pem", a.pem)}
	r = start(a.t, append(append(args, flags...), self(a.t)...)...)
	return r, r.await(`Streamable HTTP  (https://\S+)/mcp`)
}

const echoCall = `{"jsonrpc":"2.0","id":2,"method":"echo","params":{"v":1}}`

// A client certificate is who its client is, over HTTP/1.1 and HTTP/2.
func TestClientCertificates(t *testing.T) {
	ca := newAuthority(t, "ca")
	_, base := ca.serveTLS()
	for _, http2 := range []bool{false, true} {
		alice, bob := ca.client(ca, "alice.example", http2), ca.client(ca, "bob.example", http2)
		res, text := say(t, alice, base+"/mcp", "", initialize)
		session := res.Header.Get("Mcp-Session-Id")
		if res.StatusCode != 200 || session == "" || (res.ProtoMajor == 2) != http2 {
			t.Fatalf("initialize: %s %d %s", res.Proto, res.StatusCode, text)
		}
		again := ca.client(ca, "alice.example", http2) // with another certificate of that name
		for name, c := range map[string]struct {
			client  *http.Client
			headers []string
			want    int
		}{
			"its client":                {alice, nil, 200},
			"its client, renewed":       {again, nil, 200},
			"another":                   {bob, nil, 404},
			"nobody":                    {ca.client(nil, "", http2), nil, 401},
			"a token that is no good":   {alice, []string{"Authorization", "Bearer x"}, 401},
			"a key that is not known":   {alice, []string{"X-API-Key", "x"}, 401},
			"a header that names alice": {ca.client(nil, "", http2), []string{"X-Forwarded-Client-Cert", "alice.example"}, 401},
		} {
			if res, text := say(t, c.client, base+"/mcp", session, echoCall, c.headers...); res.StatusCode != c.want {
				t.Errorf("%s: %d %s", name, res.StatusCode, text)
			}
		}
		// Of an authority that is not trusted, there is no connection.
		stranger := ca.client(newAuthority(t, "ca"), "alice.example", http2)
		if res, err := stranger.Get(base + "/healthz"); err == nil {
			res.Body.Close()
			t.Errorf("a stranger: %d", res.StatusCode)
		}
	}
}

// A key beside a certificate decides, and scopes are not for certificates.
func TestClientCertificateAndKeys(t *testing.T) {
	ca := newAuthority(t, "ca")
	made := start(t, "key", "new", "ci", "--scope", "read")
	if code := made.exit(); code != exitOK {
		t.Fatal(code)
	}
	out, _ := made.text()
	key, entry, _ := strings.Cut(out, "\n\n")
	_, base := ca.serveTLS("--auth-keys", ca.file("keys.yaml", []byte(entry)), "--auth-scope", "read")
	client := ca.client(ca, "alice.example", false)
	if res, text := say(t, client, base+"/mcp", "", initialize); res.StatusCode != 403 || !strings.Contains(text, "insufficient_scope") {
		t.Errorf("a certificate: %d %s", res.StatusCode, text)
	}
	if res, text := say(t, client, base+"/mcp", "", initialize, "Authorization", "Bearer "+key); res.StatusCode != 200 {
		t.Errorf("a key beside it: %d %s", res.StatusCode, text)
	}
}

func TestClientAuthoritiesOfAFile(t *testing.T) {
	ca := newAuthority(t, "ca")
	cert, key := ca.pair(clientTemplate("x"))
	certFile, keyFile := ca.file("cert.pem", cert), ca.file("key.pem", key)
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"empty":            {nil, "no certificate"},
		"no PEM":           {[]byte("hello"), "PEM"},
		"a key in it":      {append(append([]byte{}, ca.pem...), key...), "PRIVATE KEY"},
		"not an authority": {cert, "none of a certificate authority"},
		"broken":           {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), "--tls-client-ca"},
	} {
		t.Run(name, func(t *testing.T) {
			got := usage(t, "serve", "--listen", "127.0.0.1:0", "--tls-cert", certFile, "--tls-key", keyFile, "--tls-client-ca", ca.file("ca.pem", c.text), "--", "cat")
			if !strings.Contains(got, c.want) {
				t.Errorf("no %s in %q", c.want, got)
			}
		})
	}
}

func TestLimitsOfFlags(t *testing.T) {
	_, base := serve(t, "--max-calls", "1", "--max-requests-per-second", "2", "--isolation", "shared")
	session := open(t, base)
	call := stream(t, "POST", base, session, `{"jsonrpc":"2.0","id":7,"method":"slow"}`)
	if status, answer, header := post(t, base+"/mcp", session, echoCall); status != 503 || header.Get("Retry-After") == "" || !strings.Contains(answer, "--max-calls") {
		t.Errorf("a second call: %d %s", status, answer)
	}
	if got := rest(call); !strings.Contains(got, `"result":"slow"`) {
		t.Errorf("the call in flight got %q", got)
	}
	for n := 0; ; n++ {
		status, answer, header := post(t, base+"/mcp", session, echoCall)
		if status == 429 && header.Get("Retry-After") == "1" && strings.Contains(answer, "rate_limit") {
			break
		}
		if status != 200 || n > 1000 {
			t.Fatalf("request %d: %d %s", n, status, answer)
		}
	}
}
