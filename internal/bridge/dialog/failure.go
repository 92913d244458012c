package dialog

import (
	"slices"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// failure is an error response of the server. Spans are of Raw.
type failure struct {
	code    string // as it is written
	message string
	at      wire.Span // code
	data    wire.Span
}

func readFailure(msg *wire.Message) failure {
	var f failure
	f.at, _ = member(msg.Raw, msg.Error, "code")
	f.code = string(f.at.Of(msg.Raw))
	text, _ := member(msg.Raw, msg.Error, "message")
	message, _ := wire.Unquote(text.Of(msg.Raw))
	f.message = cut(message, 1<<10)
	f.data, _ = member(msg.Raw, msg.Error, "data")
	return f
}

// failed ends a call with the server's error in the words of the handshake era.
// Codes that the era does not have are not shown.
func (k *call) failed(msg *wire.Message, buffer []byte) {
	f := readFailure(msg)
	name := k.c.srv.cfg.Name
	switch f.code {
	case "-32020":
		k.mismatch(&f)
		return
	case "-32021":
		k.unable(upstream.Errorf(mcp.CodeInternal, "capability",
			"the server %q needs a client with %s for this, which the client has not declared", name, required(msg.Raw, f.data)))
		return
	case "-32022":
		k.end(upstream.Errorf(mcp.CodeInternal, "era",
			"the server %q does not speak MCP %s%s; a new session may find out what it speaks now", name, mcp.R20260728, supported(msg.Raw, f.data)))
		return
	}
	if k.method == mcp.Initialize {
		if f.code == "-32601" {
			k.end(upstream.Errorf(mcp.CodeInternal, "era",
				"the server %q does not know server/discover, so it is none of MCP %s; set era: legacy for it", name, mcp.R20260728))
			return
		}
	}
	if !msg.ID.Present() {
		k.finish(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), k.id, []byte(`,"error":`), msg.Bytes(msg.Error), []byte("}")), nil)
		return
	}
	edits := k.restore(msg)
	if uri, _ := member(msg.Raw, f.data, "uri"); f.code == "-32602" && k.method == mcp.ResourcesRead && isString(msg.Raw, uri) {
		edits = sorted(append(edits, wire.Edit{Span: f.at, New: []byte("-32002")}))
	}
	if len(edits) > 0 {
		buffer = nil
	}
	k.finish(splice(msg.Raw, edits), buffer)
}

// mismatch is for a server that does not agree with the headers that were made
// for the request: the schema that they follow is out of date, or Signalbox is wrong.
// Either is none of the client's business.
func (k *call) mismatch(f *failure) {
	c := k.c
	c.mu.Lock()
	first := !k.refreshed
	k.refreshed = true
	c.mu.Unlock()
	if k.method != mcp.ToolsCall || c.srv.cfg.Refresh == nil || !first {
		k.end(headers(f.message))
		return
	}
	list, err := c.own("tools/list", nil, k.from)
	if err != nil {
		k.end(err)
		return
	}
	c.srv.count.headers.Inc()
	c.srv.cfg.Refresh(list, func(err error) {
		if err != nil {
			k.end(headers(f.message + "; its list of tools could not be read: " + err.Error()))
			return
		}
		k.proceed()
	})
}

func headers(why string) error {
	return upstream.Errorf(mcp.CodeInternal, "headers", "the server refused the headers that Signalbox made from the request: %s", why)
}

// required names the capabilities in error.data.requiredCapabilities, like "the
// capability elicitation.url and sampling".
func required(raw []byte, data wire.Span) string {
	caps, _ := member(raw, data, "requiredCapabilities")
	if !isObject(raw, caps) {
		return "a capability that it does not name"
	}
	var names []string
	for key, value := range wire.Members(raw, caps.Start) {
		name, _ := wire.Unquote(key.Of(raw))
		of := len(names)
		if isObject(raw, value) {
			for sub := range wire.Members(raw, value.Start) {
				part, _ := wire.Unquote(sub.Of(raw))
				names = append(names, string(name)+"."+string(part))
			}
		}
		if len(names) == of {
			names = append(names, string(name))
		}
	}
	return "the capability " + cut([]byte(strings.Join(names, " and ")), 256)
}

// supported names the versions in error.data.supported.
func supported(raw []byte, data wire.Span) string {
	list, _ := member(raw, data, "supported")
	return listed(texts(raw, list))
}

// listed is the end of a sentence that says what a server does not speak.
func listed(versions []string) string {
	if len(versions) == 0 {
		return ""
	}
	return ", but " + cut([]byte(strings.Join(versions, ", ")), 256)
}

// texts are the strings of an array.
func texts(raw []byte, list wire.Span) (all []string) {
	if !list.Present() || raw[list.Start] != '[' {
		return nil
	}
	for e := range wire.Elements(raw, list.Start) {
		if s, ok := wire.Unquote(e.Of(raw)); ok {
			all = append(all, string(s))
		}
	}
	return all
}
