package front

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestPaths(t *testing.T) {
	inBubble(t, setup{names: []string{"solo"}}, func(t *testing.T, r *rig) {
		for _, path := range []string{"/mcp", "/mcp/", "/mcp?x=1", "/servers/solo/mcp", "/servers/solo/mcp/"} {
			if got := r.do("POST", path, initBody(rev)); got.status != 200 {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
		for _, path := range []string{"/sse", "/sse/", "/servers/solo/sse"} {
			r.stream("GET", path, "").close()
		}
		for _, path := range []string{"/", "//mcp", "/MCP", "/mcp/x", "/servers", "/servers/", "/servers/solo", "/servers/other/mcp", "/servers/solo/x/mcp", "/metrics"} {
			got := r.do("POST", path, ping)
			if got.status != 404 || lookup(got.body, "error", "data", "reason") != `"path"` || !strings.Contains(got.body, "/mcp, /sse") || got.header.Get("Location") != "" {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	})
}

func TestPathsOfSeveralServers(t *testing.T) {
	inBubble(t, setup{names: []string{"a", "b"}}, func(t *testing.T, r *rig) {
		for _, path := range []string{"/mcp", "/sse", "/messages"} {
			got := r.do("POST", path, initBody(rev))
			if got.status != 404 || !strings.Contains(got.body, "/servers/a/mcp, /servers/a/sse, /servers/b/mcp, /servers/b/sse") {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
		if got := r.do("POST", "/servers/b/mcp", initBody(rev)); got.status != 200 {
			t.Errorf("b: %d %s", got.status, got.body)
		}
	})
}

func TestMethodsNotOffered(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		for _, c := range []struct{ method, path, allow string }{
			{"PUT", "/mcp", "GET, POST, DELETE"}, {"HEAD", "/mcp", "GET, POST, DELETE"}, {"PATCH", "/servers/srv/mcp/", "GET, POST, DELETE"}, {"OPTIONS", "/mcp", "GET, POST, DELETE"},
			{"POST", "/sse", "GET"}, {"DELETE", "/sse", "GET"}, {"GET", "/messages", "POST"}, {"DELETE", "/messages?session_id=x", "POST"},
		} {
			got := r.do(c.method, c.path, "")
			if got.status != 405 || got.header.Get("Allow") != c.allow || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s %s: %d, Allow %q", c.method, c.path, got.status, got.header.Get("Allow"))
			}
		}
	})
}

func TestProbes(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		for _, path := range []string{"/healthz", "/readyz", "/readyz/"} {
			for _, method := range []string{"GET", "HEAD", "POST"} {
				if got := r.do(method, path, "", "Host: rebound.example", "Origin: https://evil.example"); got.status != 200 {
					t.Errorf("%s %s: %d %s", method, path, got.status, got.body)
				}
			}
		}
		for range 200 { // nothing that is no initialize leaves anything
			r.do("GET", "/mcp", "")
			r.do("POST", "/mcp", "junk")
			r.do("HEAD", "/", "")
		}
		if r.mem.Len() != 0 || r.procs.count() != 0 || r.metric("signalbox_sessions", "") != 0 {
			t.Error("probes made sessions")
		}
		r.live.Close()
		if got := r.do("GET", "/readyz", ""); got.status != 503 || got.header.Get("Retry-After") == "" {
			t.Errorf("readyz while it stops: %d", got.status)
		}
		if got := r.do("GET", "/healthz", ""); got.status != 200 {
			t.Errorf("healthz while it stops: %d", got.status)
		}
	})
}

func TestHostAndOrigin(t *testing.T) {
	inBubble(t, setup{public: "https://mcp.example.com", hosts: []string{"other.example:8080"}, origins: []string{"https://app.example.com"}}, func(t *testing.T, r *rig) {
		for _, line := range []string{
			"Host: localhost", "Host: localhost:9", "Host: 127.0.0.1:8080", "Host: [::1]:8080", "Host: 10.1.2.3", "Host: mcp.example.com", "Host: mcp.example.com:443", "Host: MCP.example.com.",
			"Host: other.example:8080", "Origin: http://localhost:3000", "Origin: http://127.0.0.1", "Origin: https://mcp.example.com", "Origin: https://app.example.com", "Origin: https://app.example.com:443",
		} {
			if got := r.do("POST", "/mcp", initBody(rev), line); got.status != 200 {
				t.Errorf("%s: %d %s", line, got.status, got.body)
			}
		}
		for _, c := range []struct{ line, flag string }{
			{"Host: evil.example", "--allowed-host"}, {"Host: other.example:8081", "--allowed-host"}, {"Host: localhost.evil.example", "--allowed-host"}, {"Host: 127.0.0.1.evil.example", "--allowed-host"},
			{"Origin: https://evil.example", "--allowed-origin"}, {"Origin: null", "--allowed-origin"}, {"Origin: https://app.example.com.evil.example", "--allowed-origin"}, {"Origin: http://app.example.com", "--allowed-origin"},
		} {
			r.log.Reset()
			got := r.do("POST", "/mcp", initBody(rev), c.line)
			if got.status != 403 || !strings.Contains(got.body, c.flag) || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: %d %s", c.line, got.status, got.body)
			}
			if _, value, _ := strings.Cut(c.line, ": "); !strings.Contains(r.log.String(), c.flag) || !strings.Contains(r.log.String(), value) {
				t.Errorf("%s: the log says %s", c.line, r.log)
			}
		}
		if got := r.do("POST", "/mcp", initBody(rev), "Origin: http://localhost", "Origin: http://localhost"); got.status != 403 {
			t.Errorf("two origins: %d", got.status)
		}
	})
}

