package dialog

import (
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// Bounds of what one session can watch.
const (
	maxWatched = 1024
	maxURI     = 8 << 10 // bytes
)

// watch serves resources/subscribe and resources/unsubscribe: they change what
// the session listens to, and are answered when the server has agreed.
func (c *conn) watch(k *call, req *upstream.Request) error {
	name, ok := wire.Unquote(req.Msg.Bytes(req.Msg.P.URI))
	if !ok || len(name) > maxURI {
		return upstream.Errorf(mcp.CodeInvalidParams, "uri", "params.uri is missing, no string, or longer than %d bytes", maxURI)
	}
	if err := k.enter(); err != nil {
		return err
	}
	c.mu.Lock()
	now, err := c.watchLocked(k, string(name), req)
	c.mu.Unlock()
	if err != nil {
		if k.take(err) {
			return err
		}
		return nil
	}
	now.run()
	return nil
}

func (c *conn) watchLocked(k *call, uri string, req *upstream.Request) (todo, error) {
	l := &c.listening
	on := k.method == mcp.ResourcesSubscribe
	_, watched := l.uris[uri]
	switch {
	case k.over != nil:
		return todo{}, nil
	case !c.offers.subscribe:
		return todo{}, upstream.Errorf(mcp.CodeMethodNotFound, "not_offered", "the server %q does not offer to watch resources", c.srv.cfg.Name)
	case on && watched && l.cur != nil && l.cur.agreed[uri] && l.next == nil, !on && !watched:
		return todo{settle: []settled{{k: k}}}, nil
	case on && !watched && len(l.uris) >= maxWatched:
		return todo{}, upstream.Errorf(mcp.CodeServer, "subscription_limit", "this session watches as many resources as one session may (%d)", maxWatched)
	case on:
		l.uris[uri] = struct{}{}
	default:
		delete(l.uris, uri)
	}
	l.from = originOf(req)
	k.watching = &watching{k: k, uri: uri, on: on}
	l.waiting = append(l.waiting, k.watching)
	return c.changedLocked(), nil
}
