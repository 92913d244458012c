// Package mcp holds the facts of the Model Context Protocol that other packages
// share: revisions and eras, header names, metadata keys, error codes and the
// table of methods. It reads no message and keeps no state.
//
// The five revisions are two protocols. The handshake era (2024-11-05 to
// 2025-11-25) starts a session with initialize; the per-request era (2026-07-28
// and later) has neither handshake nor session and names its version in the
// _meta of every request. A fact that holds in some revisions only says so.
//
// Sources are the specification's pages and schema/REVISION/schema.ts, cited by
// revision and page.
package mcp
