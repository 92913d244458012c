package doctor

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// httpFake is a good Streamable HTTP server of the handshake era.
func httpFake(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	case http.MethodPost:
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var a asked
	body, _ := io.ReadAll(r.Body)
	if json.Unmarshal(body, &a) != nil || len(a.ID) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case a.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", "session-1")
		fmt.Fprint(w, result(a.ID, initResult))
	case r.Header.Get("Mcp-Session-Id") != "session-1":
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, failure(json.RawMessage("null"), `{"code":-32000,"message":"no session"}`))
	case r.Header.Get("Mcp-Protocol-Version") != "2025-06-18":
		w.WriteHeader(http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": hello\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: %s\n\n", result(a.ID, toolList))
	}
}

// oldFake is a good HTTP+SSE server.
func oldFake() http.HandlerFunc {
	events := make(chan string, 8)
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.URL.Path == "/messages" {
			var a asked
			if json.NewDecoder(r.Body).Decode(&a) == nil && len(a.ID) > 0 {
				line := result(a.ID, initResult)
				if a.Method == "tools/list" {
					line = result(a.ID, toolList)
				}
				events <- line
			}
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: endpoint\ndata: /messages?session_id=x\n\n")
		for {
			w.(http.Flusher).Flush()
			select {
			case line := <-events:
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", line)
			case <-r.Context().Done():
				return
			}
		}
	}
}

// status answers everything with one status.
func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// initialize answers it with a body of its own, made of the request's id.
func initialize(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var a asked
		_ = json.NewDecoder(r.Body).Decode(&a)
		if a.Method != "initialize" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", contentType)
		fmt.Fprint(w, strings.ReplaceAll(body, "ID", string(a.ID)))
	}
}

// site of a test: a handler, and what the server's entry says.
type address struct {
	handler http.HandlerFunc
	change  func(*Server)
	tls     bool
}

func withType(kind string) func(*Server) { return func(s *Server) { s.Type = kind } }

func withHeader(s *Server) {
	s.Header = http.Header{"Authorization": {"Bearer s3cret-value"}}
}

func addresses() map[string]address {
	metadata := `Bearer resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource"`
	return map[string]address{
		"good":                       {handler: httpFake},
		"good over HTTP+SSE":         {handler: oldFake()},
		"good by TLS":                {handler: httpFake, tls: true},
		"sse given as http":          {handler: oldFake(), change: withType("http")},
		"http given as sse":          {handler: httpFake, change: withType("sse")},
		"no path":                    {handler: status(404, "not here")},
		"web page":                   {handler: status(200, "<!DOCTYPE html><title>x</title>", "Content-Type", "text/html")},
		"no POST":                    {handler: status(405, "")},
		"credential missing":         {handler: status(401, "", "WWW-Authenticate", metadata)},
		"credential refused":         {handler: status(401, "bad token s3cret-value"), change: withHeader},
		"forbidden":                  {handler: status(403, "no", "WWW-Authenticate", metadata), change: withHeader},
		"forbidden without any":      {handler: status(403, "")},
		"scope":                      {handler: status(403, "", "WWW-Authenticate", `Bearer error="insufficient_scope", scope="mcp:use"`), change: withHeader},
		"host refused":               {handler: status(403, "Invalid Host header: evil")},
		"redirect to another origin": {handler: status(307, "", "Location", "https://login.example.com/start?state=s3cret-value")},
		"redirect by 301":            {handler: status(301, "", "Location", "/mcp/")},
		"redirect that is followed": {handler: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/mcp" {
				http.Redirect(w, r, "/mcp/", http.StatusPermanentRedirect)
				return
			}
			httpFake(w, r)
		}},
		"busy":                {handler: status(503, "starting", "Retry-After", "30")},
		"gateway":             {handler: status(502, "<html>nginx")},
		"fails":               {handler: status(500, "no database")},
		"refuses the request": {handler: status(415, "charset")},
		"no answer":           {handler: status(202, "")},
		"compressed":          {handler: status(200, "x", "Content-Encoding", "gzip", "Content-Type", "application/json")},
		"content type":        {handler: status(200, "hello", "Content-Type", "text/plain")},
		"empty":               {handler: status(200, "", "Content-Type", "application/json")},
		"bad JSON":            {handler: initialize("application/json", `{"jsonrpc":"2.0",`)},
		"wrong id":            {handler: initialize("application/json", result(json.RawMessage("7"), initResult))},
		"stream ends":         {handler: initialize("text/event-stream", ": nothing\n\n")},
		"refuses initialize":  {handler: initialize("application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"no license"}}`)},
		"endpoint elsewhere": {handler: func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				initializeStream(w, "event: endpoint\ndata: http://other.example.com/messages\n\n")
				return
			}
			w.WriteHeader(http.StatusMethodNotAllowed)
		}},
		"certificate of nobody known":  {handler: httpFake, tls: true, change: func(s *Server) { s.Secrets = append(s.Secrets, "no roots") }},
		"certificate of another name":  {handler: httpFake, tls: true, change: func(s *Server) { s.Address, s.URL = s.URL, mustParse("https://mcp.internal:8443/mcp") }},
		"https where http is spoken":   {handler: httpFake, change: func(s *Server) { s.URL.Scheme = "https" }},
		"http where https is spoken":   {handler: httpFake, tls: true, change: func(s *Server) { s.URL.Scheme = "http" }},
		"query is not shown":           {handler: status(404, "no key s3cret-query"), change: func(s *Server) { s.URL.RawQuery = "key=s3cret-query" }},
		"connection is closed at once": {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	}
}