func TestCORS(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		const origin = "Origin: http://localhost:6274"
		got := r.do("OPTIONS", "/mcp", "", origin, "Access-Control-Request-Method: DELETE", "Access-Control-Request-Headers: mcp-session-id")
		if got.status != 204 || got.body != "" {
			t.Errorf("preflight: %d %s", got.status, got.body)
		}
		allowed := strings.ToLower(got.header.Get("Access-Control-Allow-Headers"))
		for _, name := range []string{"content-type", "accept", "mcp-session-id", "mcp-protocol-version", "last-event-id", "authorization", "mcp-method", "mcp-name"} {
			if !strings.Contains(allowed, name) {
				t.Errorf("%s is not among the allowed headers", name)
			}
		}
		if methods := got.header.Get("Access-Control-Allow-Methods"); !strings.Contains(methods, "DELETE") || !strings.Contains(methods, "POST") || !strings.Contains(methods, "GET") {
			t.Errorf("methods %s", methods)
		}
		session := r.open(rev)
		for name, got := range map[string]reply{
			"preflight":  got,
			"result":     r.do("POST", "/mcp", ping, session, origin),
			"initialize": r.do("POST", "/mcp", initBody(rev), origin),
			"400":        r.do("POST", "/mcp", "{", session, origin),
			"404":        r.do("POST", "/mcp", ping, "Mcp-Session-Id: x", origin),
			"no path":    r.do("GET", "/", "", origin),
			"405":        r.do("PUT", "/mcp", "", origin),
			"415":        r.do("POST", "/mcp", "x", "Content-Type: text/plain", origin),
		} {
			h := got.header
			if h.Get("Access-Control-Allow-Origin") != "http://localhost:6274" || h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" ||
				!strings.Contains(h.Get("Access-Control-Expose-Headers"), "Mcp-Session-Id") || !strings.Contains(h.Get("Access-Control-Expose-Headers"), "WWW-Authenticate") {
				t.Errorf("%s: %v", name, h)
			}
		}
		evil := r.do("OPTIONS", "/mcp", "", "Origin: https://evil.example", "Access-Control-Request-Method: POST")
		if evil.status != 403 || evil.header.Get("Access-Control-Allow-Origin") != "" || evil.header.Get("Vary") != "Origin" {
			t.Errorf("preflight of another origin: %d %v", evil.status, evil.header)
		}
	})
}

