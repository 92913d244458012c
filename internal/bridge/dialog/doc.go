// Package dialog serves sessions of the handshake era from a server of the
// per-request era: it keeps what a session says once and puts it into every
// request, and turns input_required results into requests to the client and a
// retry (MCP 2026-07-28, basic/patterns/mrtr).
//
// The path of one call:
//
//	conn.Start                   what this package answers itself is answered here
//	└─ call.ask                  params._meta is put in; Asker.Ask
//	     ~ the server ~
//	   leg.Deliver               notifications go on; the response ends this leg
//	   └─ call.answered
//	      ├─ call.failed         errors in the words of the client's era
//	      ├─ call.inquire        input_required: each input request becomes a request
//	      │    ~ the client ~    to the client, on the stream of its call
//	      │  conn.respond        the last answer is in
//	      │  └─ call.ask         the same request with the answers, under a new id
//	      └─ call.finish         the result, without what its client does not know
//
// A call is in the table of its conn until somebody takes it out, who then ends its
// sink: an answer, a cancel, a time that is over and the end of the session
// race, and one wins. What still comes from a leg that is not the last is dropped.
//
// What a session listens to is in listen.go, one subscriptions/listen in feed.go.
package dialog
