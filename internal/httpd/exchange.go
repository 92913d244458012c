package httpd

import (
	"net/http"
	"net/url"
)

// exchange is one request and its answer, in one piece of memory. It is never
// reused: handlers may keep any part of it.
type exchange struct {
	req  http.Request
	url  url.URL
	ctx  requestContext
	body body
	w    response
}

func newExchange(c *conn) *exchange {
	x := new(exchange)
	x.ctx.c, x.body.x, x.w.x = c, x, x
	x.req = *new(http.Request).WithContext(&x.ctx)
	x.req.RemoteAddr, x.req.TLS = c.remote, c.tls
	return x
}

// start makes all ready for the handler.
func (x *exchange) start(m *message) {
	x.w.length = -1
	x.w.close, x.w.keepAlive = m.close, m.keepAlive
	if x.req.ContentLength == 0 {
		x.req.Body = http.NoBody
		x.body.ended.Store(true)
		return
	}
	x.req.Body = &x.body
	x.body.chunked, x.body.left = m.chunked, max(m.length, 0)
	if m.expect && x.req.ProtoMinor > 0 {
		x.w.expected = true
		x.w.expects.Store(true)
	}
}

// finish sends what is left of the answer. again: the connection can take
// another request.
func (x *exchange) finish() (again bool) {
	return x.w.finish() && x.body.drain()
}
