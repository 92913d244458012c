package config

// foreignKeys are those of other products, and those that are easily put into
// the wrong place.
var foreignKeys = []struct {
	scope  string
	use    Use
	names  string // separated by spaces
	reason string
}{
	{ScopeFile, Ignored, "inputs version globalShortcut preferences schemaVersion",
		"Of an editor or desktop client."},
	{ScopeFile, Refused, "config",
		"a file cannot name another"},
	{ScopeFile, Refused, "mcp",
		"move the servers from here to mcpServers at the top"},
	{ScopeFile, Refused, "mcpProxy",
		"another product's settings; see listen, public-url, auth and log-level"},
	{ScopeFile, Refused, "command args url env pass-env cwd header headers forward-header endpoints dns on-lost tools timeout",
		"this belongs to a server, below mcpServers.NAME"},

	{ScopeServer, Ignored, "name title displayName description icon iconPath logoUrl gallery version tags category metadata author homepage repository website provider providerUrl registry registryUrl source sourceUrl installSource",
		"What a client shows."},
	{ScopeServer, Ignored, "alwaysAllow autoApprove autoApproveAll trust alwaysLoad chatMenu startup serverInstructions instructions customUserVars initTimeout networkTimeout watchPaths dev extensionName dxtPath longRunning configId configuration shouldConfig installed builtin",
		"What a client does by itself."},
	{ScopeServer, Warned, "oauth oauthScopes oauth_scopes auth authProviderType requiresOAuth",
		"nobody logs in to servers here; if it wants a token, put it into headers"},
	{ScopeServer, Warned, "sandbox sandboxEnabled",
		"processes are not confined here"},
	{ScopeServer, Refused, "envFile",
		"files of variables are not read; write env, or pass-env for what is in the environment already"},
	{ScopeServer, Refused, "headersHelper apiKey",
		"write headers; values may hold ${NAME}"},
	{ScopeServer, Refused, "proxy",
		"a proxy for one server is not known"},
	{ScopeServer, Refused, "options",
		"another product's settings; tools filters, headers and the limits stand in the entry itself"},
	{ScopeServer, Refused, "listen admin-listen admin-token-file store public-url allowed-host allowed-origin trusted-proxy insecure log-level log-format keepalive drain",
		"this is for all servers, and stands at the top of the file"},
}

// synonyms are words that people write, and that no count of letters leads to
// the right one.
var synonyms = map[string]string{
	"arguments": "args", "argv": "args", "params": "args", "parameters": "args",
	"environment": "env", "variables": "env", "vars": "env",
	"uri": "url", "address": "url", "host": "url", "baseurl": "url", "endpointurl": "url",
	"cmd": "command", "exec": "command", "executable": "command", "program": "command", "run": "command",
	"directory": "cwd", "dir": "cwd", "workdir": "cwd", "workingdirectory": "cwd",
	"httpheaders": "headers", "requestheaders": "headers",
	"port": "listen", "bind": "listen", "redis": "store",
	"allowlist": "allow", "include": "allow", "denylist": "deny", "exclude": "deny", "blocklist": "deny",
}
