package config

import (
	"net/url"
	"slices"
	"strings"
)

// url is the server's URL, which may stand under two names.
func (v *values) url(s *Server) string {
	key := "url"
	if e, ok := v.entries["httpUrl"]; ok {
		if first, both := v.entries["url"]; both {
			v.fail(e.key, e.path, "this and %s in line %d say the same", lastKey(first.path), first.key.line)
			return ""
		}
		if s.Type == "" {
			s.Type = "http"
		}
		key = "httpUrl"
	}
	e, ok := v.entries[key]
	if !ok {
		return ""
	}
	text, ok := v.expand(e.value, e.path)
	if !ok {
		return text
	}
	if wrong, hint := badURL(text); wrong != "" {
		v.fail(e.value.pos, e.path, "%s", wrong).hint(hint)
	}
	if strings.Contains(text, "{{") {
		v.warn(e.path, "{{...}} is sent as it stands: only ${NAME} is replaced here")
	}
	return text
}

// badURL does not repeat the URL: it may hold a secret.
func badURL(text string) (wrong, hint string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "":
		return "a URL is wanted, as https://host/mcp", ""
	case u.Scheme != "http" && u.Scheme != "https":
		return "a URL begins with http:// or https:// here", ""
	case u.Hostname() == "":
		return "this URL has no host", ""
	case u.User != nil:
		return "a URL cannot hold a user and password here", "write the header Authorization into headers"
	case u.Fragment != "":
		return "a URL cannot have a fragment (#) here", ""
	}
	return "", ""
}

// addresses are endpoints and dns: where the server is, the path being the
// URL's.
func (v *values) addresses() (endpoints []string, dns string) {
	endpoints, dns = v.list("endpoints"), v.text("dns")
	if v.raw {
		return endpoints, dns
	}
	e := v.entries["endpoints"]
	for i, text := range endpoints {
		n := e.value
		if n.kind == kindList {
			n = n.items[i]
		}
		v.address(n, e.path, text)
		if slices.Contains(endpoints[:i], text) && text != "" {
			v.fail(n.pos, e.path, "this address stands twice")
		}
	}
	if d, ok := v.entries["dns"]; ok {
		v.address(d.value, d.path, dns)
		if len(endpoints) > 0 {
			v.fail(d.key, d.path, "endpoints and dns cannot stand together").hint("use one of them")
		}
	}
	return endpoints, dns
}

func (v *values) address(n *node, at, text string) {
	if text == "" && n.text != "" {
		return // not expanded, which is known already
	}
	wrong, hint := badURL(text)
	u, err := url.Parse(text)
	if wrong == "" && err == nil && (strings.Trim(u.Path, "/") != "" || u.RawQuery != "") {
		wrong, hint = "an address has no path and no query", "they are those of url"
	}
	if wrong != "" {
		v.fail(n.pos, at, "%s", strings.Replace(wrong, "https://host/mcp", "http://10.0.0.11:9000", 1)).hint(hint)
	}
}

// transport decides between command and URL, and says what contradicts it.
func (v *values) transport(s *Server, f field, at string) {
	command, hasCommand := v.entries["command"]
	remote, hasURL := v.entries["url"]
	if !hasURL {
		remote, hasURL = v.entries["httpUrl"]
	}
	switch {
	case hasCommand && hasURL:
		v.fail(remote.key, remote.path, "command and url cannot stand together").hint("a server is the one or the other")
		return
	case hasCommand && (s.Type == "http" || s.Type == "sse"):
		v.fail(command.key, command.path, "a command cannot have type %s", s.Type).hint("leave type out, or write url")
		return
	case hasURL && s.Type == "stdio":
		v.fail(remote.key, remote.path, "a url cannot have type stdio").hint("leave type out, or write command")
		return
	case !hasCommand && !hasURL && v.doubtful:
	case !hasCommand && !hasURL:
		missing := "command or url"
		switch {
		case s.Type == "stdio":
			missing = "command"
		case s.Type != "" || v.has("endpoints") || v.has("dns"):
			missing = "url"
		}
		v.fail(f.pos, at, "%s is missing", missing)
		return
	case hasCommand:
		s.Type = "stdio"
		if strings.TrimSpace(s.Command) == "" && strings.TrimSpace(command.value.text) == "" {
			v.fail(command.value.pos, command.path, "the command is empty")
		}
		v.only("a command", []string{"endpoints", "dns", "forward-header", "on-lost", "client-credentials", "claim-headers"}, []string{"headers"})
		v.commandWarnings(s, at)
	default:
		v.only("a URL", []string{"pass-env", "isolation", "claim-env", "header-env"}, []string{"args", "env", "cwd"})
		if u, err := url.Parse(s.URL); err == nil && s.Type == "" && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/sse") {
			v.warn(remote.path, "without a type the server is asked, Streamable HTTP first; write type sse if it speaks HTTP+SSE only")
		}
	}
}

// only refuses keys that mean nothing for what, and warns of those that other
// products let stand there.
func (v *values) only(what string, refused, warned []string) {
	for _, key := range refused {
		if e, ok := v.entries[key]; ok {
			v.fail(e.key, e.path, "this means nothing for %s", what)
		}
	}
	for _, key := range warned {
		if e, ok := v.entries[key]; ok && len(e.value.items)+len(e.value.fields)+len(e.value.text) > 0 {
			v.warn(e.path, "this means nothing for %s", what)
		}
	}
}
