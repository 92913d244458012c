package h1

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAbort(t *testing.T) {
	addr := rawServer(t, func(_ net.Conn, in *bufio.Reader) { _, _ = io.Copy(io.Discard, in) })
	p := newPool(t, addr, Options{})
	c, err := p.Get(t.Context(), false)
	must(t, err)
	must(t, c.Send([]byte(get), nil))
	failed := make(chan error)
	go func() {
		_, err := c.Receive()
		failed <- err
	}()
	c.Abort()
	if err := <-failed; err == nil {
		t.Error("no error")
	}
	p.Put(c)
	checkCounts(t, p, 0, 0)
}

// TestEarlyAnswer: a server that refuses a large body does not read it; its
// answer counts, the connection does not.
func TestEarlyAnswer(t *testing.T) {
	answered, read := make(chan struct{}), make(chan struct{})
	addr := rawServer(t, func(c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
			close(answered)
			<-read
		}
	})
	p := newPool(t, addr, Options{})
	c, err := p.Get(t.Context(), false)
	must(t, err)
	go func() {
		<-answered
		c.SetDeadline(time.Now()) // or Send would wait for ever
	}()
	body := make([]byte, 64<<20)
	err = c.Send(fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", len(body)), body)
	if err == nil {
		t.Fatal("64 MiB fit into the buffers of a socket")
	}
	c.SetDeadline(time.Now().Add(5 * time.Second))
	r, err := c.Receive()
	must(t, err)
	text, err := io.ReadAll(r.Body)
	must(t, err)
	if r.Status != 413 || string(text) != "{}" || c.reusable {
		t.Errorf("status %d, body %q, reusable %v", r.Status, text, c.reusable)
	}
	p.Put(c)
	close(read)
}

func TestTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.TLS.ServerName+" "+r.Proto)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	roots := srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	addr := srv.Listener.Addr().String()

	p := newPool(t, addr, Options{TLS: &tls.Config{RootCAs: roots, ServerName: "example.com"}})
	for i := range 3 {
		c, body := exchange(t, p)
		if body != "example.com HTTP/1.1" || c.Reused != (i > 0) {
			t.Errorf("%q, reused %v", body, c.Reused)
		}
		p.Put(c)
	}

	other := newPool(t, addr, Options{TLS: &tls.Config{RootCAs: roots, ServerName: "elsewhere.test"}})
	if _, err := other.Get(t.Context(), false); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("certificate of another name: %v", err)
	}
	checkCounts(t, other, 0, 0)
}

// TestSilentHandshake: a server that accepts and never says a word of TLS.
func TestSilentHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pipePool(Options{TLS: &tls.Config{ServerName: "x"}}, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		defer p.Close()
		began := time.Now()
		if _, err := p.Get(t.Context(), false); err == nil || time.Since(began) > dialTimeout {
			t.Errorf("error %v after %v", err, time.Since(began))
		}
	})
}

func TestDialFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	must(t, l.Close())
	if _, err := newPool(t, addr, Options{}).Get(t.Context(), false); err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newPool(t, addr, Options{}).Get(ctx, false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
