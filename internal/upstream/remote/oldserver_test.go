package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/upstream/process"
)

// withLegacy gives a server the routing of HTTP+SSE.
func (w *world) withLegacy(change ...func(*Config)) *Server {
	cfg := w.config()
	for _, f := range change {
		f(&cfg)
	}
	var srv *Server
	cfg.Legacy = process.New(process.Config{
		Name: cfg.Name, StartTimeout: cfg.StartTimeout, CallTimeout: cfg.CallTimeout, CallLimit: cfg.CallLimit, MaxMessage: cfg.MaxMessage,
		Version: cfg.Version, Log: cfg.Log, Metrics: process.NewMetrics(),
		Start: func(h child.Handler, init upstream.Request) (process.Pipe, error) {
			return srv.OpenPipe(h, init.Header)
		},
	})
	srv = New(cfg)
	return srv
}

func isSSE(cfg *Config) { cfg.Kind = SSE }

// oldServer scripts HTTP+SSE on a site: messages posted to the endpoint are
// answered on the stream.
type oldServer struct {
	s        *site
	endpoint string

	mu      sync.Mutex
	streams int
	send    func(string, ...any)
	end     chan struct{}
	ended   chan struct{} // gets a value when a stream is over
	on      map[string]func(w http.ResponseWriter, id string)
}

func (s *site) old(endpoint string) *oldServer {
	o := &oldServer{s: s, endpoint: endpoint, end: make(chan struct{}), ended: make(chan struct{}, 10), on: make(map[string]func(http.ResponseWriter, string))}
	s.srv.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var msg struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &msg)
		what := msg.Method
		switch {
		case r.Method != http.MethodPost:
			what = r.Method
		case what == "":
			what = "response"
		}
		s.mu.Lock()
		s.seen = append(s.seen, seen{what, r.Method, r.RequestURI, r.Host, r.Header, string(body)})
		s.mu.Unlock()
		switch {
		case r.Method == http.MethodGet:
			o.stream(w, r)
		case r.RequestURI == "/base/mcp?tenant=a%2Fb":
			http.NotFound(w, r)
		default:
			o.post(w, what, string(msg.ID))
		}
	})
	return o
}

func (o *oldServer) stream(w http.ResponseWriter, r *http.Request) {
	send := stream(w)
	o.mu.Lock()
	o.streams++
	lock := new(sync.Mutex)
	o.send = func(format string, args ...any) {
		lock.Lock()
		defer lock.Unlock()
		if r.Context().Err() == nil {
			send(format, args...)
		}
	}
	o.mu.Unlock()
	if o.endpoint != "" {
		o.say("event: endpoint\ndata: " + o.endpoint + "\n\n")
	}
	select {
	case <-o.end:
	case <-r.Context().Done():
		lock.Lock()
		defer lock.Unlock()
	}
	o.ended <- struct{}{}
}

// say sends on the newest stream.
func (o *oldServer) say(format string, args ...any) {
	o.mu.Lock()
	send := o.send
	o.mu.Unlock()
	send(format, args...)
}

func (o *oldServer) post(w http.ResponseWriter, what, id string) {
	o.mu.Lock()
	h := o.on[what]
	o.mu.Unlock()
	if h != nil {
		h(w, id)
		return
	}
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.WriteString(w, "Accepted")
	if id == "" || what == "response" {
		return
	}
	switch what {
	case "initialize":
		o.say("%s", "event: message\n"+data(result(id, `{"protocolVersion":"2024-11-05","capabilities":{}}`)))
	default:
		o.say("%s", data(result(id, `{"did":"`+what+`"}`)))
	}
}

func (o *oldServer) handle(what string, h func(w http.ResponseWriter, id string)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on[what] = h
}

