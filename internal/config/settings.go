package config

import (
	"maps"
	"slices"
	"strings"
)

// top reads the top level.
func (r *reader) top(root *node) {
	switch root.kind {
	case kindMap:
	case kindNull:
		r.fail(root.pos, "", "the file is empty").hint("it holds mcpServers")
		return
	default:
		r.fail(root.pos, "", "a map of keys is wanted here, this is %s", root.kind)
		return
	}
	entries := r.fields(root, ScopeFile, "")
	if e, ok := entries["auth"]; ok {
		r.auth(entries, e)
	}
	v := &values{reader: r, entries: entries}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if entries[key].doc.Type == typeObject {
			continue
		}
		if texts := v.setting(key); len(texts) > 0 {
			r.file.Settings[key] = Setting{texts, entries[key].key.line}
		}
	}
	if e, ok := entries["mcpServers"]; ok {
		r.servers(e)
	}
}

// setting is the values of one key. An empty one, as ${PUBLIC_URL:-} may give,
// is none.
func (v *values) setting(key string) []string {
	var texts []string
	if v.entries[key].doc.Type == typeOneOrMore {
		texts = v.list(key)
	} else {
		texts = append(texts, v.text(key))
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// auth adds the keys below auth to those of the top level, as auth-keys.
func (r *reader) auth(entries map[string]entry, auth entry) {
	for key, e := range r.fields(auth.value, ScopeAuth, auth.path) {
		flag := "auth-" + key
		if first, ok := entries[flag]; ok {
			r.fail(e.key, e.path, "this is the key %s of line %d once more", first.path, first.key.line)
			continue
		}
		entries[flag] = e
	}
}

// servers reads mcpServers.
func (r *reader) servers(e entry) {
	for _, f := range e.value.fields {
		path := join(e.path, f.name)
		if wrong := badName(f.name); wrong != "" {
			bad := r.fail(f.pos, path, "a server's name %s", wrong)
			if name := goodName(f.name); name != "" {
				bad.hint("for example " + name)
			}
		}
		if f.value.kind != kindMap {
			r.fail(f.value.pos, path, "a map with command or url is wanted, this is %s", f.value.kind)
			continue
		}
		r.file.Servers = append(r.file.Servers, r.server(f, path))
	}
}

const maxName = 64

func nameChar(c rune) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("._-", c)
}

// badName says what is wrong with the name of a server. It becomes a part of a
// path, where dots alone mean something else.
func badName(name string) string {
	switch {
	case name == "" || len(name) > maxName:
		return "has 1 to 64 characters"
	case strings.ContainsFunc(name, func(c rune) bool { return !nameChar(c) }):
		return "is of letters, digits, dot, hyphen and underscore"
	case name == "." || name == "..":
		return "cannot be dots alone"
	}
	return ""
}

// goodName is name with hyphens for what it cannot hold.
func goodName(name string) string {
	name = strings.Join(strings.FieldsFunc(name, func(c rune) bool { return !nameChar(c) }), "-")
	name = strings.Trim(name[:min(len(name), maxName)], "-.")
	if badName(name) != "" {
		return ""
	}
	return name
}
