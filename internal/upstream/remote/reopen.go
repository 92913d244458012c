package remote

import (
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/h1"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// errRefused: the server can be reached, but does not open the session again as
// it was.
type errRefused struct{ error }

// reopen replays initialize, initialized, the log level and the subscriptions.
// While no address can be reached the session waits for better times.
func (c *conn) reopen(failed target) error {
	not := make(map[*address]bool)
	var last error = errNoAddress
	for {
		_ = c.srv.addrs.refresh(c.srv.ctx, true)
		a := c.srv.addrs.pick(not)
		if a == nil {
			return unreachable(last)
		}
		not[a] = true
		id, state, err := c.handshake(a)
		if err == nil && id.revision != failed.revision {
			err = errors.New("it negotiated another revision than before")
		}
		if err != nil {
			c.srv.addrs.release(a)
			if state == notSent {
				last = err
				continue
			}
			return errRefused{err}
		}
		c.srv.addrs.worked(a)
		own := target{addr: a, life: failed.life + 1}.named(id.session, id.revision)
		t, err := c.renewed(failed, own)
		if err != nil {
			c.srv.wg.Add(1)
			go c.goodbye(own)
			return err
		}
		st, ok := c.moveTo(t)
		if !ok {
			c.srv.wg.Add(1)
			go c.goodbye(t)
			return upstream.ErrClosed
		}
		if t == own { // else another process is at it
			c.srv.cfg.Log.Info("session opened anew at the server", "address", a.key)
			c.restore(t, st)
		}
		return nil
	}
}

// moveTo begins the session's new life; false: it has ended meanwhile.
func (c *conn) moveTo(t target) (upstream.State, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return upstream.State{}, false
	}
	c.srv.addrs.release(c.at.addr)
	c.at = t
	if len(c.asks) > 0 { // the old life's questions
		c.asks = nil
		c.resumeLocked()
	}
	c.lastEvent, c.noStream = "", false
	if l := c.listening; l != nil {
		l.hold.abort()
	}
	if c.listening = nil; c.wanted {
		c.listenLocked()
	}
	return c.stateLocked(t), true
}

func (c *conn) handshake(a *address) (names, sent, error) {
	head := appendLength([]byte(c.srv.heads.post), len(c.init))
	h, resp, state, err := c.srv.roundTrip(a, head, c.init, options{deadline: time.Now().Add(c.srv.cfg.StartTimeout), fresh: true})
	if err != nil {
		return names{}, state, err
	}
	defer a.pool.Put(h)
	msg, err := c.firstReply(resp)
	if err != nil {
		return names{}, mayBeRun, err
	}
	if !msg.Result.Present() {
		return names{}, mayBeRun, errors.New("it refused initialize" + errorText(&msg))
	}
	id, err := identity(resp, &msg)
	discard(h, resp)
	return id, mayBeRun, err
}

// restore sends again what the client had set. A server that refuses some of
// it is not told twice.
func (c *conn) restore(t target, st upstream.State) {
	until := time.Now().Add(c.srv.cfg.StartTimeout)
	for _, raw := range replayed(st) {
		if err := c.repeat(t, raw, until); err != nil {
			c.srv.cfg.Log.Warn("not all of a session could be set again at the server", "err", err)
		}
	}
}

func (c *conn) repeat(t target, raw []byte, until time.Time) error {
	head := appendLength(append([]byte(c.srv.heads.post), t.lines...), len(raw))
	o := options{deadline: until}
	h, resp, _, err := c.srv.roundTrip(t.addr, head, raw, o)
	if isStale(err) {
		o.fresh = true
		h, resp, _, err = c.srv.roundTrip(t.addr, head, raw, o)
	}
	if err != nil {
		return err
	}
	defer t.addr.pool.Put(h)
	if resp.Status >= 300 {
		return statusError(t, resp, nil)
	}
	if resp.Status == 200 && media(resp.ContentType) != "" {
		if _, err := c.firstReply(resp); err != nil {
			return err
		}
	}
	discard(h, resp)
	return nil
}

// firstReply reads the response out of an answer that is read whole.
func (c *conn) firstReply(resp *h1.Response) (wire.Message, error) {
	kind := media(resp.ContentType)
	switch {
	case resp.Status != 200:
		return wire.Message{}, statusError(target{}, resp, nil)
	case kind == "application/json":
		body, err := readAll(resp, c.srv.cfg.MaxMessage, nil)
		if err != nil {
			return wire.Message{}, err
		}
		return wire.Parse(body)
	case kind != "text/event-stream":
		return wire.Message{}, errors.New("it answered with neither JSON nor an event stream")
	}
	r := sse.NewReader(resp.Body, c.srv.cfg.MaxMessage)
	defer r.Release()
	for {
		e, err := r.Next()
		if err != nil {
			return wire.Message{}, err
		}
		if len(e.Data) == 0 || !e.IsMessage() {
			continue
		}
		if msg, err := wire.Parse(e.Data); err == nil && msg.Kind == wire.Response {
			return msg, nil
		}
	}
}
