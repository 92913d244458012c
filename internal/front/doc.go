// Package front is what clients see over HTTP: Streamable HTTP of 2025-03-26
// to 2025-11-25 and HTTP+SSE of 2024-11-05.
//
// One POST:
//
//	Front.ServeHTTP          probes, Host and Origin, CORS, the path
//	  Front.post             headers, session, body: everything that decides a status
//	    Front.initialize     a new session
//	    Front.message        202, or
//	      live.Session.Call  the request goes to the server
//	        exchange.run     waits for the first event and picks JSON or an event stream
//	          exchange.json
//	          exchange.stream
package front
