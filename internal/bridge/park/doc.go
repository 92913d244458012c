// Package park serves clients of the per-request era from a server of the
// handshake era. It opens sessions at the server that no client sees, and where
// the server asks something in the middle of a call, the call is parked: its client
// gets an input_required result and comes back with the answers (MCP 2026-07-28,
// basic/patterns/mrtr).
//
// The path of one call:
//
//	Server.Ask                  one request of a client
//	  group.enterLocked         waits until a session of its principal may take it
//	    session.open            initialize with what this client can do
//	    session.takeLocked      one call at a time, where the server may ask something
//	  call.start                the client's bytes, less what only its era knows (edit.go)
//	    Conn.Start
//	      ~ the server works, and asks ~
//	call.Deliver
//	  call.question             what the client did not declare is refused at once
//	    call.gathered           25 ms later, with what else was asked until then
//	      call.parkLocked       input_required; nothing but the record in Server.parked is left
//	      ~ the client asks its user ~
//	Server.Ask
//	  Server.retry              opens requestState, finds the record, consumes it
//	    session.answerLocked    each answer, under the id by which the server asked
//	      ~ the server works on ~
//	call.Deliver
//	  call.finishLocked         gives the session back
//	    exchange.settle         the reply in this era's form
//
// Sessions are kept by group and pool. A group is one principal (with whatever
// Config.Scope adds), and its sessions are bounded; a pool is those of them that
// were opened with equal capabilities. What a session's server says unasked reaches
// the subscriptions/listen of its group (listen.go), and nobody else.
//
// Everything is guarded by Server.mu. Sinks and connections are never called under
// it: what is to be done by them is noted in a later, and done when the lock is
// free again. What must keep its order stands in a line.
//
// # What is decided here
//
// A session that one call at a time uses is ended when a call in it ends without
// the server's answer: cancelled, out of time, or expired while it was parked. Such
// a call may still run at the server, and what it asked later would look like a
// question of the next call. Clients of this era rely on no session anyway.
//
// What such a server sends on the session's own stream, naming no call, is of the
// call that has the session. HTTP servers often ask there, so the stream is listened
// to as long as the session lives.
//
// A listen whose session ends moves to another one of its principal, and is told of
// everything that it listens to, for it may have changed meanwhile.
//
// A process that all share can ask nobody. Each principal has a session of its own
// there as well, which costs no process, so that what the rules for a principal hide
// stays hidden.
//
// # Rough edges
//
// A tool that needs a task cannot be called. A call waits for a session without a
// time of its own, until its client leaves; no more than 64 of one principal do.
package park
