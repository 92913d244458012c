package config

import "strings"

// KeyDoc is one key of the file. The check and the documentation use the same
// table of them.
type KeyDoc struct {
	Scope   string   // where it stands: ScopeFile, ScopeAuth, ScopeServer, ScopeTools
	Key     string   // a key with hyphens may also be written in camelCase
	Aliases []string // other products' names of it
	Type    string
	Default string // "" if it has none
	Meaning string
	Use     Use
}

// Where a key stands.
const (
	ScopeFile   = ""
	ScopeAuth   = "auth"
	ScopeServer = "mcpServers.NAME"
	ScopeTools  = "mcpServers.NAME.tools"
	ScopeAccess = "mcpServers.NAME.access[]"
	ScopeOAuth  = "mcpServers.NAME.client-credentials"
)

// Use is what becomes of a key.
type Use string

// The uses of a key. A refused key is an error: the file would mean something
// else without it. Of a warned one the server may work without it.
const (
	Acts    Use = "acts"
	Ignored Use = "ignored"
	Warned  Use = "ignored with a warning"
	Refused Use = "refused"
)

// Types of values. Words with | between them are the words to choose from.
const (
	typeString         = "string"
	typeStrings        = "list of strings"
	typeOneOrMore      = "string or list of strings"
	typeMap            = "map of strings"
	typeObject         = "map"
	typeTools          = "map or list of strings"
	typeRules          = "list of maps"
	typeBool           = "true|false"
	typeCount          = "number"
	typeCountOrZero    = "number, 0 for no limit"
	typeDuration       = "duration"
	typeDurationOrZero = "duration, 0 for none"
	typeTimeout        = "seconds or duration"
	typeSize           = "size"
	typeAny            = "any"
)

// Keys is every key that a file may hold or that has an answer of its own.
func Keys() []KeyDoc {
	var all []KeyDoc
	for _, keys := range [][]KeyDoc{fileKeys, authKeys, serverKeys, toolsKeys, accessKeys, oauthKeys} {
		for _, k := range keys {
			if k.Use == "" {
				k.Use = Acts
			}
			all = append(all, k)
		}
	}
	for _, foreign := range foreignKeys {
		for _, name := range strings.Fields(foreign.names) {
			all = append(all, KeyDoc{Scope: foreign.scope, Key: name, Type: typeAny, Meaning: foreign.reason, Use: foreign.use})
		}
	}
	return all
}

