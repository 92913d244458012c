// Command directserver serves the benchmark's echo by net/http, with nothing in between: a
// stateful Streamable HTTP server. Contestants with a stdio server are measured against it, those
// with an HTTP server have it behind them. It answers by JSON, and by events where a call brings
// notifications.
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

const (
	sessionHeader = "Mcp-Session-Id"
	beforeData    = "event: message\ndata: "
)

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address")
	flag.Parse()
	server := &http.Server{Addr: *listen, Handler: newHandler(), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}

type handler struct {
	buffers  sync.Pool // of *buffers
	sessions sync.Map  // session id to struct{}
}

// buffers are a call's message, its answer and, in a stream, one event.
type buffers struct{ in, out, event []byte }

func newHandler() *handler {
	return &handler{buffers: sync.Pool{New: func() any { return new(buffers) }}}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		h.post(w, r)
	case http.MethodDelete:
		h.sessions.Delete(r.Header.Get(sessionHeader))
		w.WriteHeader(http.StatusNoContent)
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

func (h *handler) post(w http.ResponseWriter, r *http.Request) {
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
	if !h.session(w, r, call) {
		return
	}
	b.out = call.Answer(b.out[:0])
	if len(b.out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	time.Sleep(call.Delay())
	if call.Steps() > 0 {
		b.events(w, call)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(b.out)))
	_, _ = w.Write(b.out) // a client that left is none of our business
}

// session gives a client that initializes a session, and refuses a call outside of one. It
// reports whether to go on.
func (h *handler) session(w http.ResponseWriter, r *http.Request, call echo.Call) bool {
	if string(call.Method) == "initialize" {
		id := rand.Text()
		h.sessions.Store(id, struct{}{})
		w.Header().Set(sessionHeader, id)
		return true
	}
	id := r.Header.Get(sessionHeader)
	if id == "" {
		http.Error(w, "no "+sessionHeader, http.StatusBadRequest)
		return false
	}
	if _, ok := h.sessions.Load(id); !ok {
		http.Error(w, "no such session", http.StatusNotFound)
		return false
	}
	return true
}

// events answers by an event stream. Each notification of progress leaves at once, as from a
// server that works between them; the response leaves with the end of the stream.
func (b *buffers) events(w http.ResponseWriter, call echo.Call) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	for step := range call.Steps() {
		b.event = append(b.event[:0], beforeData...)
		b.event = append(call.Step(b.event, step+1), "\n\n"...)
		if _, err := w.Write(b.event); err != nil {
			return // a client that left is none of our business
		}
		_ = flush.Flush() // as above
	}
	b.event = append(b.event[:0], beforeData...)
	b.event = append(append(b.event, b.out...), "\n\n"...)
	_, _ = w.Write(b.event)
}
