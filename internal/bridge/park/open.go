package park

import (
	"bytes"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// offers are the optional things of a server that matter here.
type offers struct {
	logging, tools, prompts, resources, subscribe bool
	info                                          []byte // serverInfo; nil for none
}

// open begins the session at the server.
func (ses *session) open(c *client) {
	conn, err := ses.connect(c)
	ses.srv.locked(func(l *later) {
		switch {
		case err != nil:
			ses.endLocked(err, l)
		case ses.phase == over:
			l.do(func() { conn.End(ses.reason) })
		default:
			ses.conn = conn
			ses.greetLocked(l)
		}
	})
}

func (ses *session) connect(c *client) (upstream.Conn, error) {
	info := c.info
	if info == nil {
		info = wire.AppendQuote([]byte(`{"name":"signalbox","version":`), ses.srv.cfg.Version)
		info = append(info, '}')
	}
	text := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + string(mcp.NewestHandshake) +
		`","capabilities":` + ses.pool.can.text + `,"clientInfo":`
	req, err := c.request(append(append([]byte(text), info...), "}}"...))
	if err != nil {
		return nil, err
	}
	return ses.srv.cfg.Server.Open(req, &welcome{ses: ses}, events{ses})
}

// welcome is the sink of initialize.
type welcome struct {
	ses    *session
	answer []byte // by whoever delivers
}

func (w *welcome) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation != upstream.Reply {
		return events{w.ses}.Deliver(f)
	}
	w.answer = f.Data
	return upstream.Taken
}

func (w *welcome) End(err error) {
	var result []byte
	if err == nil {
		result, err = readWelcome(w.answer)
	}
	w.ses.srv.locked(func(l *later) {
		if err != nil {
			w.ses.endLocked(err, l)
			return
		}
		w.ses.init = result
		w.ses.greetLocked(l)
	})
}

// readWelcome returns the InitializeResult in the server's answer.
func readWelcome(answer []byte) ([]byte, error) {
	msg, err := wire.Parse(answer)
	if err != nil {
		return nil, upstream.Errorf(mcp.CodeInternal, "start_failed", "the server's answer to initialize is no JSON-RPC response: %v", err)
	}
	if msg.Error.Present() {
		text := msg.Bytes(msg.Error)
		return nil, upstream.Errorf(mcp.CodeInternal, "start_failed", "the server refused initialize: %s", text[:min(len(text), 512)])
	}
	result := msg.Bytes(msg.Result)
	at, _ := wire.Lookup(result, "protocolVersion")
	if v, _ := wire.Unquote(at.Of(result)); !mcp.Revision(v).Handshake() {
		return nil, upstream.Errorf(mcp.CodeInternal, "start_failed", "the server answered initialize with revision %.64q, which is none of the handshake era", v)
	}
	return result, nil
}

// greetLocked: when the server has answered and the connection is here, it is
// told that calls begin.
func (ses *session) greetLocked(l *later) {
	if ses.init == nil || ses.conn == nil || ses.phase != opening {
		return
	}
	ses.offers = readOffers(ses.init)
	ses.group.logging = absent
	if ses.offers.logging {
		ses.group.logging = offered
	}
	if ses.exclusive && !ses.pool.can.asks() && !ses.offers.logging {
		ses.exclusive = false // it was for log messages, of which there are none
	}
	ses.followLocked(l)
	conn := ses.conn
	ses.out.put(func() {
		req, err := ses.client.request([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
		if err == nil {
			err = conn.Send(req)
		}
		ses.srv.locked(func(l *later) {
			if err != nil {
				ses.endLocked(err, l)
				return
			}
			ses.readyLocked(l)
		})
	}, true, l)
}

func readOffers(init []byte) offers {
	is := func(path ...string) bool {
		v, ok := wire.Lookup(init, path...)
		return ok && string(v.Of(init)) == "true"
	}
	o := offers{
		tools:     is("capabilities", "tools", "listChanged"),
		prompts:   is("capabilities", "prompts", "listChanged"),
		resources: is("capabilities", "resources", "listChanged"),
		subscribe: is("capabilities", "resources", "subscribe"),
	}
	v, ok := wire.Lookup(init, "capabilities", "logging")
	o.logging = ok && string(v.Of(init)) != "null"
	if v, ok := wire.Lookup(init, "serverInfo"); ok && init[v.Start] == '{' {
		o.info = bytes.Clone(v.Of(init))
	}
	return o
}

func (ses *session) readyLocked(l *later) {
	if ses.phase != opening {
		return
	}
	ses.phase, ses.readyAt = ready, time.Now()
	ses.srv.cfg.Log.Debug("session at the server is open for clients of the per-request era")
	queue := ses.queue
	ses.queue = nil
	for _, k := range queue {
		k.goLocked(l)
	}
	for n := range ses.listens {
		n.joinLocked(l)
	}
	ses.restLocked(l)
	ses.group.dispatchLocked(l)
}
