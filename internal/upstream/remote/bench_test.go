package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// BenchmarkCall is one call of 200 bytes over a socket, beside the bare exchange
// with net/http that it is made of.
func BenchmarkCall(b *testing.B) {
	pad := strings.Repeat("x", 130)
	answers := map[string]func(w http.ResponseWriter, id string){
		"JSON": func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, result(id, `"`+pad+`"`))
		},
		"SSE": func(w http.ResponseWriter, id string) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, data(prog)+data(prog)+data(prog)+data(result(id, `"`+pad+`"`)))
		},
	}
	msg := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":"` + pad + `"}}}`
	for name, answer := range answers {
		ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"initialize"`) {
				writeAs("application/json", result("0", `{"protocolVersion":"2025-06-18"}`))(w, r)
				return
			}
			answer(w, "1")
		}))
		b.Run(name+"/signalbox", func(b *testing.B) {
			cfg := newWorld(nil).config()
			cfg.URL, _ = url.Parse(ts.URL)
			cfg.dial, cfg.resolve = nil, nil
			srv := New(cfg)
			defer srv.Close()
			init := &lastSink{}
			init.wg.Add(1)
			conn, err := srv.Open(request(b, initialize), init, nobody{})
			must(b, err)
			init.wg.Wait()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s := &lastSink{}
					s.wg.Add(1)
					if _, err := conn.Start(request(b, msg), s); err != nil {
						b.Error(err)
						return
					}
					s.wg.Wait()
					if s.err != nil {
						b.Error(s.err)
						return
					}
				}
			})
		})
		b.Run(name+"/net-http", func(b *testing.B) {
			tr := &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}
			defer tr.CloseIdleConnections()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					req, _ := http.NewRequest(http.MethodPost, ts.URL, strings.NewReader(msg))
					req.Header.Set("Content-Type", "application/json")
					resp, err := tr.RoundTrip(req)
					if err != nil {
						b.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			})
		})
		ts.Close()
	}
}

// lastSink waits for the end, and lets everything else go.
type lastSink struct {
	wg  sync.WaitGroup
	err error
}

func (s *lastSink) Deliver(upstream.Frame) upstream.Verdict { return upstream.Taken }

func (s *lastSink) End(err error) {
	s.err = err
	s.wg.Done()
}

// nobody takes a session's events.
type nobody struct{}

func (nobody) Deliver(upstream.Frame) upstream.Verdict { return upstream.NoTaker }
func (nobody) End(error)                               {}
