package httpd

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// conn is one connection. Its own goroutine runs serve and the handlers.
type conn struct {
	// static after the handshake
	s      *Server
	nc     net.Conn // TLS or the socket itself
	tls    *tls.ConnectionState
	local  net.Addr
	remote string

	state atomic.Int32 // see states

	// Owned by serve, by the handler as long as it reads its body, and by the
	// sweeper while a handler runs whose body was read to its end.
	in   *input // nil: nothing is buffered
	r, w int    // what of in was not used yet is in.buf[r:w]

	// owned by serve
	emptyLines int  // so many may come before the next request
	handed     bool // to the HTTP/2 server

	cur    atomic.Pointer[exchange] // set while a handler runs
	listed atomic.Bool              // the sweeper knows this connection
	swept  *exchange                // owned by the sweeper: what it saw last

	mu       sync.Mutex
	reading  deadline
	writing  deadline
	watched  bool       // the background reads; see watch
	unwatch  *sync.Cond // watched was reset
	early    [16]byte   // what the background has read
	earlyLen int
	readErr  error // of the background
}

// States of a connection. Only whoever moves it out of stateNew or stateIdle
// may use it: serve to stateActive, Shutdown to stateClosed.
const (
	stateNew    = iota // nothing was read yet
	stateIdle          // between requests
	stateActive        // from the first byte of a request on
	stateClosed
)

// input is a buffer for what is read. Those of the usual size are pooled.
type input struct {
	buf    []byte
	fields []field
}

const (
	inputSize  = 4 << 10
	writeGrace = 5 * time.Second        // for an answer that no handler writes
	lingerTime = 500 * time.Millisecond // for a client to read the last answer
	newGrace   = 500 * time.Millisecond // for the first bytes, in a shutdown
)

var inputs = sync.Pool{New: func() any { return &input{buf: make([]byte, inputSize)} }}

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc, local: nc.LocalAddr()}
	if a := nc.RemoteAddr(); a != nil {
		c.remote = a.String()
	}
	c.reading.set, c.writing.set = nc.SetReadDeadline, nc.SetWriteDeadline
	c.unwatch = sync.NewCond(&c.mu)
	return c
}

var errClosing = errors.New("httpd: the server shuts down")

// serve runs the connection to its end.
func (c *conn) serve() {
	defer c.end()
	c.readBefore(c.s.cfg.ReadHeaderTimeout)
	if c.s.stopping.Load() {
		c.expire()
	}
	if handed, err := c.handshake(); handed || err != nil {
		return
	}
	for first := true; ; first = false {
		head, err := c.readHead(first)
		if errors.Is(err, errHTTP2) {
			c.handOver()
			return
		}
		if err == nil {
			var again bool
			if again, err = c.exchange(head); again {
				continue
			}
		}
		var no *refusal
		if errors.As(err, &no) {
			c.s.cfg.Log.Debug("http: request refused", "client", c.remote, "status", no.status, "reason", no.text)
			c.writeBefore(writeGrace)
			if c.write(no.response()) == nil {
				c.linger()
			}
		}
		return
	}
}

// exchange runs the handler for one request. again: the connection can take
// another.
func (c *conn) exchange(head []byte) (again bool, err error) {
	x := newExchange(c)
	m, fields, err := x.parse(head, c.in.fields)
	c.in.fields = fields
	if err != nil {
		return false, err
	}
	if m.badExpect {
		return false, errExpect
	}
	x.start(&m)
	if x.req.Method == http.MethodPost {
		c.emptyLines = 2
	}
	c.mu.Lock()
	c.reading.want, c.writing.want = time.Time{}, time.Time{}
	c.mu.Unlock()
	c.cur.Store(x)
	if c.s.closed.Load() {
		return false, errClosing
	}
	if x.req.Method == http.MethodOptions && x.req.RequestURI == "*" {
		c.writeBefore(writeGrace)
		x.w.Header().Set("Content-Length", "0")
	} else {
		c.s.cfg.Handler.ServeHTTP(&x.w, &x.req)
	}
	x.ctx.cancel()
	if !x.finish() {
		if !x.body.ended.Load() {
			c.linger()
		}
		return false, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock() // the sweeper may be about to watch
	c.cur.Store(nil)
	c.writing.want = time.Time{}
	if c.tls != nil { // which writes also when it reads
		c.writing.apply()
	}
	return !c.s.stopping.Load(), nil
}

// linger lets the client read the last answer: to close a connection on which
// there is unread data can take from the client what is on its way (RFC 9112,
// section 9.6).
func (c *conn) linger() {
	if w, ok := c.nc.(interface{ CloseWrite() error }); ok {
		_ = w.CloseWrite()
	}
	c.readBefore(lingerTime)
	var b [512]byte
	for err := error(nil); err == nil; {
		_, err = c.read(b[:])
	}
}

// end closes the connection, also after a panic of the handler.
func (c *conn) end() {
	if p := recover(); p != nil && p != http.ErrAbortHandler {
		c.s.cfg.Log.Error("http: handler panicked", "client", c.remote, "panic", p, "stack", string(debug.Stack()))
	}
	c.state.Store(stateClosed)
	if c.handed {
		c.release()
		return
	}
	_ = c.nc.Close()
	c.mu.Lock()
	for c.watched {
		c.unwatch.Wait()
	}
	x := c.cur.Swap(nil)
	c.mu.Unlock()
	if x != nil {
		x.ctx.cancel()
		x.w.retire()
	}
	if x == nil || x.body.retire() {
		c.release()
	}
	c.s.untrack(c)
}

// kill closes the connection without waiting for anything.
func (c *conn) kill() {
	nc := c.nc
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn()
	}
	_ = nc.Close()
}

// release gives the input buffer back where nothing is in it.
func (c *conn) release() {
	if c.in != nil && len(c.in.buf) == inputSize {
		inputs.Put(c.in)
	}
	c.in, c.r, c.w = nil, 0, 0
}
