package dialog

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// profile is what a client says once, in initialize, and what each request of
// the per-request era repeats.
type profile struct {
	revision mcp.Revision // negotiated with the client
	can      capabilities
	meta     []byte // members of params._meta: version, capabilities and client
}

// capabilities are the questions that a client can be asked: it declared them, and
// its revision has them.
type capabilities struct{ form, url, sampling, tools, roots bool }

// readProfile reads initialize. A version that is none of the handshake era is
// answered with the newest that is (2025-11-25, basic/lifecycle).
func readProfile(init *wire.Message, version string) profile {
	p := profile{revision: mcp.NewestHandshake}
	asked, _ := wire.Unquote(init.Bytes(init.P.ProtocolVersion))
	if r := mcp.Revision(asked); r.Handshake() {
		p.revision = r
	}
	declared := []byte("{}")
	if isObject(init.Raw, init.P.Capabilities) {
		declared = p.declare(init.Raw, init.P.Capabilities)
	}
	p.meta = append(p.meta, `"`+mcp.MetaVersion+`":"`+string(mcp.R20260728)+`","`+mcp.MetaClientCapabilities+`":`...)
	p.meta = append(p.meta, declared...)
	p.meta = append(p.meta, `,"`+mcp.MetaClientInfo+`":`...)
	if isObject(init.Raw, init.P.ClientInfo) {
		p.meta = append(p.meta, init.Bytes(init.P.ClientInfo)...)
	} else {
		p.meta = append(p.meta, `{"name":"signalbox","version":`...)
		p.meta = append(wire.AppendQuote(p.meta, version), '}')
	}
	return p
}

// declare returns the client's capabilities in the shape of the per-request
// era and notes what they are. What the client's revision does not have goes: a
// server must not ask for it. So do extensions, for those of the server are not
// shown to the client either, and it takes two to agree on one.
func (p *profile) declare(raw []byte, caps wire.Span) []byte {
	edits, _ := wire.EditMembers(raw, caps.Start, func(name []byte, value wire.Span) verdict {
		switch string(name) {
		case "tasks", "extensions":
			return goes
		case "roots", "sampling", "elicitation":
			if !isObject(raw, value) {
				return goes // declares nothing
			}
		}
		switch string(name) {
		case "roots":
			p.can.roots = true
			return without(raw, value, "listChanged")
		case "sampling":
			p.can.sampling = true
			if !p.revision.AtLeast(mcp.R20251125) {
				return without(raw, value, "tools", "context")
			}
			p.can.tools = has(raw, value, "tools")
		case "elicitation":
			return p.elicitation(raw, value)
		}
		return stays
	})
	return within(raw, caps, edits)
}

func (p *profile) elicitation(raw []byte, value wire.Span) verdict {
	if !p.revision.AtLeast(mcp.R20250618) {
		return goes
	}
	if !p.revision.AtLeast(mcp.R20251125) { // has forms only
		p.can.form = true
		return without(raw, value, "url")
	}
	p.can.url = has(raw, value, "url")
	p.can.form = !p.can.url || has(raw, value, "form") // {} means forms
	return stays
}

// without is the verdict that takes members out of an object.
func without(raw []byte, object wire.Span, names ...string) verdict {
	edits, _ := wire.EditMembers(raw, object.Start, func(name []byte, _ wire.Span) verdict {
		for _, n := range names {
			if string(name) == n {
				return goes
			}
		}
		return stays
	})
	return verdict{Edits: edits}
}

// has tells whether the object has a member that is not null.
func has(raw []byte, object wire.Span, name string) bool {
	value, ok := member(raw, object, name)
	return ok && raw[value.Start] != 'n'
}

// member finds the first member of that name, if there is an object.
func member(raw []byte, object wire.Span, name string) (wire.Span, bool) {
	if !isObject(raw, object) {
		return wire.Span{}, false
	}
	for key, value := range wire.Members(raw, object.Start) {
		if n, _ := wire.Unquote(key.Of(raw)); string(n) == name {
			return value, true
		}
	}
	return wire.Span{}, false
}
