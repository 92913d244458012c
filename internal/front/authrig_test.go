package front

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/signalbox-mcp/signalbox/internal/auth"
	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
	"github.com/signalbox-mcp/signalbox/internal/guard"
	"github.com/signalbox-mcp/signalbox/internal/policy"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

const issuerName = "https://issuer.example/tenant"

// authRig is a rig with authorization: two static keys, an issuer, and a server
// that answers everything and offers the tool "safe" only.
type authRig struct {
	*rig
	issuer         *authtest.Issuer
	alice, mallory string      // static keys
	got            chan string // what reached the server
	session        string      // of alice; see expand
	legacyID       string      // of alice
	stop           []func()
}

// noting is answering that notes what opens a session, too.
type noting struct{ answering }

func (n noting) Open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	n.got <- string(init.Msg.Raw)
	return n.answering.Open(init, reply, events)
}

// guarded puts the rules before a server.
func guarded(server upstream.Server) upstream.Server {
	rules := &policy.Rules{Tools: policy.NewFilter([]string{"safe"}, nil), Shared: true}
	return policy.Wrap(server, policy.Config{Name: "srv", Rules: func(upstream.Request) (*policy.Rules, error) { return rules, nil },
		Log: slog.New(slog.DiscardHandler), Metrics: policy.NewMetrics()})
}

// newAuthRig fills in s.upstream.
func newAuthRig(t testing.TB, s setup) *authRig {
	t.Helper()
	r := &authRig{got: make(chan string, 20_000), issuer: authtest.New(issuerName, base)}
	s.upstream = guarded(noting{answering{r.got}})
	r.rig = newRig(t, s)
	var file string
	for name, key := range map[string]*string{"alice": &r.alice, "mallory": &r.mallory} {
		made, entry, err := auth.NewKey(name, nil)
		if err != nil {
			t.Fatal(err)
		}
		*key, file = made, file+entry
	}
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	public := base
	if s.public != "" {
		public = strings.TrimSuffix(s.public, "/")
	}
	r.issuer.Audience = public
	a, err := auth.New(auth.Config{KeysFile: path, Issuers: []string{issuerName}, PublicURLs: []string{public},
		HTTPClient: r.issuer.Client(), Log: slog.New(slog.DiscardHandler), Metrics: auth.NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	r.front.cfg.Auth = a
	r.front.cfg.Guard = guard.New(s.hosts, s.origins, r.front.cfg.PublicURL, slog.New(slog.DiscardHandler)).AnyHost()
	t.Cleanup(func() {
		for _, stop := range r.stop {
			stop()
		}
		a.Close()
	})
	return r
}

func inAuthBubble(t *testing.T, s setup, test func(t *testing.T, r *authRig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newAuthRig(t, s)
		r.settle = synctest.Wait
		test(t, r)
	})
}

// bearer is a header line.
func bearer(credential string) string { return "Authorization: Bearer " + credential }

// ready opens alice's sessions, of 2025-03-26 and over HTTP+SSE.
func (r *authRig) ready() {
	r.t.Helper()
	got := r.do("POST", "/mcp", initBody("2025-03-26"), bearer(r.alice))
	if r.session = got.header.Get("Mcp-Session-Id"); got.status != 200 || r.session == "" {
		r.t.Fatalf("initialize: %d %s", got.status, got.body)
	}
	if got := r.do("POST", "/mcp", initialized, bearer(r.alice), "Mcp-Session-Id: "+r.session); got.status != 202 {
		r.t.Fatalf("initialized: %d %s", got.status, got.body)
	}
	s := r.stream("GET", "/sse", "", "Accept: text/event-stream", bearer(r.alice))
	endpoint := string(s.next().Data)
	r.legacyID = endpoint[strings.Index(endpoint, "=")+1:]
	read := make(chan struct{})
	go func() { // or the stream would end for want of a reader
		defer close(read)
		_, _ = io.Copy(io.Discard, s.res.Body)
	}()
	r.stop = append(r.stop, func() { s.cancel(); <-read })
	if got := r.do("POST", endpoint, initBody("2025-03-26"), bearer(r.alice)); got.status != 202 {
		r.t.Fatalf("initialize over HTTP+SSE: %d %s", got.status, got.body)
	}
	r.settle()
	r.reached()
}

// reached empties got.
func (r *authRig) reached() (all []string) {
	for {
		select {
		case m := <-r.got:
			all = append(all, m)
		default:
			return all
		}
	}
}

// expand puts in what the tables name: {alice} and {mallory} are keys, {token} is
// a good token of a subject alice, {expired} is hers too, {hers} is a session of
// the key alice, {old} one over HTTP+SSE; capitals stand for the other case.
func (r *authRig) expand(s string) string {
	return strings.NewReplacer(
		"{alice}", r.alice, "{mallory}", r.mallory, "{hers}", r.session, "{old}", r.legacyID,
		"{ALICE}", otherCase(r.alice), "{HERS}", otherCase(r.session),
		"{token}", r.issuer.Token(nil),
		"{bob}", r.issuer.Token(map[string]any{"sub": "bob"}),
		"{expired}", r.issuer.Token(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}),
		"{other audience}", r.issuer.Token(map[string]any{"aud": "https://other.example/mcp"}),
		"{other tenant}", r.issuer.Token(map[string]any{"iss": "https://issuer.example/other"}),
	).Replace(s)
}

// otherCase swaps the case of all letters.
func otherCase(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsUpper(c) {
			return unicode.ToLower(c)
		}
		return unicode.ToUpper(c)
	}, s)
}

// open turns authorization off.
func (r *authRig) open() {
	r.front.cfg.Auth = nil
	r.front.cfg.Guard = guard.New(nil, nil, nil, slog.New(slog.DiscardHandler))
}

// exchange writes the bytes of a client to one connection, in the pieces given,
// and reads all answers until the server closes it or the time is up.
func (r *authRig) exchange(pieces []string, pause time.Duration) ([]reply, error) {
	r.t.Helper()
	conn, err := r.listen.dial(r.t.Context(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for i, p := range pieces {
			if i > 0 {
				time.Sleep(pause)
			}
			if _, err := io.WriteString(conn, p); err != nil {
				return // refused before its end
			}
		}
	}()
	defer func() { conn.Close(); <-wrote }()
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Minute))
	in := bufio.NewReader(conn)
	var all []reply
	for {
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) {
				err = nil
			}
			return all, err
		}
		var body bytes.Buffer
		if _, err := body.ReadFrom(res.Body); err != nil {
			return all, fmt.Errorf("body: %w", err)
		}
		all = append(all, reply{res.StatusCode, res.Header, body.String()})
	}
}

// req is the bytes of a request that ends its connection.
func req(line string, body string, headers ...string) string {
	return keep(line, body, append(headers, "Connection: close")...)
}

// keep is the bytes of a request that leaves its connection open.
func keep(line string, body string, headers ...string) string {
	var b strings.Builder
	b.WriteString(line + " HTTP/1.1\r\n")
	all := strings.Join(headers, "\r\n")
	for _, usual := range []string{"Host: localhost", "Accept: application/json, text/event-stream", "Content-Type: application/json"} {
		if name, _, _ := strings.Cut(usual, " "); !strings.Contains("\r\n"+all, "\r\n"+name) {
			b.WriteString(usual + "\r\n")
		}
	}
	if !strings.Contains(all, "Transfer-Encoding") && !strings.Contains(all, "Content-Length") && body != "" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	}
	if all != "" {
		b.WriteString(all + "\r\n")
	}
	return b.String() + "\r\n" + body
}
