// Package process runs stdio MCP servers: one process for each session, or one
// shared by all. Both go through the same routing table.
//
// The path of one call:
//
//	conn.Start                  a client's request
//	  newCall                   mints the ROUTE: the connection's random part and a number
//	  call.encode               wire id ROUTE|n:INTEGER or ROUTE|s:STRING, progress token ROUTE
//	  hub.sendLocked            enters the call in the table, then queues the line
//	                            (hub.holdLocked where the process is not ready yet)
//	    Pipe.Write              the child's stdin, written by one goroutine
//	      ~ the server works ~
//	link.Line                   one line of its stdout
//	  hub.response              takes the entry out of the table: whoever takes it ends the call
//	    call.reply              puts the client's own id back, byte for byte
//	      Sink.Deliver, Sink.End
//
// A hub is the table of one process slot. With a process for each session it
// has one conn and one link; a shared one has many conns and, over time, as
// many links as the process had lives. All tables are guarded by hub.mu, which
// is never held while a sink is called.
package process
