package h1

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// BenchmarkExchange sends 200 bytes and gets them back, with this package and
// with net/http.
func BenchmarkExchange(b *testing.B) {
	msg := bytes.Repeat([]byte("x"), 200)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer srv.Close()

	run := func(b *testing.B, exchange func() error) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := exchange(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	b.Run("h1", func(b *testing.B) {
		p := NewPool(srv.Listener.Addr().String(), Options{})
		defer p.Close()
		head := fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: %d\r\n\r\n", len(msg))
		run(b, func() error {
			c, err := p.Get(context.Background(), false)
			if err != nil {
				return err
			}
			defer p.Put(c)
			if err := c.Send(head, msg); err != nil {
				return err
			}
			r, err := c.Receive()
			if err != nil {
				return err
			}
			_, err = io.ReadFull(r.Body, make([]byte, r.Length))
			return err
		})
	})
	b.Run("net/http", func(b *testing.B) {
		tr := &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}
		defer tr.CloseIdleConnections()
		run(b, func() error {
			req, err := http.NewRequest(http.MethodPost, srv.URL+"/mcp", bytes.NewReader(msg))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			resp, err := tr.RoundTrip(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			_, err = io.ReadAll(resp.Body)
			return err
		})
	})
}