func mustParse(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}

func initializeStream(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, text)
}

// TestAddresses: every HTTP server has its sentence.
func TestAddresses(t *testing.T) {
	got := make(map[string]string)
	try := func(name string, s Server, o Options) {
		report := Examine(context.Background(), s, o)
		var text strings.Builder
		Print(&text, report)
		if strings.Contains(text.String(), "s3cret") {
			t.Errorf("%s: a secret is shown:\n%s", name, text.String())
		}
		got[name] = sentence(report)
		for _, u := range []*url.URL{s.URL, s.Address} {
			if u != nil && u.Port() != "" && u.Hostname() == "127.0.0.1" {
				got[name] = strings.ReplaceAll(got[name], u.Host, "HOST:PORT")
			}
		}
	}
	plain := Options{Version: "test", roots: x509.NewCertPool()}
	for name, a := range addresses() {
		server := httptest.NewUnstartedServer(a.handler)
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		o := plain
		if a.tls {
			server.StartTLS()
			o.roots = x509.NewCertPool()
			o.roots.AddCert(server.Certificate())
		} else {
			server.Start()
		}
		u := mustParse(server.URL + "/mcp")
		s := Server{Name: "far", URL: u, StartTimeout: time.Minute, MaxMessage: 1 << 20}
		if a.change != nil {
			a.change(&s)
		}
		if len(s.Secrets) > 0 {
			o.roots = x509.NewCertPool()
		}
		try(name, s, o)
		server.Close()
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := mustParse("http://" + l.Addr().String() + "/mcp")
	l.Close()
	try("nobody listens", Server{Name: "far", URL: refused, StartTimeout: time.Minute, MaxMessage: 1 << 20}, plain)
	golden(t, "addresses.golden", got)
}

// TestFaultsOfTheNetwork: what a test cannot bring about by a server.
func TestFaultsOfTheNetwork(t *testing.T) {
	x := &exam{ctx: context.Background(), server: Server{URL: mustParse("https://mcp.example.com/mcp"), StartTimeout: time.Minute}, veil: newVeil(Server{}), r: &Report{}}
	got := make(map[string]string)
	for name, err := range map[string]error{
		"name not found":      &net.OpError{Op: "dial", Err: &net.DNSError{Name: "mcp.example.com", IsNotFound: true}},
		"DNS does not answer": &net.OpError{Op: "dial", Err: &net.DNSError{Name: "mcp.example.com", IsTimeout: true}},
		"no way there":        &net.OpError{Op: "dial", Err: fmt.Errorf("no route to host")},
		"no time left":        context.DeadlineExceeded,
		"expired":             x509.CertificateInvalidError{Reason: x509.Expired},
		"handshake":           fmt.Errorf("remote error: %w", tls.AlertError(40)),
		"no HTTP":             fmt.Errorf(`malformed HTTP response "SSH-2.0"`),
	} {
		f := x.dialFault(err)
		got[name] = f.Case + ": " + f.Text
	}
	golden(t, "network.golden", got)
}

// TestSilentAddress: a server that takes a request and never answers.
func TestSilentAddress(t *testing.T) {
	waits := make(chan struct{}, 4)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		waits <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	o := Options{Version: "test", limit: func(ctx context.Context, _ string, _ time.Duration) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case <-waits:
				cancel()
			case <-ctx.Done():
			}
		}()
		return ctx, cancel
	}}
	report := Examine(context.Background(), Server{Name: "far", URL: mustParse(server.URL), StartTimeout: time.Minute, MaxMessage: 1 << 20}, o)
	if report.Finding == nil || report.Finding.Case != "http-silent" {
		t.Errorf("%+v", report.Finding)
	}
}
