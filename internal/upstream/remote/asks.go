package remote

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// What the server sends beside replies, and what that does to the time that
// calls have: progress starts it anew, and it stands still while the client owes
// the server an answer.

// pass delivers a notification or request on the call's stream: to the call's
// client, or where that reads plain JSON, to the session's own stream.
func (k *call) pass(t target, msg *wire.Message) {
	f := upstream.Frame{Data: msg.Raw, Method: mcp.MethodOf(msg.MethodName())}
	if f.Method == mcp.NotifProgress {
		k.progressed()
	}
	if k.c.lone {
		f.Address = t.addr.key
		k.own(f, msg)
		return
	}
	k.c.deliver(t, k, f, msg)
}

// deliver finds a reader for a frame: the call's, if it came for one, else the
// session's own. A request that nobody can take is answered, so that the server
// does not wait; one that a client has is owed.
func (c *conn) deliver(t target, k *call, f upstream.Frame, msg *wire.Message) {
	isRequest := msg.Kind == wire.Request
	id := append([]byte(nil), msg.Bytes(msg.ID)...) // the frame's bytes are a sink's when it has taken them
	key := idKey(id)
	switch {
	case isRequest && f.Method != mcp.Ping:
		c.ask(key, k) // before a client can answer
	case f.Method == mcp.NotifCancelled:
		c.settled(idKey(msg.Bytes(msg.P.RequestID)))
	}
	switch seen := c.offer(k, f); {
	case seen == upstream.Own || seen == upstream.Loose || !isRequest:
	case seen == upstream.Waiting:
		c.settled(key) // no client has read it
	case f.Method == mcp.Ping:
		c.answer(t, wire.AppendResult(nil, id, []byte("{}")))
	default:
		c.settled(key)
		c.answer(t, upstream.ErrorReply(id, upstream.Errorf(mcp.CodeMethodNotFound, "no_client", "the client has no stream open that could take this request")))
	}
}

// offer tells by which relation the frame was taken; 0: by nobody.
func (c *conn) offer(k *call, f upstream.Frame) upstream.Relation {
	f.Relation = upstream.Own
	if f.Method == mcp.Ping { // for who is there at this moment
		f.Relation = upstream.Loose
	}
	if k != nil && k.sink.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	f.Relation = upstream.Loose
	if c.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	if f.Method == mcp.Ping || f.Method == mcp.NotifProgress {
		return 0 // means nothing later
	}
	f.Relation = upstream.Waiting
	if c.events.Deliver(f) == upstream.Taken {
		return f.Relation
	}
	return 0
}

// answer is Signalbox's own, to a request of the server.
func (c *conn) answer(t target, raw []byte) {
	msg, err := wire.Parse(raw)
	if err == nil {
		_, err = c.postTo(t, upstream.NewRequest(msg))
	}
	if err != nil {
		c.srv.cfg.Log.Debug("answer to the server not sent", "err", err)
	}
}

// byToken is the one open call with a progress token.
func (c *conn) byToken(token []byte) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	var hit *call
	for k := range c.calls {
		if k.token == nil || !sameID(k.token, token) {
			continue
		}
		if hit != nil {
			return nil
		}
		hit = k
	}
	return hit
}

// maxAsks bounds what is remembered of a server that asks and asks.
const maxAsks = 1024

// ask notes what a client is about to owe the server. Clocks stop with the first.
func (c *conn) ask(key string, k *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || len(c.asks) >= maxAsks {
		return
	}
	if c.asks == nil {
		c.asks = make(map[string]*call)
	}
	c.asks[key] = k
	if len(c.asks) == 1 {
		c.owed = time.Now()
		c.armAllLocked()
	}
}

func (c *conn) settled(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settledLocked(key)
}

func (c *conn) settledLocked(key string) {
	if _, ok := c.asks[key]; !ok {
		return
	}
	delete(c.asks, key)
	c.resumeLocked()
}

// forgetAsksLocked: what the server asked on behalf of a call that is over
// needs no answer.
func (c *conn) forgetAsksLocked(k *call) {
	if len(c.asks) == 0 {
		return
	}
	for key, of := range c.asks {
		if of == k {
			delete(c.asks, key)
		}
	}
	c.resumeLocked()
}

// resumeLocked starts the clocks again when nothing is owed any more. A call
// that began, or had progress, meanwhile has its whole time left.
func (c *conn) resumeLocked() {
	if len(c.asks) > 0 {
		return
	}
	now := time.Now()
	for k := range c.calls {
		if !k.idleAt.IsZero() && k.method != mcp.Initialize {
			k.idleAt = now.Add(min(k.idleAt.Sub(c.owed), c.srv.cfg.CallTimeout))
		}
	}
	c.armAllLocked()
}

func (c *conn) armAllLocked() {
	for k := range c.calls {
		k.hold.deadlines(k.wakeLocked(), k.expiresLocked())
	}
}

// arm bounds what the call waits for on its connection.
func (k *call) arm() {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	k.hold.deadlines(k.wakeLocked(), k.expiresLocked())
}

func (k *call) expires() time.Time {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	return k.expiresLocked()
}

// wakeLocked is when whoever waits on the connection has to look up.
func (k *call) wakeLocked() time.Time {
	t := k.expiresLocked()
	if !k.until.IsZero() && (t.IsZero() || k.until.Before(t)) {
		return k.until
	}
	return t
}

// expiresLocked is when the call runs out if nothing happens; zero: never.
func (k *call) expiresLocked() time.Time {
	if k.idleAt.IsZero() || k.limitAt.Before(k.idleAt) || len(k.c.asks) > 0 && k.method != mcp.Initialize {
		return k.limitAt
	}
	return k.idleAt
}

// progressed starts the call's time anew.
func (k *call) progressed() {
	k.c.mu.Lock()
	defer k.c.mu.Unlock()
	if k.idleAt.IsZero() || k.method == mcp.Initialize {
		return
	}
	k.idleAt = time.Now().Add(k.c.srv.cfg.CallTimeout)
	k.hold.deadlines(k.wakeLocked(), k.expiresLocked())
}