// fileKeys are the flags of serve. Defaults are the flags' own.
var fileKeys = []KeyDoc{
	{Key: "mcpServers", Aliases: []string{"servers"}, Type: typeObject, Meaning: "The servers, by name: letters, digits, dot, hyphen and underscore, at most 64."},
	{Key: "listen", Type: typeString, Default: "127.0.0.1:8080", Meaning: "Address for clients."},
	{Key: "admin-listen", Type: typeString, Default: "off", Meaning: "Address for metrics, status page and API."},
	{Key: "admin-token-file", Type: typeString, Meaning: "File with the token that requests to the admin listener must show, at least 16 bytes; needed beyond loopback."},
	{Key: "isolation", Type: "auto|session|shared", Default: "auto", Meaning: "For servers that do not say it: a process for each session, or one for all."},
	{Key: "era", Type: "auto|legacy|modern", Default: "auto", Meaning: "For servers that do not say it: their protocol era, or auto: found out."},
	{Key: "store", Type: typeString, Default: "memory:", Meaning: "Where sessions are kept."},
	{Key: "peer-listen", Type: typeString, Default: "off", Meaning: "Address for other replicas."},
	{Key: "advertise", Type: typeString, Default: "the peer listener's", Meaning: "The host and port that other replicas dial."},
	{Key: "peer-secret-file", Type: typeString, Meaning: "File with the secret that replicas share, at least 32 bytes."},
	{Key: "session-idle", Type: typeDuration, Default: "2h", Meaning: "A session without message, open stream and call for so long ends."},
	{Key: "session-max-age", Type: typeDurationOrZero, Default: "0", Meaning: "A session ends after so long, used or not."},
	{Key: "max-sessions", Type: typeCount, Default: "1024", Meaning: "Sessions in one process."},
	{Key: "max-processes", Type: typeCount, Default: "128", Meaning: "Server processes in all, those that are stopping counted."},
	{Key: "max-sessions-per-principal", Type: typeCountOrZero, Default: "0", Meaning: "Sessions of one principal."},
	{Key: "max-calls", Type: typeCount, Default: "4096", Meaning: "Calls in flight in one process."},
	{Key: "max-calls-per-principal", Type: typeCountOrZero, Default: "0", Meaning: "Calls in flight of one principal."},
	{Key: "max-requests-per-second", Type: typeCountOrZero, Default: "0", Meaning: "Requests a second of one principal; of one client address where there is no authorization."},
	{Key: "tls-cert", Type: typeString, Meaning: "Certificate chain for HTTPS."},
	{Key: "tls-key", Type: typeString, Meaning: "Its private key."},
	{Key: "tls-client-ca", Type: typeString, Meaning: "Authorities whose client certificates are let in."},
	{Key: "store-required", Type: typeBool, Default: "false", Meaning: "Exit where the store is not reached within start-timeout."},
	{Key: "start-timeout", Type: typeDuration, Default: "2m", Meaning: "Until a server's answer to initialize."},
	{Key: "call-timeout", Type: typeDuration, Default: "10m", Meaning: "For a call without answer and progress."},
	{Key: "call-limit", Type: typeDuration, Default: "2h", Meaning: "For one call in all."},
	{Key: "question-timeout", Type: typeDuration, Default: "10m", Meaning: "For a client's answer to what a server of the other protocol era asks."},
	{Key: "max-message", Type: typeSize, Default: "64MiB", Meaning: "One message, in either direction."},
	{Key: "keepalive", Type: typeDuration, Default: "15s", Meaning: "Between comments on a quiet stream."},
	{Key: "drain", Type: typeDurationOrZero, Default: "20s", Meaning: "For calls in flight after SIGTERM."},
	{Key: "public-url", Aliases: []string{"publicURL"}, Type: typeString, Meaning: "The URL that clients use."},
	{Key: "allowed-host", Aliases: []string{"allowed-hosts"}, Type: typeOneOrMore, Default: "loopback names", Meaning: "Host names to allow."},
	{Key: "allowed-origin", Aliases: []string{"allowed-origins"}, Type: typeOneOrMore, Default: "loopback names", Meaning: "Origins of browser pages to allow."},
	{Key: "trusted-proxy", Aliases: []string{"trusted-proxies"}, Type: typeOneOrMore, Default: "none", Meaning: "Address ranges whose forwarded headers are believed."},
	{Key: "insecure", Type: typeBool, Default: "false", Meaning: "Allow a listener beyond loopback without authorization."},
	{Key: "state-key-file", Type: typeString, Default: "random", Meaning: "File with the key for what is sealed; replicas share it."},
	{Key: "old-state-key-file", Type: typeString, Default: "none", Meaning: "File with the key that was in use before: a requestState that it sealed is still good."},
	{Key: "log-level", Type: "debug|info|warn|error", Default: "info", Meaning: "What is logged."},
	{Key: "log-format", Type: "auto|text|json", Default: "auto", Meaning: "How it is logged; auto is text on a terminal, else json."},
	{Key: "audit-log", Type: typeString, Default: "none", Meaning: "File for a line of JSON for each call and session; - is stderr."},
	{Key: "trace-endpoint", Type: typeString, Default: "none", Meaning: "URL of an OpenTelemetry collector that takes OTLP over HTTP."},
	{Key: "auth", Type: typeObject, Meaning: "Authorization; the keys below may also stand at the top as auth-keys and so on."},
	{Key: "auth-keys", Type: typeString, Meaning: "See auth."},
	{Key: "auth-issuer", Aliases: []string{"auth-issuers"}, Type: typeOneOrMore, Meaning: "See auth."},
	{Key: "auth-audience", Aliases: []string{"auth-audiences"}, Type: typeOneOrMore, Meaning: "See auth."},
	{Key: "auth-scope", Aliases: []string{"auth-scopes"}, Type: typeOneOrMore, Meaning: "See auth."},
}

