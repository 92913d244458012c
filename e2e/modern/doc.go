// Package modern is the server side of MCP revision 2026-07-28, by hand and without an
// SDK, for fixtures that speak no other revision. It is strict: what a client must send
// has to be there, and has to be right.
//
//	ServeStdio or ServeHTTP → parse → Server.run → check → Handlers[method] → complete
//	                                             → listen, until the client leaves
//
// There is no handshake, no session, and no request of the server. A handler that needs
// an answer of the client returns [InputRequired], and is called anew with the answers.
package modern
