package stdio

import (
	"bytes"
	"slices"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// ask is an open request of the per-request era (2026-07-28,
// basic/transports/stdio).
type ask struct {
	upstream.Sink
	c  *client
	id []byte // raw token

	mu     sync.Mutex
	call   upstream.Call // nil until it is known
	doomed error         // it is to be cancelled then
}

// isPerRequest tells the era of a message, by its own words.
func isPerRequest(req *upstream.Request) bool { return req.Msg.P.MetaVersion.Present() }

// perRequest sends a request that stands for itself. A client of this era sends
// neither notifications, but for cancels, nor responses.
func (c *client) perRequest(req upstream.Request) {
	if req.Method == mcp.NotifCancelled && req.Msg.Kind == wire.Notification {
		c.cancelAsk(&req.Msg)
		return
	}
	if req.Msg.Kind != wire.Request {
		c.o.Log.Warn("message of the per-request era that is no request; dropped", "method", req.Method.String())
		return
	}
	id := req.Msg.Bytes(req.Msg.ID)
	err := upstream.CheckMeta(&req)
	server, ok := c.o.Server.(upstream.Asker)
	if err == nil && !ok {
		err = upstream.Errorf(mcp.CodeMethodNotFound, "era", "this server is reached by initialize only")
	}
	if err != nil {
		c.w.put(upstream.PerRequestErrorReply(id, err))
		return
	}
	s := c.newSink(&req)
	s.perRequest = true
	a := &ask{Sink: s, c: c, id: bytes.Clone(id)}
	c.mu.Lock()
	c.asked = append(c.asked, a)
	c.mu.Unlock()
	go a.run(server, req) // it may take the server a while to begin
}

func (a *ask) run(server upstream.Asker, req upstream.Request) {
	call, err := server.Ask(req, a)
	if err != nil {
		a.End(err)
		return
	}
	a.mu.Lock()
	a.call = call
	doomed := a.doomed
	a.mu.Unlock()
	if doomed != nil {
		call.Cancel(doomed)
	}
}

func (a *ask) cancel(reason error) {
	a.mu.Lock()
	call := a.call
	a.doomed = reason
	a.mu.Unlock()
	if call != nil {
		call.Cancel(reason)
	}
}

// End also forgets the request.
func (a *ask) End(reason error) {
	a.c.mu.Lock()
	a.c.asked = slices.DeleteFunc(a.c.asked, func(o *ask) bool { return o == a })
	a.c.mu.Unlock()
	a.Sink.End(reason)
}

// cancelAsk cancels the request of the per-request era that a cancel means; false:
// there is none, so that it is for the session.
func (c *client) cancelAsk(m *wire.Message) bool {
	id := m.Bytes(m.P.RequestID)
	c.mu.Lock()
	i := slices.IndexFunc(c.asked, func(a *ask) bool { return sameID(a.id, id) })
	var hit *ask
	if i >= 0 {
		hit = c.asked[i]
	}
	c.mu.Unlock()
	if hit == nil {
		return false
	}
	hit.cancel(upstream.ErrCancelled)
	return true
}

// sameID compares two raw ids by value and type: a string may be spelled in several
// ways.
func sameID(a, b []byte) bool {
	x, ok1 := wire.Unquote(a)
	y, ok2 := wire.Unquote(b)
	return bytes.Equal(a, b) || ok1 && ok2 && bytes.Equal(x, y)
}