var authKeys = []KeyDoc{
	{Scope: ScopeAuth, Key: "keys", Type: typeString, Meaning: "File with static keys."},
	{Scope: ScopeAuth, Key: "issuer", Aliases: []string{"issuers"}, Type: typeOneOrMore, Meaning: "Issuers of access tokens, by URL."},
	{Scope: ScopeAuth, Key: "audience", Aliases: []string{"audiences"}, Type: typeOneOrMore, Default: "the server's public URL", Meaning: "What tokens must be meant for."},
	{Scope: ScopeAuth, Key: "scope", Aliases: []string{"scopes"}, Type: typeOneOrMore, Meaning: "Scopes that every token must have."},
}

var serverKeys = []KeyDoc{
	{Scope: ScopeServer, Key: "type", Aliases: []string{"transport", "transportType"}, Type: typeString, Default: "from command or url", Meaning: "stdio, http (also streamable-http, streamableHttp) or sse. A URL without type is asked: Streamable HTTP first, then HTTP+SSE."},
	{Scope: ScopeServer, Key: "disabled", Type: typeBool, Default: "false", Meaning: "The server is not offered, and its variables need not be set."},
	{Scope: ScopeServer, Key: "enabled", Aliases: []string{"isActive"}, Type: typeBool, Default: "true", Meaning: "The opposite of disabled."},
	{Scope: ScopeServer, Key: "command", Type: typeString, Meaning: "The program of a stdio server: one program, never a shell line."},
	{Scope: ScopeServer, Key: "args", Type: typeStrings, Meaning: "Its arguments."},
	{Scope: ScopeServer, Key: "env", Type: typeMap, Meaning: "Its environment variables, beside a small safe base."},
	{Scope: ScopeServer, Key: "pass-env", Type: typeOneOrMore, Meaning: "Variables of this environment to pass on."},
	{Scope: ScopeServer, Key: "cwd", Type: typeString, Meaning: "Its working directory."},
	{Scope: ScopeServer, Key: "url", Aliases: []string{"serverUrl"}, Type: typeString, Meaning: "The URL of an HTTP server."},
	{Scope: ScopeServer, Key: "httpUrl", Type: typeString, Meaning: "The URL of a Streamable HTTP server: url with type http."},
	{Scope: ScopeServer, Key: "headers", Type: typeMap, Meaning: "Headers sent to it."},
	{Scope: ScopeServer, Key: "endpoints", Type: typeOneOrMore, Meaning: "Its addresses, as http://10.0.0.11:9000; path, Host and TLS name stay the URL's."},
	{Scope: ScopeServer, Key: "dns", Type: typeString, Meaning: "Its addresses are all behind this name, as http://crm-headless:9000."},
	{Scope: ScopeServer, Key: "forward-header", Aliases: []string{"forward-headers"}, Type: typeOneOrMore, Default: "none", Meaning: "Headers of clients that are passed on."},
	{Scope: ScopeServer, Key: "isolation", Type: "auto|session|shared", Default: "the setting above", Meaning: "A process for each session, or one for all."},
	{Scope: ScopeServer, Key: "era", Type: "auto|legacy|modern", Default: "the setting above", Meaning: "The protocol era of the server: legacy (up to 2025-11-25), modern (2026-07-28), or auto: found out."},
	{Scope: ScopeServer, Key: "on-lost", Type: "end|reinitialize", Default: "end", Meaning: "What becomes of a session whose address is gone."},
	{Scope: ScopeServer, Key: "tools", Type: typeTools, Default: "all", Meaning: "Which tools are offered: allow and deny below, or a list of those to allow."},
	{Scope: ScopeServer, Key: "disabledTools", Aliases: []string{"excludeTools"}, Type: typeStrings, Meaning: "Added to tools.deny."},
	{Scope: ScopeServer, Key: "includeTools", Aliases: []string{"enabledTools"}, Type: typeStrings, Meaning: "Is tools.allow."},
	{Scope: ScopeServer, Key: "access", Type: typeRules, Default: "whoever is let in", Meaning: "Who may use what of the server, by rules; the first that fits decides, and whom none fits may use nothing."},
	{Scope: ScopeServer, Key: "client-credentials", Type: typeObject, Meaning: "How Signalbox gets an access token for an HTTP server (OAuth 2, client credentials)."},
	{Scope: ScopeServer, Key: "claim-headers", Type: typeMap, Meaning: "Headers sent to an HTTP server, each with a claim of the client's token as its value, as {X-User: email}."},
	{Scope: ScopeServer, Key: "claim-env", Type: typeMap, Meaning: "Variables of a session's own process, each from a claim of the client's token, as {USER_EMAIL: email}."},
	{Scope: ScopeServer, Key: "header-env", Type: typeMap, Meaning: "Variables of a session's own process, each from a header of the request that began the session, as {API_KEY: X-Crm-Key}."},
	{Scope: ScopeServer, Key: "timeout", Type: typeTimeout, Meaning: "Is call-timeout; a bare number is seconds."},
	{Scope: ScopeServer, Key: "call-timeout", Type: typeDuration, Default: "the setting above", Meaning: "For a call without answer and progress."},
	{Scope: ScopeServer, Key: "call-limit", Type: typeDuration, Default: "the setting above", Meaning: "For one call in all."},
	{Scope: ScopeServer, Key: "question-timeout", Type: typeDuration, Default: "the setting above", Meaning: "For a client's answer to what the server asks, if the two are of different eras."},
	{Scope: ScopeServer, Key: "start-timeout", Type: typeDuration, Default: "the setting above", Meaning: "Until the server's answer to initialize."},
	{Scope: ScopeServer, Key: "max-message", Type: typeSize, Default: "the setting above", Meaning: "One message, in either direction."},
	{Scope: ScopeServer, Key: "session-idle", Type: typeDuration, Default: "the setting above", Meaning: "A session without message, open stream and call for so long ends."},
	{Scope: ScopeServer, Key: "session-max-age", Type: typeDurationOrZero, Default: "the setting above", Meaning: "A session ends after so long, used or not."},
	{Scope: ScopeServer, Key: "max-sessions", Type: typeCount, Default: "no limit of its own", Meaning: "Sessions of this server."},
	{Scope: ScopeServer, Key: "max-sessions-per-principal", Type: typeCountOrZero, Default: "no limit of its own", Meaning: "Sessions of one principal with this server."},
	{Scope: ScopeServer, Key: "max-processes", Type: typeCount, Default: "no limit of its own", Meaning: "Processes of this server."},
}

