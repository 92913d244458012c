package config

import (
	"slices"
	"strings"
)

// server reads one entry of mcpServers.
func (r *reader) server(f field, path string) Server {
	before := len(r.errs)
	v := &values{reader: r, entries: r.fields(f.value, ScopeServer, path)}
	v.doubtful = len(r.errs) > before
	s := Server{Name: f.name, Line: f.line}
	s.Disabled = v.disabled()
	v.raw = s.Disabled

	s.Type = v.serverType()
	s.Command, s.Args, s.Cwd = v.text("command"), v.list("args"), v.text("cwd")
	s.Env = v.dict("env", badVariable)
	s.PassEnv = v.names("pass-env", func(name string) string { return badVariable(name, "") })
	s.URL = v.url(&s)
	s.Headers = v.headers()
	s.Endpoints, s.DNS = v.addresses()
	s.ForwardHeaders = v.names("forward-header", func(name string) string { return CheckHeader(name, "") })
	s.Isolation, s.Era, s.OnLost = v.text("isolation"), v.text("era"), v.text("on-lost")
	s.Tools = v.tools()
	s.Access = v.access()
	s.Credentials = v.credentials()
	s.ClaimHeaders = v.dict("claim-headers", func(name, _ string) string { return CheckHeader(name, "") })
	s.ClaimEnv = v.dict("claim-env", badVariable)
	s.HeaderEnv = v.dict("header-env", badVariable)
	s.Limits = v.limits()
	if !s.Disabled {
		v.transport(&s, f, path)
	}
	return s
}

// disabled is the two keys that say it.
func (v *values) disabled() bool {
	disabled, enabled := v.text("disabled"), v.text("enabled")
	if disabled != "" && disabled == enabled {
		e := v.entries["enabled"]
		v.fail(e.key, e.path, "this contradicts disabled in line %d", v.entries["disabled"].key.line)
	}
	return disabled == "true" || enabled == "false"
}

func (v *values) serverType() string {
	e, ok := v.entries["type"]
	text, known := "", false
	if ok {
		text, known = v.expand(e.value, e.path)
	}
	if !known {
		return ""
	}
	switch plain(text) {
	case "stdio", "local":
		return "stdio"
	case "http", "streamablehttp":
		return "http"
	case "sse":
		return "sse"
	case "ws", "websocket":
		v.fail(e.value.pos, e.path, "WebSocket servers are not supported").hint("one of stdio, http, sse is wanted")
		return ""
	}
	bad := v.fail(e.value.pos, e.path, "one of stdio, http, streamable-http, sse is wanted")
	if near := Nearest(text, []string{"stdio", "http", "streamable-http", "sse"}); near != "" {
		bad.hint("did you mean " + near + "?")
	}
	return ""
}

// names is a list of which each element must pass check.
func (v *values) names(key string, check func(string) string) []string {
	list := v.list(key)
	if v.raw {
		return list
	}
	for i, name := range list {
		e := v.entries[key]
		n := e.value
		if n.kind == kindList {
			n = n.items[i]
		}
		if wrong := check(name); wrong != "" && (name != "" || n.text == "") {
			v.fail(n.pos, e.path, "%s", wrong)
		}
	}
	return list
}

// badVariable says what is wrong with the name of an environment variable.
func badVariable(name, _ string) string {
	if name == "" || strings.ContainsAny(name, "=\x00") {
		return "this is no name of an environment variable"
	}
	return ""
}

// tools joins the ways to filter.
func (v *values) tools() *Filter {
	f := &Filter{Deny: v.list("disabledTools"), Allow: v.list("includeTools")}
	allowed := "includeTools"
	e, ok := v.entries["tools"]
	if ok && e.value.kind == kindList {
		v.allowOnce(f, &allowed, "tools", v.list("tools"))
	}
	if ok && e.value.kind == kindMap {
		inner := &values{reader: v.reader, entries: v.fields(e.value, ScopeTools, e.path), raw: v.raw}
		if inner.has("allow") {
			v.entries["tools.allow"] = inner.entries["allow"]
			v.allowOnce(f, &allowed, "tools.allow", inner.list("allow"))
		}
		f.Deny = append(f.Deny, inner.list("deny")...)
	}
	if a, ok := v.entries[allowed]; ok && len(f.Allow) == 0 {
		v.fail(a.key, a.path, "an empty list would allow nothing").
			hint(`leave it out to allow all; deny: ["*"] hides all`)
	}
	if len(f.Allow) == 0 && len(f.Deny) == 0 {
		return nil
	}
	return f
}

func (v *values) allowOnce(f *Filter, from *string, key string, list []string) {
	if first, ok := v.entries["includeTools"]; ok {
		e := v.entries[key]
		v.fail(e.key, e.path, "this and %s in line %d say the same", lastKey(first.path), first.key.line)
	}
	f.Allow, *from = list, key
}

func (v *values) limits() map[string]string {
	out := map[string]string{}
	for _, key := range limitKeys {
		if text := v.text(key); text != "" {
			out[key] = text
		}
	}
	e, ok := v.entries["timeout"]
	if !ok {
		return none(out)
	}
	if first, twice := v.entries["call-timeout"]; twice {
		v.fail(e.key, e.path, "this and %s in line %d say the same", lastKey(first.path), first.key.line)
	}
	text := v.text("timeout")
	if d, ok := timeout(text); ok {
		out["call-timeout"] = d
		if isNumber(text) && len(text) >= 4 && !strings.Contains(text, ".") {
			v.warn(e.path, "a bare number is seconds here; write the unit (30000ms) if milliseconds are meant")
		}
	}
	return none(out)
}

func none(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return m
}

// headers also finds names that differ only in the case of letters.
func (v *values) headers() map[string]string {
	m := v.dict("headers", CheckHeader)
	if len(m) == 0 {
		return m
	}
	e := v.entries["headers"]
	seen := map[string]field{}
	for _, f := range e.value.fields {
		name := strings.ToLower(f.name)
		if first, ok := seen[name]; ok && first.name != f.name {
			v.fail(f.pos, join(e.path, f.name), "this header stands twice, first in line %d", first.line)
		}
		seen[name] = f
		if strings.Contains(f.value.text, "{{") {
			v.warn(join(e.path, f.name), "{{...}} is sent as it stands: only ${NAME} is replaced here")
		}
	}
	return m
}

// ownHeaders are those that the proxy sets for each message.
var ownHeaders = []string{"connection", "content-encoding", "content-length", "content-type", "expect", "keep-alive",
	"last-event-id", "mcp-method", "mcp-name", "mcp-protocol-version", "mcp-session-id", "proxy-connection", "te",
	"trailer", "transfer-encoding", "upgrade"}

// CheckHeader says what is wrong with a header to be sent to a server, "" if
// nothing is. It does not repeat the value.
func CheckHeader(name, value string) string {
	switch {
	case name == "" || strings.ContainsFunc(name, func(c rune) bool { return !headerChar(c) }):
		return "this is no name of a header"
	case slices.Contains(ownHeaders, strings.ToLower(name)):
		return "this header is set for each message and cannot be fixed"
	case strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
		return "a line break or control character is in this value"
	}
	return ""
}

func headerChar(c rune) bool {
	return nameChar(c) || strings.ContainsRune("!#$%&'*+^`|~", c)
}
