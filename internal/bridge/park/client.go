package park

import (
	"bytes"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// client is what a request says of its sender.
type client struct {
	principal upstream.Principal // may be nil
	header    http.Header
	info      []byte // raw clientInfo; nil for none
	declares  capabilities
	can       capabilities // as the server knows it: what it declares, or nothing
	level     level        // of the log messages that it wants; 0: none
	group     string
	alone     bool
}

// capabilities are those of a client, as far as a server of the handshake era can
// know them. They are equal if their text is.
type capabilities struct {
	text                              string // for initialize, canonical
	form, url, sampling, tools, roots bool
}

// asks tells whether a server with these could ask its client something.
func (c *capabilities) asks() bool { return c.form || c.url || c.sampling || c.roots }

func (s *Server) readClient(req *upstream.Request) (*client, error) {
	m := &req.Msg
	c := &client{principal: req.Principal, header: ownHeader(req.Header)}
	if info := m.Bytes(m.P.MetaClientInfo); len(info) > 0 && info[0] == '{' {
		c.info = bytes.Clone(info)
	}
	if tok := m.Bytes(m.P.MetaLogLevel); tok != nil && string(tok) != "null" {
		name, _ := wire.Unquote(tok)
		if c.level = levelOf(name); c.level == 0 {
			return nil, upstream.Errorf(mcp.CodeInvalidParams, "level", "unknown log level in _meta.%q", mcp.MetaLogLevel)
		}
	}
	can, err := readCapabilities(m.Raw, m.P.MetaClientCaps)
	if err != nil {
		return nil, err
	}
	c.declares, c.can = can, can
	if s.cfg.Shared {
		c.can = capabilities{text: "{}"}
	}
	c.alone = s.cfg.Alone != nil && s.cfg.Alone(*req)
	if !c.alone {
		scope := ""
		if s.cfg.Scope != nil {
			scope = s.cfg.Scope(*req)
		}
		c.group = groupKey(req.Principal, scope)
	}
	return c, nil
}

// ownHeader is header without what repeats arguments for those who do not read
// bodies: a server of the handshake era does not know it.
func ownHeader(header http.Header) http.Header {
	param := func(name string) bool { return strings.HasPrefix(name, mcp.HeaderParamPrefix) }
	for name := range header {
		if !param(name) {
			continue
		}
		header = header.Clone()
		maps.DeleteFunc(header, func(name string, _ []string) bool { return param(name) })
		break
	}
	return header
}

// who names the principal where calls are counted; "" for nobody.
func (c *client) who() string {
	if c.principal == nil {
		return ""
	}
	return c.principal.Key()
}

// request is a request or notification of Signalbox itself for this client.
func (c *client) request(raw []byte) (upstream.Request, error) {
	msg, err := wire.Parse(raw)
	if err != nil {
		return upstream.Request{}, err
	}
	req := upstream.NewRequest(msg)
	req.Principal, req.Header = c.principal, c.header
	return req, nil
}

func badCapabilities(why string) error {
	return upstream.Errorf(mcp.CodeInvalidParams, "capabilities", "_meta.%q: %s", mcp.MetaClientCapabilities, why)
}

// readCapabilities maps what a request of 2026-07-28 declares to what initialize
// of 2025-11-25 can say: extensions and experimental things are left out, roots
// without listChanged, and elicitation without a mode is that by form.
func readCapabilities(raw []byte, at wire.Span) (c capabilities, err error) {
	if !at.Present() || raw[at.Start] != '{' {
		return c, badCapabilities("missing, or no object")
	}
	top, err := members(raw, at, "elicitation", "roots", "sampling")
	if err != nil {
		return c, err
	}
	text := []byte{'{'}
	add := func(name string, in []byte) {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), name...), `":`...)
		text = append(text, in...)
	}
	object := func(of wire.Span, names ...string) ([]wire.Span, []byte, error) {
		inner, err := members(raw, of, names...)
		if err != nil {
			return nil, nil, err
		}
		out := []byte{'{'}
		for i, v := range inner {
			if !v.Present() {
				continue
			}
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(append(out, '"'), names[i]...), `":`...)
			out = canonical(out, raw, v)
		}
		return inner, append(out, '}'), nil
	}
	if top[0].Present() {
		modes, in, err := object(top[0], "form", "url")
		if err != nil {
			return c, err
		}
		c.url = modes[1].Present()
		c.form = modes[0].Present() || !c.url
		if string(in) == "{}" {
			in = []byte(`{"form":{}}`)
		}
		add("elicitation", in)
	}
	if c.roots = top[1].Present(); c.roots {
		add("roots", []byte("{}"))
	}
	if c.sampling = top[2].Present(); c.sampling {
		parts, in, err := object(top[2], "context", "tools")
		if err != nil {
			return c, err
		}
		c.tools = parts[1].Present()
		add("sampling", in)
	}
	c.text = string(append(text, '}'))
	return c, nil
}

// members finds members of an object whose values are objects; null is none.
func members(raw []byte, of wire.Span, names ...string) ([]wire.Span, error) {
	found := make([]wire.Span, len(names))
	if _, err := wire.Pick(found, raw, of.Start, names...); err != nil {
		return nil, badCapabilities(err.Error())
	}
	for i, v := range found {
		switch {
		case !v.Present() || raw[v.Start] == '{':
		case string(v.Of(raw)) == "null":
			found[i] = wire.Span{}
		default:
			return nil, badCapabilities(names[i] + " is no object")
		}
	}
	return found, nil
}

// canonical appends a value without white space, members in order of their names.
func canonical(dst, raw []byte, at wire.Span) []byte {
	switch raw[at.Start] {
	case '[':
		dst = append(dst, '[')
		for e := range wire.Elements(raw, at.Start) {
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			dst = canonical(dst, raw, e)
		}
		return append(dst, ']')
	case '{':
		var all [][]byte
		for name, value := range wire.Members(raw, at.Start) {
			all = append(all, canonical(append(bytes.Clone(name.Of(raw)), ':'), raw, value))
		}
		slices.SortStableFunc(all, bytes.Compare)
		return append(append(append(dst, '{'), bytes.Join(all, []byte{','})...), '}')
	}
	return append(dst, at.Of(raw)...)
}

// level is how grave a log message is, from 1 on.
type level uint8

var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// levelOf is 0 for a name that is none.
func levelOf(name []byte) level { return level(slices.Index(levels[:], string(name)) + 1) }

func (v level) String() string { return levels[v-1] }
