// Package park serves clients of the per-request era from a server of the
// handshake era. It opens sessions at the server that no client sees, and where
// the server asks something in the middle of a call, the call is parked: its client
// gets an input_required result and comes back with the answers (MCP 2026-07-28,
// basic/patterns/mrtr).
package park
