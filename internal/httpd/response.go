package httpd

import (
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	holdLimit = 4 << 10  // bytes of a body held until the handler flushes or returns
	joinLimit = 16 << 10 // up to this size, all is copied for one write
)

// response is the http.ResponseWriter. What the handler writes is held while it
// is small, so that head and body go out in one write.
type response struct {
	x       *exchange
	expects atomic.Bool // the client waits for 100 (Continue)

	mu     sync.Mutex // handlers should not, but may, write from several goroutines
	header http.Header
	out    *output // nil: nothing is held

	status    int   // 0: not decided
	length    int64 // Content-Length by the handler; -1: none
	written   int64 // bytes of the body that were taken, held ones included
	fields    written
	expected  bool // the client has sent Expect: 100-continue
	keepAlive bool // HTTP/1.0, and the client asks for it
	close     bool // the connection
	headSent  bool
	chunked   bool
	duplex    bool // the body may be read while the answer is written
	over      bool // the handler has returned
	err       error
}

// output holds what is to be sent.
type output struct {
	head []byte // of the answer as far as it is known, then of a chunk
	body []byte
	vec  [3][]byte
	bufs net.Buffers
}

var outputs = sync.Pool{New: func() any { return &output{head: make([]byte, 0, 1<<10), body: make([]byte, 0, holdLimit)} }}

func (w *response) hold() *output {
	if w.out == nil {
		w.out = outputs.Get().(*output)
	}
	return w.out
}

func (w *response) letGo() {
	o := w.out
	if w.out = nil; o == nil {
		return
	}
	o.vec, o.bufs = [3][]byte{}, nil
	o.head, o.body = o.head[:0], o.body[:0]
	if cap(o.head) <= 2*joinLimit {
		outputs.Put(o)
	}
}

func (w *response) Header() http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader decides on status and headers. Those of 1xx, except 101, are sent
// at once, and another status follows.
func (w *response) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	if w.status != 0 {
		_, file, line, _ := runtime.Caller(1)
		w.x.ctx.c.s.cfg.Log.Warn("http: superfluous WriteHeader", "file", file+":"+strconv.Itoa(line))
		return
	}
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("httpd: invalid WriteHeader code %v", status)) // as net/http
	}
	if status == http.StatusContinue {
		w.expects.Store(false)
	}
	if status < 200 && status != http.StatusSwitchingProtocols {
		w.interim(status)
		return
	}
	w.decide(status)
}

func (w *response) interim(status int) {
	o := w.hold()
	o.head = w.appendStatus(o.head, status)
	o.head, _ = appendHeader(o.head, w.header, status)
	o.head = append(o.head, "\r\n"...)
	w.send(o.head)
	w.letGo()
}

// decide writes down status and headers as they are now.
func (w *response) decide(status int) {
	w.expects.Store(false)
	w.status = status
	o := w.hold()
	o.head = w.appendStatus(o.head, status)
	o.head, w.fields = appendHeader(o.head, w.header, status)
	if text := w.fields.length; text != "" {
		n, ok := parseLength(text)
		if w.length = n; !ok {
			w.length, w.fields.hasLength = -1, false
			w.x.ctx.c.s.cfg.Log.Warn("http: the handler set an invalid Content-Length")
		}
	}
	if w.fields.coding != "" && w.fields.coding != "identity" {
		w.length = -1
	}
	if status == http.StatusSwitchingProtocols {
		w.close = true // there is no other protocol to switch to
	}
}

func (w *response) Write(p []byte) (int, error) { return write(w, p) }

// WriteString makes response an io.StringWriter.
func (w *response) WriteString(s string) (int, error) { return write(w, s) }

func write[T string | []byte](w *response, p T) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return 0, errOver
	case w.status == 0:
		w.decide(http.StatusOK)
	}
	switch {
	case len(p) == 0:
		return 0, nil
	case !bodyAllowed(w.status):
		return 0, http.ErrBodyNotAllowed
	}
	if w.length >= 0 && int64(len(p)) > w.length-w.written {
		return 0, http.ErrContentLength
	}
	if w.err != nil {
		return 0, w.err
	}
	w.written += int64(len(p))
	if o := w.hold(); len(o.body)+len(p) <= holdLimit {
		o.body = append(o.body, p...)
		return len(p), nil
	}
	w.push([]byte(p), false)
	if w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// Flush sends what is held.
func (w *response) Flush() { _ = w.FlushError() }

// FlushError is Flush for http.ResponseController.
func (w *response) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return errOver
	case w.status == 0:
		w.decide(http.StatusOK)
	}
	if w.err == nil && (!w.headSent || w.out != nil && len(w.out.body) > 0) {
		w.push(nil, false)
	}
	return w.err
}

// SetReadDeadline is for http.ResponseController. The deadline may be late by a
// thirty-second of its distance.
func (w *response) SetReadDeadline(t time.Time) error { return w.setDeadline(&w.x.ctx.c.reading, t) }

// SetWriteDeadline is for http.ResponseController. The deadline may be late by a
// thirty-second of its distance. It is cheap to set for each write.
func (w *response) SetWriteDeadline(t time.Time) error { return w.setDeadline(&w.x.ctx.c.writing, t) }

func (w *response) setDeadline(d *deadline, t time.Time) error {
	c := w.x.ctx.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cur.Load() != w.x {
		return errOver // the connection serves others
	}
	d.move(t)
	return nil
}

// EnableFullDuplex is for http.ResponseController.
func (w *response) EnableFullDuplex() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.duplex = true
	return nil
}

// sendContinue asks a client for the body that it holds back.
func (w *response) sendContinue() {
	if !w.expects.Load() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.expects.Swap(false) {
		w.send([]byte("HTTP/1.1 100 Continue\r\n\r\n"))
	}
}

// finish sends what is left. again: the connection can go on.
func (w *response) finish() (again bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.status == 0 {
		w.decide(http.StatusOK)
	}
	if w.err == nil && (!w.headSent || w.chunked || w.out != nil && len(w.out.body) > 0) {
		w.push(nil, true)
	}
	w.letGo()
	w.over = true
	if w.x.req.Method != http.MethodHead && bodyAllowed(w.status) && w.length >= 0 && w.length != w.written {
		return false // the client waits for the rest
	}
	return w.err == nil && !w.close
}

// retire makes the response useless for whoever holds it still.
func (w *response) retire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.letGo()
}

var _ interface {
	http.Flusher
	WriteString(string) (int, error)
} = (*response)(nil)
