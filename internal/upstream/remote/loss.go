package remote

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A session is lost when its address cannot be reached or the server answers
// 404 for it. Then it ends here too, and the client begins anew; or, where the
// configuration says so, it is opened anew on an address that is up: once, for
// all calls that wait, and what the client had set is set again. A server that
// gave no session id has nothing to lose: any address will do.

func isLost(err error) bool { return errors.Is(err, upstream.ErrLost) }

// recovery is the opening of a session for which others wait.
type recovery struct {
	done chan struct{} // closed when it is over
	err  error         // set before: what to tell those who waited
}

func newRecovery() *recovery { return &recovery{done: make(chan struct{})} }

// settle ends the opening, if it has not ended.
func (c *conn) settle(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.opening; r != nil {
		c.opening = nil
		r.err = err
		close(r.done)
	}
}

// await waits until the opening is over.
func (c *conn) await(r *recovery, gone <-chan struct{}) error {
	select {
	case <-r.done:
		return r.err
	case <-gone:
		return errGivenUp
	case <-c.srv.ctx.Done():
		return upstream.ErrShutdown
	}
}

// target is where a request goes now. It waits while the session is being
// opened, and calls before first, if that is not nil.
func (c *conn) target(gone <-chan struct{}, before func()) (target, upstream.Conn, error) {
	for {
		c.mu.Lock()
		r, t, via, ended, opened := c.opening, c.at, c.via, c.ended, c.opened
		c.mu.Unlock()
		switch {
		case ended:
			return t, nil, upstream.ErrClosed
		case r != nil:
			if before != nil {
				before()
			}
			if err := c.await(r, gone); err != nil {
				return t, nil, err
			}
		case via != nil:
			return t, via, nil
		case !opened:
			return t, nil, upstream.Errorf(mcp.CodeInternal, "not_open", "the session has not begun at the server")
		default:
			return t, nil, nil
		}
	}
}

// remember keeps what a successful call has set.
func (c *conn) remember(k *call) {
	if !c.srv.cfg.Reinitialize {
		return
	}
	m := &k.req.Msg
	var change func(*upstream.State)
	switch k.method {
	case mcp.LoggingSetLevel:
		value, _ := wire.Unquote(m.Bytes(m.P.Level))
		level := string(value)
		change = func(st *upstream.State) { st.LogLevel = level }
	case mcp.ResourcesSubscribe, mcp.ResourcesUnsubscribe:
		value, _ := wire.Unquote(m.Bytes(m.P.URI))
		uri, on := string(value), k.method == mcp.ResourcesSubscribe
		change = func(st *upstream.State) {
			i, has := slices.BinarySearch(st.Subscriptions, uri)
			switch {
			case has && !on:
				st.Subscriptions = slices.Delete(st.Subscriptions, i, i+1)
			case on && !has && len(st.Subscriptions) < maxReplay:
				st.Subscriptions = slices.Insert(st.Subscriptions, i, uri)
			}
		}
	default:
		return
	}
	c.mu.Lock()
	change(&c.replay)
	c.mu.Unlock()
	c.changed(change)
}

// replayed are the messages that set again what st holds, under ids that no
// client gave.
func replayed(st upstream.State) [][]byte {
	all := [][]byte{[]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)}
	request := func(method, member, value string) {
		raw := []byte(`{"jsonrpc":"2.0","id":"signalbox-` + strconv.Itoa(len(all)) + `","method":"` + method + `","params":{"` + member + `":`)
		all = append(all, append(wire.AppendQuote(raw, value), "}}"...))
	}
	if st.LogLevel != "" {
		request("logging/setLevel", "level", st.LogLevel)
	}
	for _, uri := range st.Subscriptions {
		request("resources/subscribe", "uri", uri)
	}
	return all
}

const maxReplay = 1024

// broke notes a connection that ended under a call. A server that is killed does
// not vanish at once: its other connections, and even its listening socket, may
// take a request that nobody will run, and that would be one more call of unknown
// outcome.
func (c *conn) broke(t target, err error) {
	if !endedUnder(err) {
		return
	}
	t.addr.pool.Doubt()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.brokeAt = time.Now()
}

// endedUnder: the connection ended under the call that failed so.
func endedUnder(err error) bool {
	var e *upstream.Error
	return isClosed(err) || errors.As(err, &e) && e.Reason == "stream_ended"
}

// vanishTime is what the system needs to take down a process.
const vanishTime = 25 * time.Millisecond

// calm waits until the server is either gone or there to stay; false: the
// caller has given up.
func (c *conn) calm(gone <-chan struct{}) bool {
	c.mu.Lock()
	wait := vanishTime - time.Since(c.brokeAt)
	c.mu.Unlock()
	return wait <= 0 || c.srv.pause(wait, gone)
}

// lose ends the session because the server no longer has it.
func (c *conn) lose(cause error) error {
	c.srv.cfg.Log.Info("the server has lost a session", "err", rootCause(cause).Error())
	c.End(upstream.ErrLost)
	return upstream.ErrLost
}

// elsewhere takes a session that no server holds to an address which was not
// tried yet.
func (c *conn) elsewhere(failed target, tried map[*address]bool, cause error) error {
	tried[failed.addr] = true
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return upstream.ErrClosed
	case c.at.life != failed.life:
		return nil // somebody else has
	}
	a := c.srv.addrs.pick(tried)
	if a == nil {
		return unreachable(cause)
	}
	c.srv.addrs.release(failed.addr)
	c.at.addr = a
	c.at.life++
	return nil
}

// recover is called with the target that failed. nil: the request may be sent
// to a new target.
func (c *conn) recover(failed target, cause error, gone <-chan struct{}) error {
	if !c.srv.cfg.Reinitialize {
		return c.lose(cause)
	}
	c.mu.Lock()
	switch r := c.opening; {
	case c.ended:
		c.mu.Unlock()
		return upstream.ErrClosed
	case c.at.life != failed.life:
		c.mu.Unlock()
		return nil // somebody else has done it
	case r != nil:
		c.mu.Unlock()
		return c.await(r, gone)
	}
	c.opening = newRecovery()
	c.mu.Unlock()
	err := c.reopen(failed)
	var refused errRefused
	if errors.As(err, &refused) {
		err = c.lose(err)
	}
	c.settle(err)
	return err
}
