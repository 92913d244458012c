// Command directserver serves the benchmark's echo by net/http, with nothing in between: the
// base that stdio contestants are measured against.
package main

import (
	"crypto/rand"
	"flag"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/bench/internal/echo"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	flag.Parse()
	var h handler
	h.buffers.New = func() any { return new(buffers) }
	server := &http.Server{Addr: *listen, Handler: &h, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

type handler struct {
	buffers sync.Pool // of *buffers
}

type buffers struct{ in, out []byte }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodDelete:
		w.WriteHeader(http.StatusNoContent)
		return
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if r.ContentLength < 0 {
		w.WriteHeader(http.StatusLengthRequired)
		return
	}
	b := h.buffers.Get().(*buffers)
	defer h.buffers.Put(b)
	if n := int(r.ContentLength); cap(b.in) < n {
		b.in = make([]byte, n)
	}
	b.in = b.in[:r.ContentLength]
	if _, err := io.ReadFull(r.Body, b.in); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	call := echo.Parse(b.in)
	b.out = call.Answer(b.out[:0])
	if len(b.out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	time.Sleep(call.Delay())
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(b.out)))
	if string(call.Method) == "initialize" {
		header.Set("Mcp-Session-Id", rand.Text())
	}
	_, _ = w.Write(b.out) // a client that left is none of our business
}
