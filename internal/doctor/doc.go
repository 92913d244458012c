// Package doctor tries one MCP server out as Signalbox would use it, and says in
// one line what is wrong with it and what to do.
//
// The path of one examination:
//
//	Examine
//	  exam.command                 a program
//	    exam.start                 child.Supervisor; a start that fails is told by startFault
//	    discover                   server/discover, on a process of its own (era.go)
//	    exam.handshake             initialize, initialized, tools/list, on a fresh one
//	    exam.coax                  nothing came: does it come when a buffer is full?
//	    life.stop                  closes stdin, waits for the end: does it come then?
//	    diagnose                   evidence → Finding, first rule that fits
//	  exam.address                 a URL
//	    discover                   server/discover by POST
//	    exam.handshake             by Streamable HTTP, else by HTTP+SSE
//	    wrongStatus, dialFault     what HTTP and what the network says → Finding
//
// An answer travels as a wire.Message, so that a line is a message here exactly
// if it is one for Signalbox. What a server wrote is shown only after it went
// through veil.text, which takes secrets and control characters out.
package doctor
