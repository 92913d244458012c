package park

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// kinds are the lists whose changes a listen wants, or gets.
type kinds struct{ tools, prompts, resources bool }

func (k kinds) has(m mcp.Method) bool {
	switch m {
	case mcp.NotifToolsListChanged:
		return k.tools
	case mcp.NotifPromptsListChanged:
		return k.prompts
	case mcp.NotifResourcesListChanged:
		return k.resources
	}
	return false
}

// change is one thing that a client is told of.
type change struct {
	method mcp.Method
	uri    string // of notifications/resources/updated
	token  []byte // the same, as the server wrote it
}

// agreed are the members of the acknowledgement's notifications.
func (n *listen) agreed() []byte {
	var text []byte
	member := func(name string, value []byte) {
		if len(text) > 0 {
			text = append(text, ',')
		}
		text = append(append(append(text, '"'), name...), `":`...)
		text = append(text, value...)
	}
	for _, k := range []struct {
		name string
		on   bool
	}{{"toolsListChanged", n.gets.tools}, {"promptsListChanged", n.gets.prompts}, {"resourcesListChanged", n.gets.resources}} {
		if k.on {
			member(k.name, []byte("true"))
		}
	}
	if len(n.watches) > 0 {
		list := []byte{'['}
		for _, r := range n.uris {
			if _, ok := n.watches[r.uri]; !ok {
				continue
			}
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = append(list, r.token...)
		}
		member("resourceSubscriptions", append(list, ']'))
	}
	return text
}

// missedLocked tells the client of everything that may have changed while there
// was no session.
func (n *listen) missedLocked(l *later) {
	for _, m := range []mcp.Method{mcp.NotifToolsListChanged, mcp.NotifPromptsListChanged, mcp.NotifResourcesListChanged} {
		n.tellLocked(change{method: m}, l)
	}
	for _, r := range n.uris {
		n.tellLocked(change{mcp.NotifResourcesUpdated, r.uri, r.token}, l)
	}
}

// changedLocked tells the group's listens of a change that one of its sessions saw.
func (g *group) changedLocked(method mcp.Method, m *wire.Message, l *later) {
	c := change{method: method}
	if method == mcp.NotifResourcesUpdated {
		c.token = m.Bytes(m.P.URI)
		uri, ok := wire.Unquote(c.token)
		if !ok || len(uri) > maxURI {
			return
		}
		c.uri = string(uri)
	}
	for n := range g.listens {
		n.tellLocked(c, l)
	}
}

// tellLocked passes a change to the client if it asked for it; before the
// acknowledgement it waits for that.
func (n *listen) tellLocked(c change, l *later) {
	switch {
	case n.over:
		return
	case !n.acked:
		for _, e := range n.early {
			if e.method == c.method && e.uri == c.uri {
				return
			}
		}
		if len(n.early) < maxURIs {
			n.early = append(n.early, c)
		}
		return
	case c.method == mcp.NotifResourcesUpdated && !covers(n.watches, c.uri),
		c.method != mcp.NotifResourcesUpdated && !n.gets.has(c.method):
		return
	}
	text := []byte(`{"jsonrpc":"2.0","method":"` + c.method.String() + `","params":{`)
	if c.token != nil {
		text = append(append(append(text, `"uri":`...), c.token...), ',')
	}
	text = append(append(append(text, `"_meta":{"`+mcp.MetaSubscription+`":`...), n.id...), "}}}"...)
	n.sendLocked(c.method, text, l)
}

// covers tells whether uri is watched, or lies under one that is (MCP 2025-11-25,
// resources: "might be a sub-resource").
func covers(watched map[string]struct{}, uri string) bool {
	if _, ok := watched[uri]; ok {
		return true
	}
	for i := range len(uri) {
		if i == 0 || uri[i] != '/' && uri[i-1] != '/' {
			continue
		}
		if _, ok := watched[uri[:i]]; ok {
			return true
		}
	}
	return false
}

func (n *listen) sendLocked(method mcp.Method, data []byte, l *later) {
	n.out.put(func() {
		n.sink.Deliver(upstream.Frame{Data: data, Method: method, Relation: upstream.Own})
	}, false, l)
}