var toolsKeys = []KeyDoc{
	{Scope: ScopeTools, Key: "allow", Type: typeOneOrMore, Default: "all", Meaning: "Patterns of tools to offer; * is any characters, ? is one."},
	{Scope: ScopeTools, Key: "deny", Type: typeOneOrMore, Default: "none", Meaning: "Patterns of tools not to offer; this wins."},
}

var accessKeys = []KeyDoc{
	{Scope: ScopeAccess, Key: "keys", Aliases: []string{"key"}, Type: typeOneOrMore, Meaning: "For these static keys, by name."},
	{Scope: ScopeAccess, Key: "subjects", Aliases: []string{"subject"}, Type: typeOneOrMore, Meaning: "For tokens of these subjects."},
	{Scope: ScopeAccess, Key: "scopes", Aliases: []string{"scope"}, Type: typeOneOrMore, Meaning: "For those who have all of these scopes."},
	{Scope: ScopeAccess, Key: "claims", Type: typeMap, Meaning: "For tokens whose claims have these values, or lists with them."},
	{Scope: ScopeAccess, Key: "tools", Type: typeTools, Default: "all", Meaning: "Which tools they may use."},
	{Scope: ScopeAccess, Key: "prompts", Type: typeTools, Default: "all", Meaning: "Which prompts."},
	{Scope: ScopeAccess, Key: "resources", Type: typeTools, Default: "all", Meaning: "Which resources, by URI."},
}

var oauthKeys = []KeyDoc{
	{Scope: ScopeOAuth, Key: "token-url", Type: typeString, Meaning: "Where tokens are to be had."},
	{Scope: ScopeOAuth, Key: "client-id", Type: typeString, Meaning: "The client."},
	{Scope: ScopeOAuth, Key: "client-secret", Type: typeString, Meaning: "Its secret."},
	{Scope: ScopeOAuth, Key: "scopes", Aliases: []string{"scope"}, Type: typeOneOrMore, Meaning: "Scopes to ask for."},
	{Scope: ScopeOAuth, Key: "audience", Type: typeString, Meaning: "The parameter resource (RFC 8707), if the issuer wants it."},
}

// limitKeys are the keys of a server that go to Limits.
var limitKeys = []string{"call-timeout", "call-limit", "question-timeout", "start-timeout", "max-message", "session-idle",
	"session-max-age", "max-sessions", "max-sessions-per-principal", "max-processes"}
