package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/auth"
)

// authFlags say who is let in.
type authFlags struct {
	AuthKeys     string   `type:"path" placeholder:"FILE" help:"File with static keys; signalbox key new makes one."`
	AuthIssuer   []string `placeholder:"URL" help:"Issuer of access tokens; repeatable."`
	AuthAudience []string `placeholder:"URI" help:"What a token must be meant for, if not the public URL; repeatable."`
	AuthScope    []string `placeholder:"NAME" help:"Scope that every credential must have; repeatable."`
}

// authorized tells whether clients need a credential.
func (c *serveCmd) authorized() bool {
	return c.AuthKeys != "" || len(c.AuthIssuer) > 0 || c.TLSClientCA != ""
}

// tlsFlags make the listener for clients one of HTTPS.
type tlsFlags struct {
	TLSCert string `name:"tls-cert" type:"path" placeholder:"FILE" help:"Certificate chain for HTTPS, PEM; read again when it changes."`
	TLSKey  string `name:"tls-key" type:"path" placeholder:"FILE" help:"Its private key, PEM."`

	TLSClientCA string `name:"tls-client-ca" type:"path" placeholder:"FILE" help:"Certificate authorities of clients, PEM: a client certificate of one of them is a credential."`
}

// config is nil where no certificate is set.
func (f *tlsFlags) config(log *slog.Logger) (*tls.Config, error) {
	switch {
	case f.TLSCert == "" && f.TLSClientCA != "":
		return nil, errors.New("--tls-client-ca needs --tls-cert and --tls-key: clients show certificates over TLS only")
	case f.TLSCert == "" && f.TLSKey == "":
		return nil, nil
	case f.TLSCert == "" || f.TLSKey == "":
		return nil, errors.New("--tls-cert and --tls-key belong together")
	}
	c := &certificate{flags: *f, log: log}
	if _, err := c.get(nil); err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.get}
	if f.TLSClientCA != "" {
		pool, err := readCAs(f.TLSClientCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-client-ca: %w", err)
		}
		config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, pool
	}
	return config, nil
}

// readCAs reads a file of certificates. Anything else in it is an error: it
// would be an authority that the reader of the file believes to be trusted, or
// not to be.
func readCAs(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, found := x509.NewCertPool(), false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("%s: holds a %.40q, where only certificates belong", file, block.Type)
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if !cert.IsCA {
			return nil, fmt.Errorf("%s: the certificate of %s is none of a certificate authority", file, cert.Subject)
		}
		pool.AddCert(cert)
		found = true
	}
	if !found {
		return nil, fmt.Errorf("%s: no certificate in it; it must be PEM", file)
	}
	return pool, nil
}

// certificate is read again when its file has changed. One that cannot be read
// leaves the old one in force.
type certificate struct {
	flags tlsFlags
	log   *slog.Logger

	mu   sync.Mutex
	now  *tls.Certificate
	seen fileStamp
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := stamp(c.flags.TLSCert)
	if c.now != nil && at.same(c.seen) {
		return c.now, nil
	}
	c.seen = at
	pair, err := tls.LoadX509KeyPair(c.flags.TLSCert, c.flags.TLSKey)
	switch {
	case err == nil:
		c.now = &pair
	case c.now == nil:
		return nil, fmt.Errorf("--tls-cert: %w", err)
	default:
		c.log.Error("the new certificate cannot be used, the old one stays in force", "file", c.flags.TLSCert, "err", err)
	}
	return c.now, nil
}

// authenticator is made after the listener is bound: without a public URL the
// names of that are ours.
func (c *serveCmd) authenticator(l net.Listener, m *auth.Metrics, log *slog.Logger) (*auth.Authenticator, error) {
	public := []string{strings.TrimSuffix(c.PublicURL, "/")}
	if c.PublicURL == "" {
		public = loopbackURLs(l, c.TLSCert != "")
	}
	a, err := auth.New(auth.Config{
		KeysFile: c.AuthKeys, Issuers: c.AuthIssuer, Audiences: c.AuthAudience, Scopes: c.AuthScope,
		ClientCerts: c.TLSClientCA != "", PublicURLs: public, Log: log, Metrics: m,
	})
	if err != nil {
		return nil, err
	}
	a.Warm()
	return a, nil
}

// loopbackURLs are those of a listener on loopback; none for another, whose
// name only --public-url can tell.
func loopbackURLs(l net.Listener, secure bool) []string {
	host, port, _ := net.SplitHostPort(l.Addr().String())
	if !isLoopback(host) {
		return nil
	}
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	var urls []string
	for _, name := range []string{"127.0.0.1", "localhost", "[::1]"} {
		urls = append(urls, scheme+name+":"+port)
	}
	return urls
}

// checkIdentity finds settings of servers that contradict who is let in.
func (c *serveCmd) checkIdentity(specs []spec) error {
	for _, s := range specs {
		personal := len(s.Access)+len(s.ClaimHeaders)+len(s.ClaimEnv) > 0
		switch {
		case personal && !c.authorized():
			return fmt.Errorf("mcpServers.%s: access, claim-headers and claim-env tell clients apart, which needs authorization; set auth", s.Name)
		case len(s.ClaimEnv)+len(s.HeaderEnv) > 0 && s.Isolation == "shared":
			return fmt.Errorf("mcpServers.%s: claim-env and header-env are for a process of one session, and this one is shared", s.Name)
		case s.Credentials != nil && s.header.Get("Authorization") != "":
			return fmt.Errorf("mcpServers.%s: client-credentials and the header Authorization contradict each other", s.Name)
		}
	}
	if !c.authorized() {
		return nil
	}
	return keepsCredentials(specs)
}

// keepsCredentials: a client's credential for Signalbox goes nowhere else.
func keepsCredentials(specs []spec) error {
	for _, s := range specs {
		for _, name := range s.ForwardHeaders {
			if name = http.CanonicalHeaderKey(name); name == "Authorization" || name == "X-Api-Key" {
				return fmt.Errorf("forward-header %s of the server %s: with authorization on, that header is a client's credential for signalbox, which no server may see; set the server's own by headers", name, s.Name)
			}
		}
	}
	return nil
}

// keyCmd makes static keys.
type keyCmd struct {
	New keyNewCmd `cmd:"" help:"Print a new key, and the entry for the key file."`
}

type keyNewCmd struct {
	Name  string   `arg:"" help:"Name of the key, for logs and ownership."`
	Scope []string `placeholder:"NAME" help:"Scope of the key; repeatable."`
}

// run prints the key alone in the first line, an empty line, and the entry.
func (c *keyNewCmd) run(std streams) error {
	key, entry, err := auth.NewKey(c.Name, c.Scope)
	if err != nil {
		return usageError{err}
	}
	if err := auth.WriteKey(std.out, key, entry); err != nil {
		return err
	}
	if f, ok := std.out.(*os.File); ok && isTerminal(f) {
		fmt.Fprintln(std.err, "the key is shown this once; the entry goes into the file of --auth-keys")
	}
	return nil
}
