package remote

import (
	"errors"

	"github.com/signalbox-mcp/signalbox/internal/h1"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

func (k *call) runInitialize() {
	defer k.c.srv.wg.Done()
	err := k.initialize()
	if maybeOld(err) && k.c.srv.mayFallBack() {
		err = k.fallBack(err)
	}
	k.c.settle(nil)
	if err != nil && k.take() {
		k.sink.End(err)
	}
}

// initialize opens the session on the address with the fewest, or on the next
// one where that cannot be reached. Nothing has run at an address that could
// not be connected to.
func (k *call) initialize() error {
	c := k.c
	if err := c.srv.addrs.refresh(c.srv.ctx, false); err != nil {
		return upstream.Errorf(mcp.CodeInternal, "unreachable", "the server cannot be found: %v", err)
	}
	not := make(map[*address]bool)
	var last error = errNoAddress
	for {
		a := c.srv.addrs.pick(not)
		if a == nil {
			return unreachable(last)
		}
		not[a] = true
		t := target{addr: a}
		if !c.begin(t) {
			return upstream.ErrClosed
		}
		state, err := k.once(t, false)
		if isStale(err) {
			state, err = k.once(t, true)
		}
		if err == nil {
			c.srv.addrs.worked(a)
			return nil
		}
		if !c.leave(a) || k.hold.aborted() {
			return err
		}
		if state != notSent {
			return k.explain(err)
		}
		last = err
	}
}

// begin takes the session to an address that was picked for it.
func (c *conn) begin(t target) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		c.srv.addrs.release(t.addr)
		return false
	}
	c.at = t
	return true
}

// leave takes it away again; false: the session has ended, and has left.
func (c *conn) leave(a *address) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return false
	}
	c.at = target{}
	c.srv.addrs.release(a)
	return true
}

// accepted notes the server's answer to initialize.
func (c *conn) accepted(t target, resp *h1.Response, msg *wire.Message) error {
	id, err := identity(resp, msg)
	if err != nil {
		return err
	}
	t = t.named(id.session, id.revision)
	c.srv.detected(Streamable)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		if t.session != "" { // End knew nothing of it
			c.srv.addrs.retain(t.addr)
			c.srv.wg.Add(1)
			go c.goodbye(t)
		}
		return nil
	}
	c.opened, c.at = true, t
	if !c.srv.cfg.Reinitialize {
		c.init = nil
	}
	if c.wanted {
		c.listenLocked()
	}
	c.mu.Unlock()
	c.settle(nil)
	c.changed(func(st *upstream.State) { *st = c.State() })
	return nil
}

// names are what the server calls the session and the revision.
type names struct {
	session  string
	revision mcp.Revision
}

// identity reads the answer to initialize. What it says stands in the head of
// every later request: a session id is visible ASCII (2025-11-25, transports,
// "Session Management"), and so is every revision.
func identity(resp *h1.Response, msg *wire.Message) (names, error) {
	v, _ := wire.Lookup(msg.Raw, "result", "protocolVersion")
	version, _ := wire.Unquote(v.Of(msg.Raw))
	switch {
	case !visible(resp.Session) || len(resp.Session) > maxName:
		return names{}, upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server gave the session an id that cannot be sent back")
	case !visible(string(version)) || len(version) > maxName:
		return names{}, upstream.Errorf(mcp.CodeInternal, "bad_answer", "the server named a protocol version that is none")
	}
	return names{resp.Session, mcp.Revision(version)}, nil
}

// maxName bounds session ids: some servers put a whole token there.
const maxName = 8 << 10

// maybeOld: a server that does not know POST with initialize, and may speak
// HTTP+SSE, answers with 400, 404 or 405 (2025-11-25, transports, "Backwards
// Compatibility").
func maybeOld(err error) bool {
	var e *upstream.Error
	return errors.As(err, &e) && (e.Status == 400 || e.Status == 404 || e.Status == 405)
}

// fallBack tries HTTP+SSE with the same initialize. The error is for the
// client, if the call is still open.
func (k *call) fallBack(first error) error {
	c := k.c
	if !k.take() {
		return nil
	}
	init, err := wire.Parse(c.init)
	if err != nil {
		k.sink.End(first)
		return nil
	}
	req := upstream.NewRequest(init)
	req.Header = k.req.Header
	via, err := c.srv.cfg.Legacy.Open(req, &sseSink{Sink: k.sink, s: c.srv, first: first}, c.events)
	if err != nil {
		k.sink.End(first)
		return nil
	}
	c.mu.Lock()
	ended := c.ended
	c.via, c.init = via, nil
	c.mu.Unlock()
	if ended {
		via.End(upstream.ErrClosed)
	}
	return nil
}

// sseSink learns from the answer to initialize whether the server speaks
// HTTP+SSE.
type sseSink struct {
	upstream.Sink
	s     *Server
	first error // what the server said to Streamable HTTP; nil: not asked
}

func (f *sseSink) Deliver(fr upstream.Frame) upstream.Verdict {
	if fr.Relation == upstream.Reply {
		f.s.detected(SSE)
	}
	return f.Sink.Deliver(fr)
}

func (f *sseSink) End(reason error) {
	var e *upstream.Error
	if errors.As(reason, &e) && e.Reason == "start_failed" {
		f.s.detected(Detect)
		if f.first != nil {
			reason = f.first
		}
	}
	f.Sink.End(reason)
}
