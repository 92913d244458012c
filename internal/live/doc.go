// Package live holds what of a session lives in this process: its connection
// to the server, its streams with their event logs, its clock.
//
// One call, seen from here:
//
//	Session.Call            checks limits, makes a Stream with a Reader attached
//	  upstream.Conn.Start   ... the server works ...
//	    callSink.Deliver    appends events to the stream's log; never blocks
//	    callSink.End        appends an error reply where there was no answer
//	  Reader.Take           the HTTP handler fetches what is there and writes it
//	  Reader.Close          the handler leaves; the call, if open, goes on
//
// A Stream is the sink and its log; HTTP handlers come and go as its Reader.
// One mutex guards a session with all its streams. It is never held while a
// upstream.Conn is called. Streams without a reader, of all sessions, stand in
// the shelf, from where the oldest give way when all logs hold too much.
package live
