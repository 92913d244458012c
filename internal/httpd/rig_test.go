package httpd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"testing/iotest"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

// script is a connection whose client has sent everything already.
type script struct {
	in     io.Reader
	closed chan struct{}
	once   sync.Once

	mu  sync.Mutex
	out bytes.Buffer
}

func newScript(in io.Reader) *script { return &script{in: in, closed: make(chan struct{})} }

func (s *script) Read(p []byte) (int, error) { return s.in.Read(p) }

func (s *script) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}
func (s *script) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9} }
func (s *script) SetDeadline(time.Time) error      { return nil }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }

// reads are ways in which bytes may arrive.
var reads = map[string]func(io.Reader) io.Reader{
	"whole":    func(r io.Reader) io.Reader { return r },
	"by byte":  iotest.OneByteReader,
	"by half":  iotest.HalfReader,
	"with EOF": iotest.DataErrReader,
}

// ours runs the bytes of a client through this package, and returns all that
// was sent back.
func ours(in io.Reader, h http.Handler) []byte {
	s := New(Config{Handler: h, MaxHeaderBytes: 64 << 10, Log: quiet})
	sc := newScript(in)
	newConn(s, sc).serve()
	return sc.out.Bytes()
}

// theirs does the same with net/http.
func theirs(in io.Reader, h http.Handler) []byte {
	s := &http.Server{Handler: h, MaxHeaderBytes: 64 << 10, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	sc := newScript(in)
	l := newMemListener()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.Serve(l)
	}()
	l.conns <- sc
	<-sc.closed
	_ = s.Close()
	<-served
	sc.mu.Lock()
	defer sc.mu.Unlock()
	return sc.out.Bytes()
}

// seen is a request as a handler sees it.
type seen struct {
	Method, URI, Proto, Host, Remote string
	URL                              url.URL
	Header                           http.Header
	Length                           int64
	Coding                           []string
	Close                            bool
	Body                             string
	Broken                           bool
}

// recorder is a handler that notes what it sees.
type recorder struct{ list []seen }

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	rec.list = append(rec.list, seen{
		r.Method, r.RequestURI, r.Proto, r.Host, r.RemoteAddr, *r.URL, r.Header, r.ContentLength, r.TransferEncoding, r.Close, string(body), err != nil,
	})
}

// answer is a response as a client sees it.
type answer struct {
	Status int
	Header http.Header
	Length int64
	Coding []string
	Close  bool
	Body   string
	Err    string
}

// answers reads what was sent back for requests of one method.
func answers(out []byte, method string) (list []answer) {
	in := bufio.NewReader(bytes.NewReader(out))
	for {
		if _, err := in.Peek(1); err != nil {
			return list
		}
		res, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return append(list, answer{Err: err.Error()})
		}
		body, err := io.ReadAll(res.Body)
		a := answer{res.StatusCode, res.Header, res.ContentLength, res.TransferEncoding, res.Close, string(body), ""}
		if err != nil {
			a.Err = err.Error()
		}
		delete(a.Header, "Date")
		list = append(list, a)
	}
}

// memListener accepts what dial makes, or what is put into conns.
type memListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemListener() *memListener {
	return &memListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *memListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (l *memListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// rig is a server with a listener, in memory or on loopback.
type rig struct {
	t      testing.TB
	s      *Server
	l      net.Listener
	served chan error
}

func serve(t testing.TB, l net.Listener, cfg Config) *rig {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = quiet
	}
	r := &rig{t: t, s: New(cfg), l: l, served: make(chan error, 1)}
	go func() { r.served <- r.s.Serve(l) }()
	t.Cleanup(func() {
		_ = r.s.Close()
		if err := <-r.served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("Serve: %v", err)
		}
	})
	return r
}

func serveTCP(t testing.TB, cfg Config) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, cfg)
}

// dial opens a connection of which the test is the client.
func (r *rig) dial() *client {
	r.t.Helper()
	var nc net.Conn
	var err error
	if l, ok := r.l.(*memListener); ok {
		nc, err = l.dial(context.Background(), "", "")
	} else {
		nc, err = net.Dial("tcp", r.l.Addr().String())
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { nc.Close() })
	return &client{t: r.t, Conn: nc, in: bufio.NewReader(nc)}
}

type client struct {
	t testing.TB
	net.Conn
	in *bufio.Reader
}

func (c *client) send(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		c.t.Fatal(err)
	}
}

// answer reads one response to a request of any method but HEAD.
func (c *client) answer() (*http.Response, string) {
	c.t.Helper()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return res, string(body)
}

// ended reads to the end of the connection, and fails if there is anything.
func (c *client) ended() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.in); len(rest) > 0 || err != nil && !errors.Is(err, io.ErrClosedPipe) {
		c.t.Fatalf("%q, %v", rest, err)
	}
}

const get = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
