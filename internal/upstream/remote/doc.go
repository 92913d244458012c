// Package remote reaches HTTP servers: Streamable HTTP of all revisions, and
// HTTP+SSE of 2024-11-05.
//
// One call to a Streamable HTTP server:
//
//	conn.Start            a goroutine of its own, for the answer may take hours
//	  call.run
//	    conn.target       where the session lives; waits while it is being opened
//	    Server.roundTrip  an idle connection to that address, one write
//	    call.answer       what the status says
//	      call.json       the body is the reply, byte for byte
//	      call.events     each event of the stream, until the reply
//	        call.pass     what comes before it (asks.go)
//	        call.resume   the rest of a stream that ended too soon
//	      call.reply
//	        Sink.Deliver, Sink.End
//
// Ids pass unchanged, for each call is an exchange of its own. A session stays
// on the address that answered initialize (address.go). What is lost with that
// address, and what is done then, is in loss.go. A connection in use can be
// broken off by others through its hold, and only while it is in use.
//
// A request of the per-request era (2026-07-28) is the same without a session:
//
//	Server.Ask            a call of the one conn that has no target (lone.go)
//	  call.run
//	    call.attemptsAnywhere
//	      addresses.pick  the one with the least to do, for each request
//	      call.once       with the headers that repeat the body
//	        call.answer   as above, but no stream is resumed
//
// Its server hears of a cancel by the end of the connection.
//
// HTTP+SSE has one stream for all calls, as a process has one pipe: EventPipe
// has that shape, and package process does the routing.
package remote
