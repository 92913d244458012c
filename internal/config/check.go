package config

import (
	"fmt"
	"strings"
)

// entry is a key that acts, as the file has it.
type entry struct {
	doc   *KeyDoc
	key   pos
	path  string // with the name as it is written
	value *node  // of a kind that the key takes, never null
}

// table is the keys of a scope by every spelling, and the words to suggest.
type table struct {
	keys  map[string]*KeyDoc
	words []string
}

func newTable(scope string) table {
	t := table{keys: map[string]*KeyDoc{}}
	for _, k := range Keys() {
		if k.Scope != scope {
			continue
		}
		names := append([]string{k.Key}, k.Aliases...)
		for _, name := range names {
			t.keys[name], t.keys[camel(name)] = &k, &k
		}
		if k.Use == Acts {
			t.words = append(t.words, names...)
		}
	}
	return t
}

// camel is session-idle as sessionIdle.
func camel(kebab string) string {
	parts := strings.Split(kebab, "-")
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}

// comment tells keys that people write notes under.
func comment(key string) bool {
	for _, prefix := range []string{"_", "//", "#", "$schema", "x-"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// fields holds a map against the keys of scope. What it returns is known and of
// the right kind; null is as if the key were not there.
func (r *reader) fields(n *node, scope, path string) map[string]entry {
	t := newTable(scope)
	out := map[string]entry{}
	for _, f := range n.fields {
		doc, at := t.keys[f.name], join(path, f.name)
		switch {
		case doc == nil && comment(f.name):
		case doc == nil:
			r.unknown(f, t, at)
		case doc.Use == Ignored:
			r.file.Ignored = append(r.file.Ignored, at)
		case doc.Use == Warned:
			r.file.Ignored = append(r.file.Ignored, at)
			r.warn(at, "%s", doc.Meaning)
		case doc.Use == Refused:
			r.fail(f.pos, at, "this key cannot stand here").hint(doc.Meaning)
		case f.value.kind == kindNull:
		case !r.fits(f.value, doc.Type, at):
		default:
			first, twice := out[doc.Key]
			if twice && first.path != at { // the very same key is found by duplicates
				r.fail(f.pos, at, "this is the key %s of line %d once more", lastKey(first.path), first.key.line)
				continue
			}
			out[doc.Key] = entry{doc, f.pos, at, f.value}
		}
	}
	return out
}

func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// unknown says what was probably meant.
func (r *reader) unknown(f field, t table, path string) {
	e := r.fail(f.pos, path, "unknown key")
	near := synonyms[plain(f.name)]
	if t.keys[near] == nil {
		near = Nearest(f.name, t.words)
	}
	switch doc := t.keys[near]; {
	case doc != nil && doc.Use == Acts:
		e.hint("did you mean " + near + "?")
	case t.keys["mcpServers"] != nil && isServer(f.value):
		e.hint("servers stand below mcpServers")
	case len(t.words) < 10:
		e.hint("known here: " + strings.Join(t.words, ", "))
	}
}

func isServer(n *node) bool {
	return n.has("command") || n.has("url") || n.has("serverUrl")
}

// fits checks the kind of a value and of what is in it.
func (r *reader) fits(n *node, typ, path string) bool {
	wanted, ok := "a string", n.kind == kindString
	switch typ {
	case typeObject, typeMap:
		wanted, ok = "a map", n.kind == kindMap
	case typeStrings:
		wanted, ok = "a list", n.kind == kindList
	case typeOneOrMore:
		wanted, ok = "a string or a list of strings", n.kind.scalar() || n.kind == kindList
	case typeRules:
		wanted, ok = "a list of maps", n.kind == kindList
	case typeTools:
		wanted, ok = "a map with allow and deny", n.kind == kindMap || n.kind == kindList
	case typeCount, typeCountOrZero:
		wanted, ok = "a number", n.kind == kindNumber || n.kind == kindString
	case typeDuration, typeDurationOrZero, typeSize, typeTimeout:
		wanted, ok = "a "+strings.Split(typ, ",")[0], n.kind == kindNumber || n.kind == kindString
	case typeBool:
		wanted, ok = "true or false", n.kind == kindBool || n.kind == kindString
	}
	if !ok {
		e := r.fail(n.pos, path, "%s is wanted, this is %s", wanted, n.kind)
		if wanted == "a string" && n.kind.scalar() {
			e.hint("write it in quotes")
		}
		return false
	}
	for i, item := range n.items {
		if typ == typeRules {
			if item.kind != kindMap {
				r.fail(item.pos, fmt.Sprintf("%s[%d]", path, i), "a map is wanted, this is %s", item.kind)
				ok = false
			}
			continue
		}
		ok = r.element(item, fmt.Sprintf("%s[%d]", path, i)) && ok
	}
	if typ == typeMap {
		for _, f := range n.fields {
			ok = r.element(f.value, join(path, f.name)) && ok
		}
	}
	return ok
}

// element is a value in a list or map: numbers and booleans pass as they are
// written, as in args: [--port, 8080].
func (r *reader) element(n *node, path string) bool {
	if n.kind.scalar() {
		return true
	}
	e := r.fail(n.pos, path, "a string is wanted, this is %s", n.kind)
	if n.kind == kindNull {
		e.hint(`write "" for an empty one`)
	}
	return false
}

// values reads the entries of one map, with variables expanded.
type values struct {
	*reader
	entries  map[string]entry
	raw      bool // of a disabled server
	doubtful bool // a key is unknown or of the wrong kind, so that none may be called missing
}

func (v *values) has(key string) bool { _, ok := v.entries[key]; return ok }

// expand gives the text of a scalar; ok is false where it is not known or wrong.
func (v *values) expand(n *node, path string) (text string, ok bool) {
	if v.raw {
		return n.text, !strings.Contains(n.text, "${")
	}
	text, bad := expand(n.text, v.env)
	if bad != nil {
		v.fail(n.pos, path, "%s", bad.msg).hint(bad.hint)
		return "", false
	}
	if strings.Contains(strings.ReplaceAll(n.text, "$${", ""), "$$") {
		v.warn(path, "$$ is read as one dollar sign; write $$$$ for two")
	}
	if strings.IndexByte(text, 0) >= 0 {
		v.fail(n.pos, path, "a NUL character is in this value")
		return "", false
	}
	return text, true
}

// text is the value of a scalar key, "" where it is missing or wrong.
func (v *values) text(key string) string {
	e, ok := v.entries[key]
	if !ok {
		return ""
	}
	text, ok := v.expand(e.value, e.path)
	if !ok {
		return text
	}
	if wrong := form(e.doc.Type, text); wrong != "" {
		bad := v.fail(e.value.pos, e.path, "%s", wrong)
		if words := strings.Split(e.doc.Type, "|"); len(words) > 1 && e.doc.Type != typeBool {
			if near := Nearest(text, words); near != "" {
				bad.hint("did you mean " + near + "?")
			}
		}
		return ""
	}
	return text
}

// list is the values of a list, or the one that stands for it.
func (v *values) list(key string) []string {
	e, ok := v.entries[key]
	if !ok {
		return nil
	}
	if e.value.kind != kindList {
		text, _ := v.expand(e.value, e.path)
		return []string{text}
	}
	out := make([]string, 0, len(e.value.items))
	for i, item := range e.value.items {
		text, _ := v.expand(item, fmt.Sprintf("%s[%d]", e.path, i))
		out = append(out, text)
	}
	return out
}

// dict is the values of a map; check says what is wrong with a key or its value.
func (v *values) dict(key string, check func(name, value string) string) map[string]string {
	e, ok := v.entries[key]
	if !ok || len(e.value.fields) == 0 {
		return nil
	}
	out := make(map[string]string, len(e.value.fields))
	for _, f := range e.value.fields {
		at := join(e.path, f.name)
		text, ok := v.expand(f.value, at)
		if wrong := check(f.name, text); ok && wrong != "" {
			v.fail(f.pos, at, "%s", wrong)
		}
		out[f.name] = text
	}
	return out
}
