// Package httpd is an HTTP/1.1 server for an http.Handler, made for many small
// exchanges on connections that are kept open. It reads requests strictly
// (RFC 9112): what two readers could take for different requests is refused.
// HTTP/2 connections are handed to net/http's server.
//
//	Server.Serve       a goroutine for each connection
//	conn.serve         one request after the other, on that goroutine
//	  conn.readHead    usually one read for head and body
//	  parser.parse     the head, checked and made an *http.Request
//	  Handler          reads from body, writes to response
//	  response.finish  usually one write for head and body
//
// What costs nothing while nothing goes wrong:
//
//   - Deadlines are set when a read or write begins that could wait, not for
//     what has come already, and are moved on only after a part of their time
//     (see deadline).
//   - Nobody watches a connection for its end while a handler runs, unless the
//     handler has waited on its context for a while (see sweeper).
//
// Differences from net/http, besides strictness: no Hijack, no trailers, no
// http.ServerContextKey, and http.MaxBytesReader cannot close the connection.
package httpd
