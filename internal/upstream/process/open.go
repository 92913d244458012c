package process

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// openOwn starts a process for one session and passes the client's initialize
// to it.
func (h *hub) openOwn(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	c := newConn(h, events)
	c.can = readCapabilities(&init.Msg)
	k := newCall(c, init, reply)
	k.line = k.encode(&init.Msg)
	l := newLink(h)
	h.mu.Lock()
	h.link = l
	h.conns[c.part] = c
	h.mu.Unlock()
	if err := h.srv.launch(l); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.exited {
		return nil, l.exitErr
	}
	if err := c.initializeLocked(k); err != nil {
		l.pipe.Stop()
		delete(h.conns, c.part)
		return nil, err
	}
	return c, nil
}

// open joins a session to the shared process. The process was, or will be,
// initialized once by Signalbox; the client gets the stored answer.
func (h *hub) open(init upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	c := newConn(h, events)
	c.ready = true
	k := newCall(c, init, reply)
	if v, ok := wire.Unquote(init.Msg.Bytes(init.Msg.P.ProtocolVersion)); ok {
		k.version = mcp.Revision(v)
	}
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, upstream.ErrShutdown
	}
	begin, err := h.beginLocked()
	if err != nil {
		h.mu.Unlock()
		return nil, err
	}
	h.conns[c.part] = c
	k.setDeadlines(&h.srv.cfg)
	up := h.link.up
	if !up {
		c.calls[k.n] = k
		h.openers = append(h.openers, k)
		h.armLocked(k)
	}
	result := h.initResult
	h.mu.Unlock()
	switch {
	case up:
		k.answer(resultFor(result, k.version))
	case begin != nil:
		h.start(begin)
	}
	return c, nil
}

// beginLocked makes sure that a shared process runs or starts. The caller must
// call start with the link it gets, if any, without the lock.
func (h *hub) beginLocked() (*link, error) {
	if h.link != nil {
		return nil, nil
	}
	if err := h.srv.mayStart(); err != nil {
		return nil, err
	}
	h.link = newLink(h)
	return h.link, nil
}

// start launches the shared process and initializes it.
func (h *hub) start(l *link) {
	err := h.srv.launch(l)
	h.mu.Lock()
	if err == nil && !l.exited {
		if h.closed {
			l.pipe.Stop()
		} else {
			err = h.initializeLocked(l)
		}
	}
	var ended []over
	if err != nil {
		if h.link == l {
			h.link = nil
		}
		ended = h.failWaitingLocked(err)
		h.reviveLaterLocked()
	}
	h.mu.Unlock()
	failAll(ended)
}

// initializeLocked sends Signalbox's own initialize, at the newest handshake
// revision and without client capabilities: nobody could say for which session
// the server asks something.
func (h *hub) initializeLocked(l *link) error {
	k := h.ownCall(mcp.Initialize, func(msg wire.Message, err error) { h.initialized(l, &msg, err) })
	params := `{"protocolVersion":"` + string(mcp.NewestHandshake) + `","capabilities":{},"clientInfo":{"name":"signalbox","version":`
	k.line = h.ownRequest(k, "initialize", params+string(wire.AppendQuote(nil, h.srv.cfg.Version))+"}}")
	k.setDeadlines(&h.srv.cfg)
	if err := h.sendLocked(k); err != nil {
		return err
	}
	h.armLocked(k)
	return nil
}

// ownCall makes a call of Signalbox itself on a shared process.
func (h *hub) ownCall(m mcp.Method, done func(wire.Message, error)) *call {
	return &call{conn: h.own, n: h.own.nextCall.Add(1), method: m, id: []byte("0"), done: done}
}

func (h *hub) ownRequest(k *call, method, params string) []byte {
	line := append([]byte(nil), `{"jsonrpc":"2.0","id":`...)
	line = appendWireID(line, h.own.part, k.n, k.id)
	line = append(line, `,"method":"`+method+`","params":`...)
	line = append(line, params...)
	return append(line, '}')
}