func (c *client) initialized() {
	c.t.Helper()
	must(c.t, c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
}

// TestOldServer: a session over HTTP+SSE, from the endpoint event to the end.
func TestOldServer(t *testing.T) {
	for endpoint, uri := range map[string]string{
		"/messages?sid=1":                "/messages?sid=1",
		"messages?sid=1":                 "/base/messages?sid=1",
		"?sid=1":                         "/base/mcp?sid=1",
		"http://mcp.test/messages?sid=1": "/messages?sid=1",
		"http://MCP.TEST:80/m":           "/m",
		"//mcp.test/m":                   "/m",
	} {
		t.Run(endpoint, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				o := s.old(endpoint)
				srv := w.withLegacy(isSSE, func(cfg *Config) { cfg.Header = http.Header{"X-Key": {"k"}} })
				defer srv.Close()
				c := open(t, srv)
				if c.reply != result("0", `{"protocolVersion":"2024-11-05","capabilities":{}}`) {
					t.Errorf("initialize: %s", c.reply)
				}
				c.initialized()
				if got := c.call(list); got != result("1", `{"did":"tools/list"}`) {
					t.Errorf("got %s", got)
				}
				o.say("event: endpoint\ndata: /elsewhere\n\n") // a second one means nothing
				o.handle("tools/call", func(w http.ResponseWriter, id string) {
					w.WriteHeader(202)
					var token string
					for _, r := range s.all("tools/call") {
						_, token, _ = strings.Cut(r.body, `"progressToken":`)
						token, _, _ = strings.Cut(token, "}")
					}
					o.say("%s", data(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`+token+`,"progress":1}}`))
					o.say("%s", "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":"+id+",\ndata: \"result\":{}}\n\n")
				})
				sink, _ := c.start(tool)
				must(t, sink.end())
				if got := sink.frame(); got != prog {
					t.Errorf("progress %s", got)
				}
				if got := sink.frame(); got != `{"jsonrpc":"2.0", "id":2, "result":{}}` {
					t.Errorf("reply %s", got)
				}
				o.say(data(ask))
				if got := c.events.frame(); got != ask {
					t.Errorf("ask %s", got)
				}
				answer := `{"jsonrpc":"2.0","id":"q1","result":{}}`
				must(t, c.send(answer))
				synctest.Wait()
				if got := s.all("response"); len(got) != 1 || got[0].body != answer {
					t.Errorf("the server got %v", got)
				}
				for _, r := range s.all("") {
					if r.http == "GET" && r.uri == "/base/mcp?tenant=a%2Fb" || r.http == "POST" && r.uri == uri {
						if r.host == "mcp.test" && r.header.Get("X-Key") == "k" && r.header.Get("Mcp-Session-Id") == "" {
							continue
						}
					}
					t.Errorf("%s %s of %s %v", r.http, r.uri, r.host, r.header)
				}
				c.conn.End(upstream.ErrClosed)
				must(t, ignore(c.events.end(), upstream.ErrClosed))
				<-o.ended
				synctest.Wait()
				if n := counts(srv)["http://"+s.addr]; n != 0 {
					t.Errorf("%d sessions", n)
				}
			})
		})
	}
}

// TestBadEndpoint: an endpoint of another origin gets nothing, and the client a
// clear error.
func TestBadEndpoint(t *testing.T) {
	for endpoint, part := range map[string]string{
		"https://evil.test/m":    "another origin, https://evil.test, which is refused",
		"http://evil.test/m":     "another origin",
		"//evil.test/m":          "another origin",
		"http://mcp.test:9/m":    "another origin",
		"https://mcp.test/m":     "another origin",
		"http://u:p@mcp.test/m":  "another origin",
		"http://0.0.0.0:9/m":     "another origin",
		"http://[::1/m":          "no URL",
		"/m HTTP/1.1":            "",
		"/m?a=b HTTP/1.1":        "no URL",
		"/m?ä":                   "no URL",
		"mailto:x":               "another origin",
		"http://mcp.test@evil/m": "another origin",
	} {
		if part == "" {
			continue // a space in a path is escaped: good
		}
		t.Run(endpoint, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world, s *site) {
				w.name("evil.test", "10.6.6.6")
				evil := w.site("10.6.6.6:80")
				s.old(endpoint)
				srv := w.withLegacy(isSSE)
				defer srv.Close()
				_, reply := begin(t, srv)
				reply.fails("start_failed", part)
				synctest.Wait()
				if evil.count("") != 0 || s.count("") != 1 || len(w.dialled()) != 1 {
					t.Errorf("dialled %v, %d requests", w.dialled(), s.count(""))
				}
			})
		})
	}
}
