// Package dialog serves sessions of the handshake era from a server of the
// per-request era: it keeps what a session says once and puts it into every
// request, and turns input_required results into requests to the client and a
// retry (MCP 2026-07-28, basic/patterns/mrtr).
package dialog
