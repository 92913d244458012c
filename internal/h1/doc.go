// Package h1 is a small HTTP/1.1 client for one address, made for relays: the
// caller's goroutine writes the request and reads the answer itself, so that an
// exchange costs no hand-over between goroutines, and it holds the connection
// until it has read what it wants.
//
//	Pool.Get        an idle connection that is still open, or a new one
//	Conn.Send       one write for head and body
//	Conn.Receive    status and the few headers that a relay looks at
//	Response.Body   length, chunked or until close (RFC 9112, section 6)
//	Pool.Put        back for reuse, if the body was read to its end; else closed
//
// It follows no redirects and retries nothing: whether a request may be
// repeated is for the caller to know.
package h1
