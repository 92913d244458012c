// Command reverseproxy is net/http/httputil's ReverseProxy as one would set it up before an MCP
// server with some care: the yardstick for contestants before an HTTP server.
package main

import (
	"bytes"
	"flag"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// copyBytes is the size of a buffer between server and client, that of io.Copy.
const copyBytes = 32 << 10

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	to := flag.String("to", "", "URL of the server behind it, without a path")
	flag.Parse()
	server, err := url.Parse(*to)
	if err != nil || server.Host == "" {
		log.Fatal("-to must be a URL")
	}
	proxy := &http.Server{Addr: *listen, Handler: newProxy(server), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(proxy.ListenAndServe())
}

// newProxy is a proxy to server that keeps a connection for each client, asks for no compression
// on its own, copies through buffers that it reuses, and passes events on at once.
func newProxy(server *url.URL) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(server) },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4096, DisableCompression: true},
		FlushInterval: -1,
		BufferPool:    &pool{sync.Pool{New: func() any { return new([copyBytes]byte) }}},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := readBody(r); err != nil {
			http.Error(w, "the request's body broke off", http.StatusBadRequest)
			return
		}
		proxy.ServeHTTP(w, r)
	})
}

// readBody reads the request's body as a whole. Left to be read while the response is written,
// net/http cuts some responses short.
func readBody(r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(r.Body); err != nil {
		return err
	}
	r.ContentLength = int64(body.Len())
	r.Body = io.NopCloser(&body)
	return nil
}

// pool is the proxy's buffers, each of copyBytes.
type pool struct{ free sync.Pool }

func (p *pool) Get() []byte { return p.free.Get().(*[copyBytes]byte)[:] }

func (p *pool) Put(b []byte) { p.free.Put((*[copyBytes]byte)(b)) }
