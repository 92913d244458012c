package httpd

import (
	"bytes"
	"context"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// preface is what a client sends first that knows, or was told, that HTTP/2 is
// spoken here (RFC 9113, section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// isPreface tells whether b may be, or begins with, the preface.
func isPreface(b []byte) bool {
	n := min(len(b), len(preface))
	return n > 0 && string(b[:n]) == preface[:n]
}

// http2Server is net/http's server behind a listener in memory.
type http2Server struct {
	server *http.Server
	conns  *handover
	served chan struct{} // closed when Serve has returned
}

func newHTTP2(cfg *Config) *http2Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	h := &http2Server{
		server: &http.Server{
			Handler: cfg.Handler, ReadHeaderTimeout: cfg.ReadHeaderTimeout, IdleTimeout: cfg.IdleTimeout,
			MaxHeaderBytes: cfg.MaxHeaderBytes, Protocols: protocols, HTTP2: cfg.HTTP2,
			ErrorLog: stdlog.New(errorLog{cfg.Log}, "", 0),
		},
		conns:  &handover{conns: make(chan net.Conn), closed: make(chan struct{})},
		served: make(chan struct{}),
	}
	go h.serve()
	return h
}

func (h *http2Server) serve() {
	defer close(h.served)
	_ = h.server.Serve(h.conns) // ends with the listener
}

func (h *http2Server) shutdown(ctx context.Context) error {
	err := h.server.Shutdown(ctx)
	<-h.served
	return err
}

func (h *http2Server) close() error {
	err := h.server.Close()
	<-h.served
	return err
}

// handOver gives the connection to the HTTP/2 server, with what was read
// already. It is not this server's any more.
func (c *conn) handOver() {
	h := c.s.release(c)
	if h == nil {
		return
	}
	c.mu.Lock()
	c.reading.want, c.writing.want = time.Time{}, time.Time{}
	c.reading.apply()
	c.writing.apply()
	c.mu.Unlock()
	nc := c.nc
	if b := c.buffered(); len(b) > 0 {
		nc = &begunConn{Conn: nc, begin: bytes.Clone(b)}
	}
	select {
	case h.conns.conns <- nc:
		c.handed = true
	case <-h.conns.closed:
	}
}

// release lets go of a connection that is to be handed over; nil: too late.
func (s *Server) release(c *conn) *http2Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping.Load() {
		return nil
	}
	if s.http2 == nil {
		s.http2 = newHTTP2(&s.cfg)
	}
	delete(s.conns, c)
	return s.http2
}

// begunConn is a connection of which the first bytes were read.
type begunConn struct {
	net.Conn
	begin []byte
}

func (c *begunConn) Read(p []byte) (int, error) {
	if len(c.begin) > 0 {
		n := copy(p, c.begin)
		c.begin = c.begin[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// handover is a listener that accepts what it is given.
type handover struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *handover) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *handover) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *handover) Addr() net.Addr { return &net.UnixAddr{Name: "http2", Net: "memory"} }

// errorLog takes what net/http has to say.
type errorLog struct{ log *slog.Logger }

func (l errorLog) Write(p []byte) (int, error) {
	level := slog.LevelDebug
	if bytes.Contains(p, []byte("panic")) {
		level = slog.LevelError
	}
	l.log.Log(context.Background(), level, "http: HTTP/2", "err", string(bytes.TrimSpace(p)))
	return len(p), nil
}
