// Package policy decides what of a server a session may use. It wraps an
// upstream.Server, so one decision covers every client transport, batches and
// every kind of server, and it is made on the very bytes that are sent on.
//
// The path of one message:
//
//	server.Open                 the rules of this session, from its initialize
//	conn.Start, conn.Send
//	  guard.refuse              a name that the rules do not allow: never reaches the server
//	  guard.watch               a sink in front of the client's, where the answer has to be looked at
//	    ~ the server works ~
//	sink.Deliver
//	  sieve.apply               a list: what the rules do not allow is cut out
//	  guard.hushed              notifications/resources/updated: dropped
//
// # What is guarded
//
// Tools, prompts and resources, each by a [Filter]: the requests that name one
// (tools/call, prompts/get, resources/read, resources/subscribe,
// resources/unsubscribe, subscriptions/listen, completion/complete), and by the
// same rule the lists that offer them. A refused call gets the error that a
// server gives for a name it does not have. A list keeps every byte but those
// of the elements that are cut out, and the commas after them.
//
// All this fails closed: what cannot be decided is refused, and a list that
// cannot be read is an error, never the raw list.
//
// # What is not
//
// Methods that MCP does not define pass, and what a server says in text passes:
// instructions, descriptions, resource links and contents in the results of
// calls that were allowed.
//
// # Names
//
// The decoded names are compared by code points: the case of letters counts,
// and nothing is normalised, so "é" in one code point is not "e" with an accent.
// Readers disagree about escapes of lone surrogates (U+FFFD, or kept) and about
// U+0000 (the end, or not); a name with U+FFFD or U+0000 is allowed to nobody,
// nor is one of more than 64 KiB. See [Filter] for URIs and URI templates.
package policy