func TestAcceptDecidesTheForm(t *testing.T) {
	const json, events = "application/json", "text/event-stream"
	for accept, want := range map[string]string{
		"": json, "*/*": json, "application/*": json, "application/json": json, "APPLICATION/JSON": json, "application/json;q=0.5": json, "application/json; charset=utf-8": json,
		"application/json, text/event-stream": json, "text/event-stream, application/json": json, "text/html, */*;q=0.1": json,
		"text/event-stream": events, "TEXT/Event-Stream;q=1": events, "text/*": events, "application/json;q=0, text/event-stream": events, "*/*, application/json;q=0": events,
		"text/event-stream;q=0, */*": json,
		"text/html":                  "", "application/json;q=0": "", "application/xml, image/*": "", "*/*;q=0": "", ",": "",
	} {
		t.Run(accept, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, r *rig) {
				got := r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":5,"method":"echo","params":{}}`, r.open(rev), "Accept: "+accept)
				switch {
				case want == "" && (got.status != 406 || got.header.Get("Content-Type") != json):
					t.Errorf("got %d %v", got.status, got.header)
				case want != "" && (got.status != 200 || got.header.Get("Content-Type") != want || !strings.Contains(got.body, `{"jsonrpc":"2.0","id":5,"result":{}}`)):
					t.Errorf("got %d %s %s", got.status, got.header.Get("Content-Type"), got.body)
				}
			})
		})
	}
}

func TestContentTypes(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		for _, ct := range []string{"application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "APPLICATION/JSON", "application/json;", ""} {
			if got := r.do("POST", "/mcp", ping, session, "Content-Type: "+ct); got.status != 200 {
				t.Errorf("%q: %d %s", ct, got.status, got.body)
			}
		}
		if got := r.do("POST", "/mcp", ping, session, "Content-Encoding: identity"); got.status != 200 {
			t.Errorf("identity: %d", got.status)
		}
	})
}

func TestBodySizes(t *testing.T) {
	sized := func(n int) string {
		head, tail := `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"x":"`, `"}}`
		return head + strings.Repeat("x", n-len(head)-len(tail)) + tail
	}
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		for _, c := range []struct{ size, status int }{{99 << 10, 200}, {101 << 10, 200}, {maxMessage - 1, 200}, {maxMessage, 200}, {maxMessage + 1, 413}, {10 * maxMessage, 413}} {
			for _, chunked := range []bool{false, true} {
				req := r.request("POST", "/mcp", sized(c.size), session)
				if chunked {
					req.ContentLength = -1
				}
				got := r.send(req)
				if got.status != c.status {
					t.Errorf("%d bytes, chunked %v: %d %.200s", c.size, chunked, got.status, got.body)
				}
				if c.status == 413 && (lookup(got.body, "error", "code") != "-32600" || !strings.Contains(got.body, "262144") || !strings.Contains(got.body, "--max-message")) {
					t.Errorf("413 says %s", got.body)
				}
			}
		}
	})
}

func TestEndlessBodyIsCut(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		req := r.request("POST", "/mcp", "x", r.open(rev))
		req.Body, req.ContentLength = io.NopCloser(endless{}), -1
		if got := r.send(req); got.status != 413 {
			t.Errorf("got %d %s", got.status, got.body)
		}
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A client that stops sending is let go, whether its body is wanted or not; a
// slow one is not.
func TestSlowBodies(t *testing.T) {
	for _, c := range []struct {
		name   string
		accept string
		pause  time.Duration
		status int
	}{
		{"wanted, slow", "*/*", readTimeout - time.Second, 200},
		{"wanted, stopped", "*/*", time.Hour, 400},
		{"refused, stopped", "text/html", time.Hour, 406},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, setup{}, func(t *testing.T, r *rig) {
				session := r.open(rev)
				body := &slowReader{r: strings.NewReader(ping), pause: c.pause, quit: make(chan struct{})}
				defer close(body.quit)
				req := r.request("POST", "/mcp", "x", session, "Accept: "+c.accept)
				req.Body, req.ContentLength = io.NopCloser(iotest.OneByteReader(body)), int64(len(ping))
				begin := time.Now()
				got := r.send(req)
				if got.status != c.status {
					t.Errorf("got %d %s", got.status, got.body)
				}
				if d := time.Since(begin); c.status != 200 && d > 2*readTimeout {
					t.Errorf("after %v", d)
				}
			})
		})
	}
}

// slowReader pauses after the first half of r.
type slowReader struct {
	r     *strings.Reader
	pause time.Duration
	quit  chan struct{}
}

