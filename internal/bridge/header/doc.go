// Package header makes and checks the HTTP headers that repeat parts of a
// request of the per-request era: Mcp-Method, Mcp-Name and, as the schema of a
// tool says, Mcp-Param-* (MCP 2026-07-28, basic/transports/streamable-http,
// "Request Metadata").
package header
