package mcp

// Names of HTTP headers in the canonical form of net/http, which is the key
// under which a http.Header holds them; on the wire the case does not matter.
const (
	// HeaderSession carries the session id: visible ASCII, 0x21 to 0x7E
	// (2025-11-25, basic/transports, "Session Management"). Nothing in the
	// per-request era.
	HeaderSession = "Mcp-Session-Id"
	// HeaderVersion is MCP-Protocol-Version: required after initialize from
	// 2025-06-18 on, and in 2026-07-28 on every request, where it must equal the
	// version in the body's _meta.
	HeaderVersion = "Mcp-Protocol-Version"
	// HeaderMethod repeats the body's method (2026-07-28, basic/transports/
	// streamable-http). It says nothing about the era of its sender.
	HeaderMethod = "Mcp-Method"
	// HeaderName repeats the name of a tool or prompt, the uri of a resource or
	// the id of a task (2026-07-28; SEP-2243, SEP-2663); it may be written as
	// =?base64?...?=.
	HeaderName = "Mcp-Name"
	// HeaderParamPrefix starts the headers that repeat an argument which the
	// tool's schema marks with x-mcp-header (2026-07-28; SEP-2243).
	HeaderParamPrefix = "Mcp-Param-"
	// HeaderLastEvent is Last-Event-ID: the event after which a stream is
	// resumed (2025-03-26 to 2025-11-25).
	HeaderLastEvent = "Last-Event-Id"
)

// Keys of the _meta object that the protocol itself defines.
const (
	// MetaVersion, MetaClientCapabilities (both required) and MetaClientInfo
	// stand in every request of 2026-07-28 (basic/index, "_meta").
	MetaVersion            = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	// MetaLogLevel asks for notifications/message on one request's stream
	// (2026-07-28, server/utilities/logging).
	MetaLogLevel = "io.modelcontextprotocol/logLevel"
	// MetaServerInfo stands in results of 2026-07-28.
	MetaServerInfo = "io.modelcontextprotocol/serverInfo"
	// MetaSubscription is the id of the subscriptions/listen request that a
	// message belongs to (2026-07-28, basic/patterns/subscriptions).
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
	// MetaRelatedTask ties a message to a task (2025-11-25,
	// basic/utilities/tasks).
	MetaRelatedTask = "io.modelcontextprotocol/related-task"
	// ProgressToken is the one key without a prefix, in all revisions.
	ProgressToken = "progressToken"
)

// ExtensionTasks names the tasks extension of the per-request era in
// capabilities (SEP-2663).
const ExtensionTasks = "io.modelcontextprotocol/tasks"

// Codes of JSON-RPC errors. Those from -32768 to -32000 are reserved by
// JSON-RPC 2.0, section 5.1, or by MCP.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603

	// CodeServer and CodeSessionNotFound are what handshake-era implementations
	// use for errors of their own; 2026-07-28 wants -32000 to -32019 left alone
	// (basic/index, "Error codes").
	CodeServer          = -32000
	CodeSessionNotFound = -32001
	// CodeResourceNotFound is of the handshake era; 2026-07-28 forbids it and
	// uses CodeInvalidParams.
	CodeResourceNotFound = -32002
	// CodeURLElicitationRequired exists in 2025-11-25 only.
	CodeURLElicitationRequired = -32042

	// CodeHeaderMismatch: a header is missing or differs from the body; HTTP 400
	// (2026-07-28).
	CodeHeaderMismatch = -32020
	// CodeMissingCapability: the request needs a capability that the client did
	// not declare; HTTP 400, data {"requiredCapabilities": {...}} (2026-07-28).
	CodeMissingCapability = -32021
	// CodeUnsupportedVersion: HTTP 400, data {"supported": [...], "requested":
	// "..."} (2026-07-28). The list tells the era of its sender, the code alone
	// does not.
	CodeUnsupportedVersion = -32022
)
