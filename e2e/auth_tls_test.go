package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/e2e/box"
)

// certificate is a self-signed one for loopback, in the two files that the flags name.
type certificate struct {
	t         *testing.T
	cert, key string
}

// write makes a new one of that serial number.
func (c *certificate) write(serial int64) *x509.CertPool {
	c.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "signalbox e2e"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		c.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		c.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(must(c.t, der))
	// The key first: the certificate's file is the one that is watched.
	for _, f := range []struct {
		path, kind string
		der        []byte
	}{{c.key, "PRIVATE KEY", secret}, {c.cert, "CERTIFICATE", der}} {
		if err := os.WriteFile(f.path+".new", pem.EncodeToMemory(&pem.Block{Type: f.kind, Bytes: f.der}), 0o600); err != nil {
			c.t.Fatal(err)
		}
		if err := os.Rename(f.path+".new", f.path); err != nil {
			c.t.Fatal(err)
		}
	}
	return pool
}

func must(t *testing.T, der []byte) *x509.Certificate {
	t.Helper()
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestAuthTLS: HTTPS with HTTP/1.1 and, by ALPN, HTTP/2; a new certificate is used by
// the next connection, while streams over the old one live on.
func TestAuthTLS(t *testing.T) {
	keys := newKeyFile(t)
	alice := keys.add("alice")
	dir := t.TempDir()
	files := &certificate{t: t, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	first := files.write(1)
	b := box.Start(t, []string{"--auth-keys", keys.path, "--tls-cert", files.cert, "--tls-key", files.key}, fakeServer(t)...)
	if !strings.HasPrefix(b.URL, "https://") {
		t.Fatalf("it says that it serves %s", b.URL)
	}
	for _, c := range []struct {
		protocol string
		http2    bool
	}{{"HTTP/2.0", true}, {"HTTP/1.1", false}} {
		t.Run(c.protocol, func(t *testing.T) {
			s := &tlsClient{t: t, url: b.URL, key: alice, http: httpsClient(t, first, c.http2)}
			resp := s.do("POST", "/mcp", initBody, "")
			id := resp.Header.Get("Mcp-Session-Id")
			if resp.Proto != c.protocol || resp.StatusCode != 200 || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 1 || resp.TLS.Version < tls.VersionTLS12 {
				t.Fatalf("%s %s, serial %v", resp.Proto, resp.Status, resp.TLS.PeerCertificates[0].SerialNumber)
			}
			if resp := s.do("POST", "/mcp", pingBody, id); resp.StatusCode != 200 {
				t.Errorf("ping: %s", resp.Status)
			}
			s.key = "wrong"
			resp = s.do("POST", "/mcp", pingBody, id)
			if want := `resource_metadata="` + b.URL + wellKnown + `/mcp"`; resp.StatusCode != 401 || !strings.Contains(resp.Header.Get("WWW-Authenticate"), want) {
				t.Errorf("%s %q, want %s", resp.Status, resp.Header.Get("WWW-Authenticate"), want)
			}
			s.key = alice
			if resp := s.do("DELETE", "/mcp", "", id); resp.StatusCode != 204 {
				t.Errorf("DELETE: %s", resp.Status)
			}
		})
	}

	stays := &tlsClient{t: t, url: b.URL, key: alice, http: httpsClient(t, first, true)}
	id := stays.do("POST", "/mcp", initBody, "").Header.Get("Mcp-Session-Id")
	second := files.write(2)
	serial := func() string {
		conn, err := tls.Dial("tcp", strings.TrimPrefix(b.URL, "https://"), &tls.Config{RootCAs: second})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		return fmt.Sprint(conn.ConnectionState().PeerCertificates[0].SerialNumber)
	}
	eventuallyWithin(t, 10*time.Second, "the new certificate is used", "2", serial)
	if resp := stays.do("POST", "/mcp", pingBody, id); resp.StatusCode != 200 || resp.TLS.PeerCertificates[0].SerialNumber.Int64() != 1 {
		t.Errorf("the connection of before: %s", resp.Status)
	}
	if err := os.WriteFile(files.cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := serial(); got != "2" {
		t.Errorf("with a broken certificate file: %s", got)
	}
	// A plain request at the port of TLS tells nobody anything.
	resp, err := http.Get("http" + strings.TrimPrefix(b.URL, "https") + "/healthz")
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode < 400 {
			t.Errorf("plain HTTP: %s", resp.Status)
		}
	}
	if old, err := tls.Dial("tcp", strings.TrimPrefix(b.URL, "https://"), &tls.Config{RootCAs: second, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}); err == nil {
		old.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

func httpsClient(t *testing.T, pool *x509.CertPool, http2 bool) *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: http2}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

type tlsClient struct {
	t        *testing.T
	url, key string
	http     *http.Client
}

func (c *tlsClient) do(method, path, body, session string) *http.Response {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), box.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + c.key}, "Content-Type": {"application/json"}}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		c.t.Fatal(err)
	}
	return resp
}