// initialized takes the shared process's answer to initialize.
func (h *hub) initialized(l *link, msg *wire.Message, err error) {
	if err == nil && msg.Error.Present() {
		err = upstream.Errorf(mcp.CodeInternal, "start_failed", "the server refused initialize: %s", cut(string(msg.Bytes(msg.Error)), 512))
	}
	var ended []over
	var openers []*call
	h.mu.Lock()
	if err != nil {
		l.timedOut = true // its end is no news
		if l.pipe != nil {
			l.pipe.Stop()
		}
		ended = h.failWaitingLocked(err)
	} else {
		openers, ended = h.upLocked(l, msg)
	}
	result := h.initResult
	h.mu.Unlock()
	for _, k := range openers {
		k.answer(resultFor(result, k.version))
	}
	failAll(ended)
}

// upLocked opens the shared process for calls. It returns the initialize calls
// to answer now.
func (h *hub) upLocked(l *link, msg *wire.Message) (openers []*call, failed []over) {
	l.up = true
	h.srv.goodStart()
	h.startedAt = time.Now()
	// Tasks of several users in one process cannot be told apart: not offered.
	h.initResult = wire.Remove(msg.Bytes(msg.Result), "capabilities", "tasks")
	v, _ := wire.Lookup(h.initResult, "protocolVersion")
	l.batches = string(v.Of(h.initResult)) == `"`+string(mcp.R20250326)+`"`
	if err := h.writeLocked([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		h.log.Warn("initialized not sent", "err", err)
	}
	for _, k := range h.openers {
		if h.takeLocked(k) {
			openers = append(openers, k)
		}
	}
	h.openers = nil
	h.resubscribeLocked()
	waiting := h.waiting
	h.waiting = nil
	return openers, h.sendAllLocked(waiting)
}

// failWaitingLocked takes everything out of the table that waits for the
// shared process to start.
func (h *hub) failWaitingLocked(err error) []over {
	var ended []over
	waiting := append(h.openers, h.waiting...)
	for _, s := range h.subs {
		waiting = append(waiting, s.waiters...)
		s.waiters = nil
	}
	for _, k := range waiting {
		if h.takeLocked(k) {
			ended = append(ended, over{k, err})
		}
	}
	h.openers, h.waiting = nil, nil
	return ended
}

// resultFor is the stored answer to initialize with the client's revision
// where that is older than the server's (MCP 2025-11-25, lifecycle, version
// negotiation).
func resultFor(result []byte, client mcp.Revision) string {
	v, ok := wire.Lookup(result, "protocolVersion")
	server, isString := wire.Unquote(v.Of(result))
	if !ok || !isString || !client.Handshake() || client.AtLeast(mcp.Revision(server)) {
		return string(result)
	}
	return string(wire.Splice(nil, result, wire.Edit{Span: v, New: wire.AppendQuote(nil, string(client))}))
}

// quickLife is a life so short that an immediate new start would be a loop.
const quickLife = 10 * time.Second

// deathLocked cleans up after the shared process ended: it returns the calls
// that were in flight, and arranges the next start where sessions live on.
func (h *hub) deathLocked() []*call {
	var calls []*call
	for _, c := range h.conns {
		for _, k := range c.calls {
			calls = append(calls, k)
		}
		clear(c.calls)
	}
	h.openers, h.waiting = nil, nil
	h.quick++
	if !h.startedAt.IsZero() && time.Since(h.startedAt) > quickLife {
		h.quick = 1
	}
	h.startedAt = time.Time{}
	h.reviveLaterLocked()
	return calls
}

// reviveLaterLocked starts the process again after a pause if sessions still
// need it. A request that comes earlier starts it at once.
func (h *hub) reviveLaterLocked() {
	if h.closed || len(h.conns) <= 1 { // the hub's own is always there
		return
	}
	wait := (&breaker{fails: h.quick}).delay()
	if h.restart == nil {
		h.restart = time.AfterFunc(wait, h.revive)
	} else {
		h.restart.Reset(wait)
	}
}

func (h *hub) revive() {
	h.mu.Lock()
	var begin *link
	if !h.closed && len(h.conns) > 1 {
		var err error
		if begin, err = h.beginLocked(); err != nil {
			h.quick++
			h.reviveLaterLocked()
		}
	}
	h.mu.Unlock()
	if begin != nil {
		h.start(begin)
	}
}
