package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestProbe(t *testing.T) {
	const id = `"signalbox-discover"`
	found := result(id, `{"resultType":"complete","supportedVersions":["2026-07-28"]}`)
	refusal := `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`
	with := func(code int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		status int
		reply  string
	}{
		"JSON":             {with(200, "application/json", found), 200, found},
		"stream":           {with(200, "text/event-stream", data(logMs)+data(found)), 200, found},
		"stream ends":      {with(200, "text/event-stream", data(logMs)), 200, ""},
		"method not found": {with(404, "application/json", `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32601,"message":"x"}}`), 404, `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32601,"message":"x"}}`},
		"handshake first":  {with(400, "application/json", refusal), 400, `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`},
		"plain 400":        {with(400, "text/plain", "Bad Request"), 400, ""},
		"404":              {status(404), 404, ""},
		"405":              {status(405), 405, ""},
		"401":              {with(401, "application/json", refusal), 401, ""},
		"500":              {with(500, "application/json", refusal), 500, ""},
		"HTML":             {with(200, "text/html", "<p>"), 200, ""},
		"cut body": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "500")
			with(200, "application/json", `{"jsonrpc"`)(w, r)
		}, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
				s.handle("server/discover", tt.answer)
				reply, status, err := srv.Probe(t.Context())
				if err != nil || status != tt.status || string(reply) != tt.reply {
					t.Errorf("got %d %s %v", status, reply, err)
				}
				got := s.all("")
				if len(got) != 1 {
					t.Fatalf("%d requests", len(got))
				}
				h := got[0].header
				if h.Get("Mcp-Method") != "server/discover" || h.Get("Mcp-Protocol-Version") != "2026-07-28" || h["Mcp-Name"] != nil {
					t.Errorf("headers %v", h)
				}
				var body struct {
					ID     any
					Params struct {
						Meta map[string]any `json:"_meta"`
					}
				}
				must(t, json.Unmarshal([]byte(got[0].body), &body))
				want := `{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"signalbox","version":"1.2.3"},"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
				if meta, _ := json.Marshal(body.Params.Meta); body.ID != "signalbox-discover" || string(meta) != want {
					t.Errorf("sent %s", got[0].body)
				}
			})
		})
	}
}

func TestProbeOfNobody(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		s.setUp(false)
		if reply, status, err := srv.Probe(t.Context()); err == nil || reply != nil || status != 0 {
			t.Errorf("got %d %s %v", status, reply, err)
		}
		s.setUp(true)
		s.handle("server/discover", cutOff)
		if _, status, err := srv.Probe(t.Context()); err == nil || status != 0 {
			t.Errorf("got %d %v", status, err)
		}
		heard := make(chan struct{}, 2)
		s.handle("server/discover", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); heard <- struct{}{} })
		began := time.Now()
		if _, status, err := srv.Probe(t.Context()); err != errNoDiscovery || status != 0 || time.Since(began).Truncate(time.Second) != 30*time.Second {
			t.Errorf("got %d %v after %v", status, err, time.Since(began))
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if _, status, err := srv.Probe(ctx); err != gone || status != 0 {
			t.Errorf("got %d %v", status, err)
		}
		for range 2 { // both end at the server
			<-heard
		}
	})
}

// TestProbeGoesElsewhere: an address that is down says nothing of the server.
func TestProbeGoesElsewhere(t *testing.T) {
	alone(t, func(t *testing.T, w *world, s *site, srv *Server) {
		two := w.site("10.0.0.2:80")
		w.name("mcp.test", "10.0.0.1", "10.0.0.2")
		s.setUp(false)
		for range 2 {
			if reply, status, err := srv.Probe(t.Context()); err != nil || status != 200 || reply == nil {
				t.Errorf("got %d %s %v", status, reply, err)
			}
		}
		if n := two.count("server/discover"); n != 2 {
			t.Errorf("%d probes", n)
		}
	})
}
