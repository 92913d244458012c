// Package sse reads and writes event streams (text/event-stream) as WHATWG HTML,
// section 9.2 "Server-sent events", defines them, with the one difference that
// MCP 2025-11-25 needs: an event with an id and no data is an event
// (basic/transports, "Sending Messages to the Server").
//
// The path of one event in:
//
//	Reader.Next
//	  readLine    window of 8 KiB → one line; cut anywhere, ended by LF, CR or CRLF
//	  addField    line → a field of the event; comments and unknown fields end here
//	  (blank line) the event goes to the caller, before anything more is read
//
// Out: AppendEvent, AppendPriming, AppendComment and AppendRetry append whole
// blocks to a buffer of the caller, who writes it in one piece.
//
// What is inside data is the caller's: nothing here looks into JSON.
package sse
