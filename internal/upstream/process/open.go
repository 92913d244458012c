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
	k.line = k.encode(&init)
	l := newLink(h)
	defer close(l.begun)
	starts := k.span.Child("start process")
	err := h.srv.launch(l, init)
	starts.End()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed { // by Server.Close, while the process was being started
		l.pipe.Stop()
		return nil, upstream.ErrShutdown
	}
	h.link = l
	k.setDeadlines(&h.srv.cfg)
	if err := h.sendLocked(k); err != nil {
		l.doomed = err
		l.pipe.Stop()
		return nil, err
	}
	h.conns[c.part] = c
	h.armLocked(k)
	return c, nil
}

// acceptedLocked notes that the process of one session answered initialize.
func (c *conn) acceptedLocked(l *link, msg *wire.Message) {
	l.nowUpLocked(msg.Bytes(msg.Result))
	if msg.Result.Present() && !c.ready {
		c.gate = time.AfterFunc(readyWait, c.gateTimeout)
	}
}

// nowUpLocked notes what the process answered to initialize; result is nil where
// that was an error.
func (l *link) nowUpLocked(result []byte) {
	l.up = true
	l.hub.srv.goodStart()
	v, _ := wire.Lookup(result, "protocolVersion")
	l.batches = string(v.Of(result)) == `"`+string(mcp.R20250326)+`"`
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
	begin, err := h.beginLocked()
	if err != nil {
		h.mu.Unlock()
		return nil, err
	}
	h.conns[c.part] = c
	up := h.upLocked()
	if !up {
		k.setDeadlines(&h.srv.cfg)
		k.waits = k.span.Child("wait for process")
		c.calls[k.n] = k
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
	if h.closed {
		return nil, upstream.ErrShutdown
	}
	if h.link != nil {
		return nil, h.link.doomed
	}
	if err := h.srv.mayStart(); err != nil {
		return nil, err
	}
	h.link = newLink(h)
	return h.link, nil
}

// start launches the shared process and initializes it.
func (h *hub) start(l *link) {
	defer close(l.begun)
	err := h.srv.launch(l, upstream.Request{})
	var ended []over
	h.mu.Lock()
	switch {
	case err == nil && h.closed:
		l.pipe.Stop()
	case err == nil:
		if err = h.greetLocked(l); err != nil {
			ended = h.giveUpLocked(l, err)
		}
	default:
		ended = h.deathLocked(err)
	}
	h.mu.Unlock()
	failAll(ended)
}

// giveUpLocked stops a process that did not come up. It takes all who wait for
// it out of the table; whoever comes until its end is told the same.
func (h *hub) giveUpLocked(l *link, err error) []over {
	l.doomed = err
	l.pipe.Stop()
	return h.takeAllLocked(err)
}

// greeting is what a process has to answer before it is up.
func (h *hub) greeting() mcp.Method {
	if h.direct {
		return mcp.ServerDiscover
	}
	return mcp.Initialize
}

// greets tells whether k is that of Signalbox itself.
func (k *call) greets() bool { return k.done != nil && k.method == k.conn.hub.greeting() }

// greetLocked asks a process that has just been started whether it is up.
func (h *hub) greetLocked(l *link) error {
	if h.direct {
		return h.discoverLocked(l)
	}
	return h.initializeLocked(l)
}

// initializeLocked sends Signalbox's own initialize, at the newest handshake
// revision and without client capabilities: nobody could say for which session
// the server asks something.
func (h *hub) initializeLocked(l *link) error {
	k := h.ownCall(mcp.Initialize, func(msg wire.Message, err error) { h.initialized(l, &msg, err) })
	params := `{"protocolVersion":"` + string(mcp.NewestHandshake) + `","capabilities":{},"clientInfo":{"name":"signalbox","version":`
	return h.sendOwnLocked(k, params+string(wire.AppendQuote(nil, h.srv.cfg.Version))+"}}")
}

// ownCall makes a call of Signalbox itself on a shared process.
func (h *hub) ownCall(m mcp.Method, done func(wire.Message, error)) *call {
	return &call{conn: h.own, n: h.own.nextCall.Add(1), method: m, id: []byte("0"), done: done}
}

func (h *hub) sendOwnLocked(k *call, params string) error {
	line := appendWireID([]byte(`{"jsonrpc":"2.0","id":`), h.own.part, k.n, k.id)
	line = append(line, `,"method":"`+k.method.String()+`","params":`...)
	k.line = append(append(line, params...), '}')
	k.setDeadlines(&h.srv.cfg)
	if err := h.sendLocked(k); err != nil {
		return err
	}
	h.armLocked(k)
	return nil
}

// initialized takes the shared process's answer to initialize. The lock was
// free since the answer came: the process may have been given up, or be gone.
func (h *hub) initialized(l *link, msg *wire.Message, err error) {
	if err == nil && msg.Error.Present() {
		err = upstream.Errorf(mcp.CodeInternal, "start_failed", "the server refused initialize: %s", cut(string(msg.Bytes(msg.Error)), 512))
	}
	var ended []over
	var openers []*call
	h.mu.Lock()
	switch {
	case h.link != l || l.doomed != nil || h.closed:
	case err != nil:
		ended = h.giveUpLocked(l, err)
	default:
		openers, ended = h.comeUpLocked(l, msg)
	}
	result := h.initResult
	h.mu.Unlock()
	for _, k := range openers {
		k.answer(resultFor(result, k.version))
	}
	failAll(ended)
}

// comeUpLocked opens the shared process for calls. It returns the initialize
// calls to answer now.
func (h *hub) comeUpLocked(l *link, msg *wire.Message) (openers []*call, failed []over) {
	// Tasks of several users in one process cannot be told apart: not offered.
	h.initResult = wire.Remove(msg.Bytes(msg.Result), "capabilities", "tasks")
	l.nowUpLocked(h.initResult)
	h.startedAt = time.Now()
	if err := h.writeLocked([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil); err != nil {
		h.log.Warn("initialized not sent", "err", err)
	}
	failed = h.resubscribeLocked()
	for _, c := range h.conns {
		for _, k := range c.calls {
			if k.method == mcp.Initialize {
				h.takeLocked(k)
				openers = append(openers, k)
			}
		}
		failed = append(failed, h.sendHeldLocked(c)...)
	}
	return openers, failed
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
