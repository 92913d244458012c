package remote

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// postTimeout bounds how long a server may take to accept a notification.
const postTimeout = 30 * time.Second

// post sends a notification or a response of the client.
func (c *conn) post(req upstream.Request) error {
	reopened := false
	tried := make(map[*address]bool)
	for {
		t, via, err := c.target(nil, nil)
		switch {
		case err != nil:
			return err
		case via != nil:
			return via.Send(req)
		}
		state, err := c.postTo(t, req)
		switch {
		case err == nil:
			return nil
		case state == notSent && ownFault(err):
			return unreachable(err)
		case state == notSent && t.session == "":
			if err := c.elsewhere(t, tried, err); err != nil {
				return err
			}
		case state == notSent || isLost(err):
			if reopened {
				return c.lose(err)
			}
			reopened = true
			if err := c.recover(t, err, nil); err != nil {
				return err
			}
			if ofOldLife(&req) {
				return nil
			}
		default:
			return err
		}
	}
}

// ofOldLife: it means nothing to a session that was opened anew.
func ofOldLife(req *upstream.Request) bool {
	return req.Msg.Kind == wire.Response || req.Method == mcp.NotifCancelled || req.Method == mcp.NotifInitialized
}

// harmless: the server may get it twice. An unknown notification might do
// something.
func harmless(req *upstream.Request) bool {
	return req.Msg.Kind == wire.Response || req.Method != mcp.Other
}

// postTo sends a notification or a response. 200 with an empty body, 202 and
// 204 are all fine.
func (c *conn) postTo(t target, req upstream.Request) (sent, error) {
	head := append([]byte(c.srv.heads.post), t.lines...)
	head = appendLength(c.srv.heads.appendForwarded(head, req.Header), len(req.Msg.Raw))
	o := options{deadline: time.Now().Add(postTimeout)}
	h, resp, state, err := c.srv.roundTrip(t.addr, head, req.Msg.Raw, o)
	if isStale(err) && harmless(&req) {
		o.fresh = true
		h, resp, state, err = c.srv.roundTrip(t.addr, head, req.Msg.Raw, o)
	}
	if err != nil {
		if state == mayBeRun {
			err = upstream.Errorf(mcp.CodeInternal, "outcome_unknown", "the message may not have reached the server: %v", rootCause(err))
		}
		return state, err
	}
	defer t.addr.pool.Put(h)
	if resp.Status >= 200 && resp.Status < 300 {
		if resp.Length != 0 {
			discard(h, resp)
		}
		return state, nil
	}
	body, _ := readAll(resp, maxErrorBody, nil)
	return state, statusError(t, resp, body)
}
