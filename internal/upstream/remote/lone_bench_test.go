package remote

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
)

// BenchmarkAsk is one call of 200 bytes over a socket, with a session and without,
// in a goroutine of its own and in that of whoever waits.
func BenchmarkAsk(b *testing.B) {
	pad := strings.Repeat("x", 130)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(body), `"initialize"`):
			writeAs("application/json", result("0", `{"protocolVersion":"2025-06-18"}`))(w, r)
		case strings.Contains(string(body), `"stream"`):
			writeAs("text/event-stream", data(prog)+data(prog)+data(prog)+data(result("2", `"`+pad+`"`)))(w, r)
		default:
			writeAs("application/json", result("2", `"`+pad+`"`))(w, r)
		}
	}))
	defer ts.Close()
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
	for _, kind := range []string{"json", "stream"} {
		msg := strings.Replace(askTool, `"x"`, `"`+kind+`","arguments":{"a":"`+pad+`"}`, 1)
		for name, send := range map[string]func(upstream.Request, upstream.Sink) (upstream.Call, error){"Start": conn.Start, "Ask": srv.Ask} {
			for _, inline := range []bool{false, true} {
				how := "/alone"
				if inline {
					how = "/inline"
				}
				b.Run(kind+"/"+name+how, func(b *testing.B) {
					b.ReportAllocs()
					b.RunParallel(func(pb *testing.PB) {
						for pb.Next() {
							s := &lastSink{}
							s.wg.Add(1)
							req := request(b, msg)
							req.Inline = inline
							call, err := send(req, s)
							if err != nil {
								b.Error(err)
								return
							}
							if run, ok := call.(upstream.Runner); ok && inline {
								for until := time.Now().Add(time.Minute); run.Run(until); {
								}
							}
							s.wg.Wait()
							if s.err != nil {
								b.Error(s.err)
								return
							}
						}
					})
				})
			}
		}
	}
}
