// Package audit writes down who did what: one line of JSON for each call and each
// event of a session.
//
//	Log.Call, Log.Session   make the line and put it in a bounded queue; never wait
//	    ~ one goroutine ~
//	Log.run                 writes what is there, as one write
//	  Log.write             on failure: counted as lost, told once in the log
//
// A line that finds no room, because the disk or the reader of a pipe is slower
// than the clients for too long, is lost: what is audited never waits for the
// audit. How many were lost stands in the place where they would be, as
//
//	{"time":"2026-01-02T03:04:05.678Z","lost":12}
//
// A line holds who (as auth.Principal.String gives it: subjects are hashed), the
// server, the session as its short hash, the method, the name of the tool, how it
// ended, how long it took and how large the request was. It never holds arguments,
// results, tokens, keys or session ids.
package audit
