package rawclient

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Client is one program with its own TCP connections. Its methods may be called at once.
type Client struct {
	// Header is sent with every request. Set it before the first one.
	Header http.Header

	base string
	http *http.Client

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// New makes a client of the server at base, a URL without a path.
func New(base string) *Client {
	c := &Client{base: base, Header: make(http.Header), conns: make(map[net.Conn]bool)}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext:         c.dial,
			DisableCompression:  true,
			MaxIdleConnsPerHost: 64,
			// Connections that were dialed and then not needed are given up long before
			// a server may give them up, with a request on its way perhaps.
			IdleConnTimeout: 5 * time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[conn] = true
	return trackedConn{conn, c}, nil
}

// trackedConn leaves the client's table when it is closed.
type trackedConn struct {
	net.Conn
	c *Client
}

func (t trackedConn) Close() error {
	t.c.mu.Lock()
	delete(t.c.conns, t.Conn)
	t.c.mu.Unlock()
	return t.Conn.Close()
}

// Reset ends every TCP connection by a reset, as a client does that is killed or loses
// its network. What was under way fails. The client can be used again.
func (c *Client) Reset() {
	c.http.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			tcp.SetLinger(0) // a failure means that it is closed already
		}
		conn.Close()
	}
	clear(c.conns)
}

// Close closes idle connections. Sessions are ended by their own Close.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Do sends one HTTP request to path, which may be a URL. Redirects are not followed. A
// nil value in header removes that header; Host is the request's host.
func (c *Client) Do(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	if path == "" || path[0] == '/' {
		path = c.base + path
	}
	req, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for _, h := range []http.Header{c.Header, header} {
		for name, values := range h {
			req.Header[name] = values
		}
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	return c.http.Do(req)
}

// statusError reads the answer to the end and makes an error of it.
func statusError(resp *http.Response) error {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	return &StatusError{Status: resp.StatusCode, Body: string(body)}
}
