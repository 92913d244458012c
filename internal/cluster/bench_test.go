package cluster

import (
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

// BenchmarkHop compares a request to a server with the same through one more
// hop: Forward, httputil.ReverseProxy over plain HTTP, and over TLS.
func BenchmarkHop(b *testing.B) {
	for _, size := range []int{200, 64 << 10} {
		reply := bytes.Repeat([]byte("x"), size)
		serve := func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(reply)
		}
		direct := httptest.NewServer(http.HandlerFunc(serve))
		b.Cleanup(direct.Close)
		secure := httptest.NewTLSServer(http.HandlerFunc(serve))
		b.Cleanup(secure.Close)
		plainHop, tlsHop := reverseProxy(b, direct.URL), reverseProxy(b, secure.URL)
		g := newRig(b)
		home, front := g.replica(serve), g.replica(nil)

		name := map[int]string{200: "200B", 64 << 10: "64KiB"}[size]
		for _, c := range []struct{ what, url string }{
			{"direct", direct.URL}, {"reverseproxy", plainHop}, {"reverseproxy-tls", tlsHop}, {"forward", front.public.URL},
		} {
			b.Run(name+"/one/"+c.what, func(b *testing.B) {
				client := benchClient(b)
				for b.Loop() {
					post(b, client, c.url, home.ID(), reply)
				}
			})
			b.Run(name+"/many/"+c.what, func(b *testing.B) {
				client := benchClient(b)
				b.SetParallelism(16)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						post(b, client, c.url, home.ID(), reply)
					}
				})
			})
		}
	}
}

func benchClient(b *testing.B) *http.Client {
	t := &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}
	b.Cleanup(t.CloseIdleConnections)
	return &http.Client{Transport: t}
}

func post(b *testing.B, c *http.Client, url, home string, body []byte) {
	req, _ := http.NewRequest(http.MethodPost, url+"/mcp", bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Session-Id", "0123456789012345678901")
	req.Header.Set("To", home)
	res, err := c.Do(req)
	if err != nil {
		b.Error(err)
		return
	}
	defer res.Body.Close()
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != int64(len(body)) || res.StatusCode != http.StatusOK {
		b.Errorf("status %d, %d bytes, error %v", res.StatusCode, n, err)
	}
}

func reverseProxy(b *testing.B, to string) string {
	target, err := url.Parse(to)
	if err != nil {
		b.Fatal(err)
	}
	t := &http.Transport{MaxIdleConnsPerHost: 100, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	p := httputil.NewSingleHostReverseProxy(target)
	p.Transport = t
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // else it cuts replies short now and then
		p.ServeHTTP(w, r)
	}))
	b.Cleanup(func() { s.Close(); t.CloseIdleConnections() })
	return s.URL
}
