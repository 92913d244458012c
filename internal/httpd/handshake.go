package httpd

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"time"
)

// handshake does that of TLS, if there is any. handed: it chose HTTP/2, and
// others serve the connection now.
func (c *conn) handshake() (handed bool, err error) {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return false, nil
	}
	c.mu.Lock()
	c.reading.apply()
	c.mu.Unlock()
	ctx := context.Background()
	if d := c.s.cfg.ReadHeaderTimeout; d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	if err := t.HandshakeContext(ctx); err != nil {
		var plain tls.RecordHeaderError
		if errors.As(err, &plain) && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
			_ = plain.Conn.SetWriteDeadline(time.Now().Add(writeGrace))
			_, _ = io.WriteString(plain.Conn, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n")
		}
		c.s.cfg.Log.Debug("http: TLS handshake failed", "client", c.remote, "err", err)
		return false, err
	}
	state := t.ConnectionState()
	c.tls = &state
	if state.NegotiatedProtocol == "h2" {
		c.handOver()
		return true, nil
	}
	return false, nil
}

func looksLikeHTTP(header [5]byte) bool {
	switch string(header[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO":
		return true
	}
	return false
}
