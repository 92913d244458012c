//go:build unix

package httpd

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPost is one client on one connection: a POST of 200 bytes, answered
// with 200 bytes of JSON. cpu-ns/op counts the client, which is the same for
// both servers.
func BenchmarkPost(b *testing.B) {
	answer := append([]byte(`{"jsonrpc":"2.0","id":1,"result":"`), bytes.Repeat([]byte("x"), 164)...)
	answer = append(answer, `"}`...)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(30 * time.Second))
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			b.Error(err)
		}
		_ = control.SetReadDeadline(time.Time{})
		select {
		case <-r.Context().Done():
			return
		default:
		}
		h := w.Header()
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(answer)))
		w.WriteHeader(200)
		_ = control.SetWriteDeadline(time.Now().Add(30 * time.Second))
		_, _ = w.Write(answer)
	})
	// What the client and the kernel cost.
	b.Run("bare", func(b *testing.B) {
		out := append([]byte("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n"), answer...)
		benchmark(b, func(l net.Listener) error {
			nc, err := l.Accept()
			for in := make([]byte, 4<<10); err == nil; {
				if _, err = nc.Read(in); err == nil {
					_, err = nc.Write(out)
				}
			}
			return errors.Join(err, l.Close())
		}, func() error { return nil })
	})
	b.Run("httpd", func(b *testing.B) {
		s := New(Config{Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute, Log: slog.New(slog.DiscardHandler)})
		benchmark(b, s.Serve, s.Close)
	})
	b.Run("net-http", func(b *testing.B) {
		s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, IdleTimeout: time.Minute}
		benchmark(b, s.Serve, s.Close)
	})
}

func benchmark(b *testing.B, serve func(net.Listener) error, stop func() error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = serve(l)
	}()
	nc, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	request := []byte("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: bench\r\nContent-Length: 200\r\n" +
		"Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\nMcp-Protocol-Version: 2025-06-18\r\n" +
		"Mcp-Session-Id: 0123456789abcdef0123456789abcdef\r\nAccept-Encoding: gzip\r\n\r\n" + string(bytes.Repeat([]byte("y"), 200)))
	in := bufio.NewReader(nc)
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		if _, err := nc.Write(request); err != nil {
			b.Fatal(err)
		}
		for {
			line, err := in.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if len(line) == 2 {
				break
			}
		}
		if _, err := in.Discard(200); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N), "cpu-ns/op")
	nc.Close()
	_ = stop()
	<-served
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