func (s *slowReader) Read(p []byte) (int, error) {
	if s.r.Len() < len(ping)/2 {
		select {
		case <-time.After(s.pause):
		case <-s.quit:
		}
		s.pause = 0
	}
	return s.r.Read(p)
}

func TestConnectionIsReusedAfterAnswers(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		for range 5 {
			r.do("POST", "/mcp", ping, session)
			r.do("POST", "/mcp", initialized, session)
			r.do("POST", "/mcp", "{", session)
			r.do("POST", "/mcp", `{"jsonrpc":"2.0","id":5,"method":"echo"}`, session, "Accept: text/event-stream")
			time.Sleep(time.Minute) // no deadline of the last answer may hit the idle connection
			synctest.Wait()
		}
		if n := r.listen.dials.Load(); n != 1 {
			t.Errorf("%d connections for one client", n)
		}
	})
}

// A body that drips keeps every single deadline, but not that of the whole.
func TestDrippingBodyIsCut(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		drip := &dripReader{pause: readTimeout - time.Second, quit: make(chan struct{})}
		defer close(drip.quit)
		req := r.request("POST", "/mcp", "x", r.open(rev))
		req.Body, req.ContentLength = io.NopCloser(drip), 1000
		begin := time.Now()
		if got := r.send(req); got.status != 400 {
			t.Errorf("got %d %s", got.status, got.body)
		}
		if d := time.Since(begin); d > 2*readTimeout {
			t.Errorf("after %v", d)
		}
	})
}

// dripReader has one byte after each pause.
type dripReader struct {
	pause time.Duration
	quit  chan struct{}
}

func (d *dripReader) Read(p []byte) (int, error) {
	select {
	case <-time.After(d.pause):
		p[0] = ' '
		return 1, nil
	case <-d.quit:
		return 0, io.EOF
	}
}

// All bodies that are being read have one budget; small ones are not refused.
func TestBodiesHaveABudget(t *testing.T) {
	inBubble(t, setup{}, func(t *testing.T, r *rig) {
		session := r.open(rev)
		hold := make(chan struct{})
		part := strings.Repeat(" ", 240<<10)
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				req := r.request("POST", "/mcp", "x", session)
				req.Body, req.ContentLength = io.NopCloser(io.MultiReader(strings.NewReader(part), waitReader(hold), strings.NewReader("{}"))), -1
				got := r.send(req)
				if got.status != 400 && got.status != 503 || got.status == 503 && (got.header.Get("Retry-After") == "" || lookup(got.body, "error", "data", "reason") != `"body_budget"`) {
					t.Errorf("a large body got %d %s", got.status, got.body)
				}
			})
		}
		synctest.Wait()
		if n := r.metric("signalbox_refused_total", "body_budget"); n == 0 || n == 8 {
			t.Errorf("%v of 8 bodies were refused", n)
		}
		if got := r.do("POST", "/mcp", ping, session); got.status != 200 {
			t.Errorf("a small one got %d %s", got.status, got.body)
		}
		close(hold)
		clients.Wait()
		big := `{"jsonrpc":"2.0","id":5,"method":"echo","params":{"x":"` + strings.Repeat("x", 200<<10) + `"}}`
		if got := r.do("POST", "/mcp", big, session); got.status != 200 {
			t.Errorf("afterwards a large one got %d %.200s", got.status, got.body)
		}
	})
}

type waitReader chan struct{}

func (w waitReader) Read([]byte) (int, error) {
	<-w
	return 0, io.EOF
}

// A client that has closed its side while its call runs is told nothing: an
// empty success would be a lie.
func TestHalfClosedClientGetsNoStatus(t *testing.T) {
	r := newRig(t, setup{})
	session := r.initialize(rev)
	r.procs.list[0].silent = true
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() { _ = r.server.Serve(listener) })
	t.Cleanup(func() {
		_ = listener.Close()
		served.Wait()
	})
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	body := `{"jsonrpc":"2.0","id":5,"method":"slow"}`
	fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: localhost\r\n%s\r\nContent-Type: application/json\r\nAccept: application/json\r\nContent-Length: %d\r\n\r\n%s", session, len(body), body)
	_ = c.(*net.TCPConn).CloseWrite()
	if got, _ := io.ReadAll(c); len(got) != 0 {
		t.Errorf("it got %q", got)
	}
}
