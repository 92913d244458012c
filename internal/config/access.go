package config

import "fmt"

// access reads the rules of a server.
func (v *values) access() []Rule {
	e, ok := v.entries["access"]
	if !ok {
		return nil
	}
	rules := make([]Rule, 0, len(e.value.items))
	for i, item := range e.value.items {
		path := fmt.Sprintf("%s[%d]", e.path, i)
		inner := &values{reader: v.reader, entries: v.fields(item, ScopeAccess, path), raw: v.raw}
		rule := Rule{
			Keys: inner.list("keys"), Subjects: inner.list("subjects"), Scopes: inner.list("scopes"),
			Claims: inner.dict("claims", func(string, string) string { return "" }),
			Tools:  inner.filter("tools"), Prompts: inner.filter("prompts"), Resources: inner.filter("resources"),
		}
		for _, key := range []string{"keys", "subjects", "scopes", "claims"} {
			if k, has := inner.entries[key]; has && len(k.value.items)+len(k.value.fields)+len(k.value.text) == 0 {
				v.fail(k.key, k.path, "an empty list would fit everybody").hint("leave it out if that is meant")
			}
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		v.fail(e.key, e.path, "a list without rules would let nobody in").hint("leave it out, or disable the server")
	}
	return rules
}

// filter reads allow and deny, or a list of those to allow. Unlike at the
// server, an empty list allows nothing: the rule says what somebody may use.
func (v *values) filter(key string) *Filter {
	e, ok := v.entries[key]
	if !ok {
		return nil
	}
	if e.value.kind == kindList {
		return &Filter{Allow: v.list(key)}
	}
	inner := &values{reader: v.reader, entries: v.fields(e.value, ScopeTools, e.path), raw: v.raw}
	return &Filter{Allow: inner.list("allow"), Deny: inner.list("deny")}
}

// credentials reads how Signalbox logs in to a server.
func (v *values) credentials() *Credentials {
	e, ok := v.entries["client-credentials"]
	if !ok {
		return nil
	}
	inner := &values{reader: v.reader, entries: v.fields(e.value, ScopeOAuth, e.path), raw: v.raw}
	c := &Credentials{
		TokenURL: inner.text("token-url"), ClientID: inner.text("client-id"), ClientSecret: inner.text("client-secret"),
		Audience: inner.text("audience"), Scopes: inner.list("scopes"),
	}
	if v.raw {
		return c
	}
	for _, key := range []string{"token-url", "client-id", "client-secret"} {
		if !inner.has(key) {
			v.fail(e.key, e.path, "%s is missing", key)
		}
	}
	if t, has := inner.entries["token-url"]; has && c.TokenURL != "" {
		if wrong, hint := badURL(c.TokenURL); wrong != "" {
			v.fail(t.value.pos, t.path, "%s", wrong).hint(hint)
		}
	}
	return c
}
