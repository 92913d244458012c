package httpd

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

var describe = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	fmt.Fprintf(w, "%s %s %s tls=%v", r.Proto, r.Host, body, r.TLS != nil)
})

// h2c is a transport for HTTP/2 without TLS.
func h2c(t *testing.T) *http.Transport {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func post(t *testing.T, tr http.RoundTripper, url string) string {
	t.Helper()
	res, err := (&http.Client{Transport: tr}).Post(url, "text/plain", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHTTP2WithoutTLS(t *testing.T) {
	r := serveTCP(t, Config{Handler: describe, ReadHeaderTimeout: time.Minute})
	addr := r.l.Addr().String()
	tr := h2c(t)
	for range 3 {
		if got := post(t, tr, "http://"+addr); got != "HTTP/2.0 "+addr+" body tls=false" {
			t.Error(got)
		}
		if got := post(t, http.DefaultTransport, "http://"+addr); got != "HTTP/1.1 "+addr+" body tls=false" {
			t.Error(got)
		}
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

// The preface may come in pieces, and is one only at the start.
func TestPreface(t *testing.T) {
	r := serveTCP(t, Config{Handler: describe})
	c := r.dial()
	for i := range preface {
		c.send(preface[i : i+1])
	}
	c.send("\x00\x00\x00\x04\x00\x00\x00\x00\x00") // empty SETTINGS
	frame := make([]byte, 9)
	if _, err := io.ReadFull(c.in, frame); err != nil || frame[3] != 4 {
		t.Errorf("%x, %v", frame, err)
	}
	c = r.dial()
	c.send(get + preface)
	c.answer()
	if res, _ := c.answer(); res.StatusCode != http.StatusHTTPVersionNotSupported {
		t.Error(res.StatusCode)
	}
	c = r.dial()
	c.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX\n")
	if res, _ := c.answer(); res.StatusCode != http.StatusHTTPVersionNotSupported {
		t.Error(res.StatusCode)
	}
}

func TestShutdownCoversHTTP2(t *testing.T) {
	begun, proceed := make(chan struct{}), make(chan struct{})
	r := serveTCP(t, Config{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(begun)
		<-proceed
		_, _ = io.WriteString(w, r.Proto)
	})})
	tr := h2c(t)
	answered := make(chan string)
	go func() { answered <- post(t, tr, "http://"+r.l.Addr().String()) }()
	<-begun
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.s.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(proceed)
	if got := <-answered; got != "HTTP/2.0" {
		t.Error(got)
	}
	if err := r.s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	// Only for its certificate.
	ts := httptest.NewTLSServer(nil)
	defer ts.Close()
	cert := ts.TLS.Certificates[0]
	var log bytes.Buffer
	var mu sync.Mutex
	r := serveTCP(t, Config{
		Handler: describe, TLS: &tls.Config{Certificates: []tls.Certificate{cert}}, ReadHeaderTimeout: time.Minute,
		Log: slog.New(slog.NewTextHandler(&lockedWriter{w: &log, mu: &mu}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	addr := r.l.Addr().String()
	roots := ts.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for proto, protocols := range map[string]func(*http.Protocols){
		"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP/2.0": func(p *http.Protocols) { p.SetHTTP2(true) },
	} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "example.com"}, Protocols: new(http.Protocols)}
		protocols(tr.Protocols)
		for range 3 {
			if got := post(t, tr, "https://"+addr); got != proto+" "+addr+" body tls=true" {
				t.Error(got)
			}
		}
		tr.CloseIdleConnections()
	}
	// Without ALPN it is HTTP/1.1.
	nc, err := tls.Dial("tcp", addr, &tls.Config{RootCAs: roots, ServerName: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if out, err := io.ReadAll(nc); err != nil || !strings.HasSuffix(string(out), "HTTP/1.1 h  tls=true") {
		t.Errorf("%q, %v", out, err)
	}
	c := r.dial()
	c.send(get)
	if res, body := c.answer(); res.StatusCode != 400 || !strings.Contains(body, "HTTPS") {
		t.Error(res.StatusCode, body)
	}
	c = r.dial()
	c.send("\x00 is no TLS")
	_, _ = io.ReadAll(c.in)
	if err := r.s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if s := log.String(); strings.Count(s, "TLS handshake failed") != 2 {
		t.Error(s)
	}
}

// A silent client cannot hold a connection that is to become TLS.
func TestHandshakeTimeout(t *testing.T) {
	r := serveTCP(t, Config{Handler: describe, TLS: &tls.Config{}, ReadHeaderTimeout: 20 * time.Millisecond})
	c := r.dial()
	_, err := c.Read(make([]byte, 1))
	if ne := net.Error(nil); err == nil || errors.As(err, &ne) && ne.Timeout() {
		t.Error(err)
	}
}
