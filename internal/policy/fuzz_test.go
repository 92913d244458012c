package policy

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// values are all that an object has under names equal to want in any case, as
// readers that take the first or the last, and fold or not, may pick them.
func values(raw json.RawMessage, want string) (all []json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return nil
	}
	for d.More() {
		name, err := d.Token()
		var v json.RawMessage
		if err != nil || d.Decode(&v) != nil {
			return all
		}
		if strings.EqualFold(name.(string), want) {
			all = append(all, v)
		}
	}
	return all
}

// offered are the names of all elements that any reader may see in a reply.
func offered(reply []byte) (names []string) {
	for _, result := range values(reply, "result") {
		for _, list := range values(result, "tools") {
			var elements []json.RawMessage
			_ = json.Unmarshal(list, &elements)
			for _, e := range elements {
				for _, v := range values(e, "name") {
					var name string
					if json.Unmarshal(v, &name) == nil {
						names = append(names, name)
					}
				}
			}
		}
	}
	return names
}

// FuzzList: no reader sees a tool that is not allowed, whatever the server
// wrote; and what is allowed in a list that all read alike is there.
func FuzzList(f *testing.F) {
	for _, s := range []string{
		response(`{"tools":[{"name":"ok"},{"name":"no"},{"name":"okdenied"}]}`),
		response(`{"tools":[{"name":"ok","Name":"no"}],"nextCursor":"x","ttlMs":1}`),
		response(`{"tools":[{"name":"ok","n\u0061me":"no"}],"Tools":[{"name":"no"}]}`),
		response(`{"tools":[{"name":"no\ud800","x":[{"name":"no"}]} , {"y":"\\\"]}","name":"ok"}], "cacheScope" : "public"}`),
		response(`{"toolſ":[{"name":"no"}],"tools":[]}`),
		`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
		"\xef\xbb\xbf {\"result\":{\"tools\":[]},\"id\":1,\"jsonrpc\":\"2.0\",\"Result\":{\"tools\":[{\"name\":\"no\"}]}}",
	} {
		f.Add([]byte(s))
	}
	personal := rules()
	personal.Shared = false
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		for _, r := range []*Rules{rules(), personal} {
			out, err := r.sieveFor(mcp.ToolsList).apply(in)
			if !bytes.Equal(in, before) {
				t.Fatal("the reply was written into")
			}
			if err != nil {
				continue
			}
			if !json.Valid(bytes.TrimPrefix(out, []byte("\xef\xbb\xbf"))) {
				t.Fatalf("no JSON came out: %q", out)
			}
			out = bytes.TrimPrefix(out, []byte("\xef\xbb\xbf"))
			seen := offered(out)
			for _, name := range seen {
				if !r.Tools.Allows(name) {
					t.Fatalf("%q is offered\n in %q\nout %q", name, in, out)
				}
			}
			allowed := 0
			for _, name := range offered(bytes.TrimPrefix(in, []byte("\xef\xbb\xbf"))) {
				if r.Tools.Allows(name) {
					allowed++
				}
			}
			if len(seen) != allowed {
				t.Fatalf("%d of %d allowed tools\n in %q\nout %q", len(seen), allowed, in, out)
			}
			again, err := r.sieveFor(mcp.ToolsList).apply(out)
			if err != nil || !bytes.Equal(again, out) {
				t.Fatalf("filtering twice differs: %v\nout %q\nand %q", err, out, again)
			}
		}
	})
}

// FuzzRequest: no reader of a request that arrives finds a name in it that is
// not allowed.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		message("tools/call", `{"name":"ok","arguments":{}}`), message("tools/call", `{"n\u0061me":"\u006eo"}`),
		message("prompts/get", `{"name":"ok\ud800"}`), message("resources/read", `{"uri":"ok:a%2f.."}`),
		message("completion/complete", `{"ref":{"type":"ref/prompt","name":"ok"},"argument":{}}`),
		message("completion/complete", `{"ref":{"type":"ref/resource","uri":"ok:{a}"}}`),
		message("subscriptions/listen", `{"notifications":{"resourceSubscriptions":["ok:a","no:b"]}}`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		msg, err := wire.Parse(in)
		if err != nil {
			return
		}
		g := &guard{rules: rules(), refusals: newRefusals(&Config{Metrics: NewMetrics(), Log: slog.New(slog.DiscardHandler)})}
		req := upstream.NewRequest(msg)
		if g.refuse(&req) != nil {
			return
		}
		check := func(objects []json.RawMessage, member string, allows func([]byte) bool) {
			for _, o := range objects {
				for _, v := range values(o, member) {
					var name string
					if json.Unmarshal(v, &name) != nil || !allows([]byte(name)) {
						t.Fatalf("%s arrived", in)
					}
				}
			}
		}
		params := values(msg.Raw, "params")
		r := g.rules
		switch req.Method {
		case mcp.ToolsCall:
			check(params, "name", r.Tools.allows)
		case mcp.PromptsGet:
			check(params, "name", r.Prompts.allows)
		case mcp.ResourcesRead:
			check(params, "uri", r.Resources.allowsURI)
		case mcp.CompletionComplete:
			ref := values(params[0], "ref")
			var kind string
			_ = json.Unmarshal(values(ref[0], "type")[0], &kind)
			if kind == "ref/prompt" {
				check(ref, "name", r.Prompts.allows)
			} else {
				check(ref, "uri", r.Resources.allowsTemplate)
			}
		case mcp.SubscriptionsListen:
			for _, list := range values(values(params[0], "notifications")[0], "resourceSubscriptions") {
				var uris []string
				if json.Unmarshal(list, &uris) != nil || slices.ContainsFunc(uris, func(u string) bool { return !r.Resources.allowsURI([]byte(u)) }) {
					t.Fatalf("%s arrived", in)
				}
			}
		}
	})
}

// FuzzTemplate: a template that is allowed expands to URIs that are.
func FuzzTemplate(f *testing.F) {
	f.Add("ok:*", "*secret*", "ok:{a}/b{?c}", "x")
	f.Add("a?c*", "a%20b", "a{b}%C3%BC", "")
	f.Add("*", "x*%73", "x%{y}", "s")
	f.Fuzz(func(t *testing.T, allow, deny, template, value string) {
		filter := NewFilter([]string{allow}, []string{deny})
		if !filter.allowsTemplate([]byte(template)) {
			return
		}
		uri, open := "", false
		for _, r := range template {
			switch {
			case r == '{':
				open = true
				uri += value
			case r == '}':
				open = false
			case !open:
				uri += string(r)
			}
		}
		// What cannot stand in a URI, or makes it stray, is for the call to refuse.
		if strings.Contains(template+value, "%") || strays([]byte(uri)) || !isName([]byte(uri)) || !utf8.ValidString(uri) {
			return
		}
		if !filter.allowsURI([]byte(uri)) {
			t.Fatalf("allow %q deny %q: template %q, but not %q", allow, deny, template, uri)
		}
	})
}
