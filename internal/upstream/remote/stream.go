package remote

import (
	"math/rand/v2"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/h1"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// cursor is the place in a server's stream from which it can be resumed, and
// how patient to be.
type cursor struct {
	id    string
	retry time.Duration // what the server asked for
	polls bool          // coming back is how the server wants it, if it said when
	tries int           // in a row that brought nothing
}

// ended is called at the end of a stream.
func (c *cursor) ended(began time.Time) {
	if time.Since(began) >= steady {
		c.tries = 0
	}
	c.tries++
}

// steady is how long a stream must have lasted to be no failure if it brought
// nothing: proxies cut idle streams after some time.
const steady = 10 * time.Second

func (c *cursor) note(e sse.Event) {
	if len(e.Data) > 0 {
		c.tries = 0
	}
	if e.HasID {
		c.id = e.ID
	}
	if e.Retry >= 0 {
		c.retry = e.Retry
	}
}

// backoff is what the server asked for, or one second, and more each time that
// a stream brings nothing: a server that closes at once is no reason for a
// storm. Many clients of one server do not come at the same moment.
func (c *cursor) backoff() time.Duration {
	d := c.retry
	if d <= 0 {
		d = time.Second
	}
	if c.tries > 1 && !(c.polls && c.retry >= time.Second) {
		grown := max(d, time.Second/2) << min(c.tries-1, 6)
		d = max(d, min(grown, maxBackoff))
	}
	return d + rand.N(d/4+1)
}

const maxBackoff = 30 * time.Second

// events follows the stream of the answer, and gives its connections back.
// Everything on it belongs to this call (2025-11-25, transports, "Sending
// Messages to the Server").
func (k *call) events(t target, h *h1.Conn, resp *h1.Response) error {
	if k.method == mcp.Initialize && visible(resp.Session) {
		t = t.named(resp.Session, "")
	}
	if !k.c.srv.cfg.Reinitialize || k.c.lone {
		k.req = upstream.Request{} // it is not sent again, and its body may be large
	}
	at := cursor{polls: true}
	for {
		began := time.Now()
		done, err := k.stream(t, resp, &at)
		if done && err == nil {
			discard(h, resp)
		}
		k.hold.put(t.addr.pool, h)
		switch {
		case done || k.hold.aborted():
			return err
		case !broken(err):
			return k.bodyError(err)
		case at.id == "" || k.c.lone:
			return streamEnded("")
		}
		at.ended(began)
		if h, resp, err = k.resume(t, &at); err != nil {
			return err
		}
		resp.Session = t.session // said once, in the first answer
	}
}

func streamEnded(how string) error {
	return upstream.Errorf(mcp.CodeInternal, "stream_ended", "the server's stream ended before its answer%s; outcome unknown: the request may have run", how)
}

// stream passes events on until the reply.
func (k *call) stream(t target, resp *h1.Response, at *cursor) (done bool, err error) {
	log := k.c.srv.cfg.Log
	r := sse.NewReader(resp.Body, k.c.srv.cfg.MaxMessage)
	defer r.Release()
	for {
		e, err := r.Next()
		if err != nil {
			return false, err
		}
		at.note(e)
		if len(e.Data) == 0 || !e.IsMessage() {
			continue
		}
		msg, err := wire.Parse(e.Data)
		switch {
		case err != nil:
			log.Warn("event from the server that is no JSON-RPC message; skipped", "bytes", len(e.Data))
			k.c.srv.dropped(dropNoise, mcp.Other)
		case k.cancelsListen(&msg):
			k.delivered()
			k.endListen()
			return true, nil
		case msg.Kind != wire.Response:
			k.pass(t, &msg)
			k.delivered()
		case sameID(k.id, msg.Bytes(msg.ID)) || !msg.ID.Present():
			k.delivered()
			return true, k.reply(t, resp, &msg)
		default:
			log.Warn("response from the server under an id that nobody asked with; dropped")
			k.c.srv.dropped(dropForeign, mcp.Other)
		}
	}
}

// resume asks for the rest of a call's stream. A server that answers and closes
// wants its client to poll (SEP-1699); one that fails is not asked for ever.
func (k *call) resume(t target, at *cursor) (*h1.Conn, *h1.Response, error) {
	refused := 0 // in a row
	for failures := 0; failures < resumeTries && refused < refusedTries; failures++ {
		if err := k.wait(at.backoff()); err != nil {
			return nil, nil, err
		}
		h, resp, state, err := k.c.get(t, at.id, options{arm: k.arm, hold: k.hold})
		if k.hold.aborted() {
			if err == nil {
				k.hold.put(t.addr.pool, h)
			}
			return nil, nil, errGivenUp
		}
		if err != nil {
			at.tries++
			if refused++; state != notSent || ownFault(err) {
				refused = 0
			}
			continue
		}
		refused = 0
		if resp.Status == 200 && media(resp.ContentType) == "text/event-stream" && !encoded(resp) {
			return h, resp, nil
		}
		body, _ := readAll(resp, maxErrorBody, nil)
		k.hold.put(t.addr.pool, h)
		if resp.Status < 500 && resp.Status != 429 {
			return nil, nil, streamEnded(", and asked for the rest it said: " + statusError(t, resp, body).Error())
		}
		at.tries++
	}
	return nil, nil, streamEnded(" and could not be resumed")
}

const (
	resumeTries = 8
	// refusedTries is for an address that nobody listens at: time to restart, some
	// seconds with the pauses, and no more. The server has probably gone, and with
	// it the session, which others may hold.
	refusedTries = 3
)

// wait pauses, but not beyond what the call has time for.
func (k *call) wait(d time.Duration) error {
	k.alone()
	left := time.Until(k.expires())
	if left < d {
		if !k.c.srv.pause(left, k.hold.gone) {
			return errGivenUp
		}
		return k.timeout()
	}
	if !k.c.srv.pause(d, k.hold.gone) {
		return errGivenUp
	}
	return nil
}

// get opens a stream; after is the server's event id to go on from, or empty.
func (c *conn) get(t target, after string, o options) (*h1.Conn, *h1.Response, sent, error) {
	c.mu.Lock()
	client := c.header
	c.mu.Unlock()
	head := c.srv.heads.appendNamed(append([]byte(c.srv.heads.get), t.lines...), client)
	if after != "" {
		head = appendHeader(head, mcp.HeaderLastEvent, after)
	}
	head = append(head, "\r\n"...)
	h, resp, state, err := c.srv.roundTrip(t.addr, head, nil, o)
	if isStale(err) {
		o.fresh = true
		h, resp, state, err = c.srv.roundTrip(t.addr, head, nil, o)
	}
	return h, resp, state, err
}
