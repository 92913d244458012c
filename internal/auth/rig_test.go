package auth

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/auth/authtest"
)

const (
	issuerName = "https://issuer.example/tenant"
	publicURL  = "https://mcp.example.com"
	resource   = publicURL + "/mcp"
)

// rig is an Authenticator with one issuer and one key file.
type rig struct {
	*Authenticator
	t      testing.TB
	issuer *authtest.Issuer
	file   string // the key file
	key    string // a key in it, named "ci" with the scope "read"
	logs   *logBuffer
}

func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, issuer: authtest.New(issuerName, resource), logs: &logBuffer{}}
	key, entry, err := NewKey("ci", []string{"read"})
	if err != nil {
		t.Fatal(err)
	}
	r.key, r.file = key, filepath.Join(t.TempDir(), "keys.yaml")
	r.write(entry)
	cfg := Config{KeysFile: r.file, Issuers: []string{issuerName}, PublicURLs: []string{publicURL}, HTTPClient: r.issuer.Client(),
		Log: slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})), Metrics: NewMetrics()}
	if change != nil {
		change(&cfg)
	}
	if r.Authenticator, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func (r *rig) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// request has headers given as name, value, name, value.
func request(headers ...string) *http.Request {
	q := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	for i := 0; i+1 < len(headers); i += 2 {
		q.Header.Add(headers[i], headers[i+1])
	}
	return q
}

func bearer(credential string) *http.Request { return request("Authorization", "Bearer "+credential) }

// accepted checks r and fails the test unless it is let in.
func (r *rig) accepted(q *http.Request, scopes ...string) *Principal {
	r.t.Helper()
	p, err := r.Check(q, resource, scopes)
	if err != nil {
		r.t.Fatalf("refused: %v (%+v)", err, err)
	}
	return p
}

// mayAsk ends the pause after the last fetch.
func (r *rig) mayAsk() {
	for _, i := range r.issuers {
		i.mu.Lock()
		i.next = time.Time{}
		i.mu.Unlock()
	}
}

// refused checks r and fails the test unless it is refused like this.
func (r *rig) refused(status int, reason string, q *http.Request, scopes ...string) *Failure {
	r.t.Helper()
	p, err := r.Check(q, resource, scopes)
	var f *Failure
	if !errors.As(err, &f) {
		r.t.Fatalf("accepted as %v, want %d %s", p, status, reason)
	}
	if p != nil {
		r.t.Errorf("a principal beside an error: %v", p)
	}
	if f.Status != status || f.Reason != reason {
		r.t.Fatalf("refused with %d %s (%s), want %d %s", f.Status, f.Reason, f.Message, status, reason)
	}
	return f
}

// counted is the value of the counter that has this label.
func (r *rig) counted(label string) float64 {
	r.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(r.metrics)
	families, err := registry.Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, l := range metric.GetLabel() {
				if l.GetValue() == label {
					return metric.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) count(s string) int { return strings.Count(b.String(), s) }
