// Package observe keeps what operators look back at, in memory and bounded:
//
//	Tape       the last messages of one session: when, which way, method, size; no contents
//	Recorder   of this process: calls and added latency of the last 15 minutes,
//	           and the last refusals and drops, by reason
//
// Whoever carries messages calls it with what it has at hand already. Nothing
// here blocks for longer than it takes to fill a fixed place in memory, and a
// nil Recorder, the one without an admin listener, takes everything and keeps
// nothing.
package observe
