package remote

import (
	"errors"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// listener follows what the server sends unasked, while the client listens.
type listener struct {
	// static
	c    *conn
	hold *hold

	at cursor // owned by run
}

// Listen follows the server's stream as long as the client listens.
func (c *conn) Listen(on bool) {
	c.mu.Lock()
	if via, ok := c.via.(upstream.Listener); ok {
		c.mu.Unlock()
		via.Listen(on)
		return
	}
	defer c.mu.Unlock()
	c.wanted = on
	switch {
	case c.via != nil || c.ended:
	case on && c.listening == nil && c.opened && !c.noStream:
		c.listenLocked()
	case !on && c.listening != nil:
		c.listening.hold.abort()
		c.listening = nil
	}
}

func (c *conn) listenLocked() {
	l := &listener{c: c, hold: newHold(), at: cursor{id: c.lastEvent}}
	c.listening = l
	c.srv.wg.Add(1)
	go l.run()
}

// run opens the stream, and again when it ends, until the client leaves or the
// server offers none.
func (l *listener) run() {
	defer l.c.srv.wg.Done()
	defer l.over()
	for {
		t, _, err := l.c.target(l.hold.gone, nil)
		if err != nil {
			return
		}
		began := time.Now()
		if !l.follow(t) || l.hold.aborted() {
			return
		}
		l.at.ended(began)
		if !l.c.srv.pause(l.at.backoff(), l.hold.gone) {
			return
		}
	}
}

func (l *listener) over() {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if l.c.listening == l {
		l.c.listening = nil
	}
}

// follow reads one stream to its end; false: there is none to be had.
func (l *listener) follow(t target) bool {
	h, resp, _, err := l.c.get(t, l.at.id, options{deadline: time.Now().Add(postTimeout), hold: l.hold})
	if err != nil {
		return true
	}
	defer l.hold.put(t.addr.pool, h)
	if resp.Status != 200 || media(resp.ContentType) != "text/event-stream" || encoded(resp) {
		if resp.Status != 200 {
			discard(h, resp)
		}
		return l.refused(resp.Status)
	}
	l.hold.deadlines(time.Time{}, time.Time{})
	r := sse.NewReader(resp.Body, l.c.srv.cfg.MaxMessage)
	defer r.Release()
	for {
		e, err := r.Next()
		if errors.Is(err, sse.ErrTooLarge) {
			l.c.srv.cfg.Log.Warn("event on the server's stream above the limit (--max-message); dropped")
			l.c.srv.dropped(dropOversize, mcp.Other)
			l.note(sse.Event{HasID: true, Retry: -1}) // or it would come again and again
		}
		if err != nil {
			return true
		}
		l.note(e)
		if len(e.Data) > 0 && e.IsMessage() {
			l.message(t, e.Data)
		}
	}
}

// refused tells whether it is worth asking again. 404 is found out by the next
// call: there are servers that mean 405 by it. 400 may mean that the event id
// is too old.
func (l *listener) refused(status int) bool {
	resumed := l.at.id != ""
	l.note(sse.Event{HasID: true, Retry: -1})
	if status == 405 {
		l.c.mu.Lock()
		l.c.noStream = true
		l.c.mu.Unlock()
	}
	return status >= 500 && status != 501 || status == 429 || status == 400 && (resumed || l.at.tries == 0)
}

// note remembers the place, for this listener and the next one.
func (l *listener) note(e sse.Event) {
	l.at.note(e)
	if !e.HasID {
		return
	}
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if l.c.listening == l { // not one of the session's old life
		l.c.lastEvent = e.ID
	}
}

// message passes on what came. Progress of a call belongs to that call, though
// its place is the call's own stream.
func (l *listener) message(t target, data []byte) {
	c := l.c
	msg, err := wire.Parse(data)
	if err != nil || msg.Kind == wire.Response {
		c.srv.cfg.Log.Warn("event on the server's stream that belongs to nobody; dropped", "bytes", len(data))
		reason := dropForeign
		if err != nil {
			reason = dropNoise
		}
		c.srv.dropped(reason, mcp.Other)
		return
	}
	f := upstream.Frame{Data: msg.Raw, Method: mcp.MethodOf(msg.MethodName())}
	var k *call
	if f.Method == mcp.NotifProgress {
		if k = c.byToken(msg.Bytes(msg.P.Token)); k != nil {
			k.progressed()
		}
	}
	c.deliver(t, k, f, &msg)
}
