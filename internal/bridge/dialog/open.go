package dialog

import (
	"slices"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// offers are what the server sends unasked to those who listen.
type offers struct{ tools, prompts, resources, subscribe bool }

func (o offers) lists() bool { return o.tools || o.prompts || o.resources }

// discover asks the server what it is. The call is the client's initialize.
func (c *conn) discover(init *upstream.Request, reply upstream.Sink) error {
	id := init.Msg.Bytes(init.Msg.ID)
	msg, err := wire.Parse(slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), id, []byte(`,"method":"server/discover"}`)))
	if err != nil {
		return err
	}
	k := newCall(c, init, reply)
	k.msg = msg
	if err := k.enter(); err != nil {
		return err
	}
	if err = k.ask(); err == nil {
		return nil
	}
	c.mu.Lock()
	if c.ended != nil { // Close was faster, and has told the sinks
		c.mu.Unlock()
		return nil
	}
	c.ended = err
	k.takeLocked(err)
	c.mu.Unlock()
	return err
}

// discovered answers initialize from the server's answer to server/discover.
func (k *call) discovered(msg *wire.Message) {
	c, raw := k.c, msg.Raw
	versions, _ := member(raw, msg.Result, "supportedVersions")
	if speaks := texts(raw, versions); !slices.Contains(speaks, string(mcp.R20260728)) {
		k.end(upstream.Errorf(mcp.CodeInternal, "era", "the server %q does not speak MCP %s%s",
			c.srv.cfg.Name, mcp.R20260728, listed(speaks)))
		return
	}
	out := slices.Concat([]byte(`{"protocolVersion":"`+string(c.said.revision)+`","capabilities":`), c.readOffers(raw, msg.Result))
	out = append(out, `,"serverInfo":`...)
	meta, _ := member(raw, msg.Result, "_meta")
	if info, _ := member(raw, meta, mcp.MetaServerInfo); isObject(raw, info) {
		out = append(out, info.Of(raw)...)
	} else {
		out = wire.AppendQuote(append(out, `{"name":`...), c.srv.cfg.Name)
		out = append(out, `,"version":""}`...)
	}
	if text, _ := member(raw, msg.Result, "instructions"); isString(raw, text) {
		out = append(append(out, `,"instructions":`...), text.Of(raw)...)
	}
	k.result(append(out, '}'))
}

// readOffers notes what the server offers and returns its capabilities without
// those that only two sides of the per-request era can use.
func (c *conn) readOffers(raw []byte, result wire.Span) []byte {
	caps, _ := member(raw, result, "capabilities")
	if !isObject(raw, caps) {
		return []byte("{}")
	}
	is := func(capability, flag string) bool {
		object, _ := member(raw, caps, capability)
		value, _ := member(raw, object, flag)
		return string(value.Of(raw)) == "true"
	}
	c.mu.Lock()
	c.offers = offers{
		tools: is("tools", "listChanged"), prompts: is("prompts", "listChanged"),
		resources: is("resources", "listChanged"), subscribe: is("resources", "subscribe"),
	}
	c.mu.Unlock()
	return within(raw, caps, without(raw, caps, "extensions", "tasks").Edits)
}

// own is a request of Signalbox itself for the session, under an id of its own.
// members are those of params, without _meta.
func (c *conn) own(method string, members []byte, from origin) (upstream.Request, error) {
	raw := slices.Concat([]byte(`{"jsonrpc":"2.0","id":"`+mint()+`","method":"`+method+`","params":{`), members)
	if len(members) > 0 {
		raw = append(raw, ',')
	}
	raw = slices.Concat(raw, object("_meta", c.said.meta), []byte("}}"))
	msg, err := wire.Parse(raw)
	if err != nil {
		return upstream.Request{}, err
	}
	req := upstream.NewRequest(msg)
	req.Principal, req.Header = from.principal, from.header
	return req, nil
}
