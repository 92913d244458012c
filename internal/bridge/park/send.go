package park

import (
	"strconv"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// answerLocked sends a response to a request of the server.
func (ses *session) answerLocked(c *client, raw []byte, l *later) {
	conn := ses.conn
	if ses.phase == over || conn == nil {
		return
	}
	ses.out.put(func() {
		req, err := c.request(raw)
		if err == nil {
			err = conn.Send(req)
		}
		if err == nil {
			return
		}
		ses.srv.cfg.Log.Warn("answer to the server not sent", "err", err)
		// The server would wait for ever, and with it the one call that it is about.
		ses.srv.locked(func(l *later) {
			if ses.exclusive {
				ses.endLocked(err, l)
			}
		})
	}, true, l)
}

func (ses *session) nextIDLocked() []byte {
	ses.lastID++
	return strconv.AppendUint(nil, ses.lastID, 10)
}

// setLevelLocked has the server told of the log messages that the call wants,
// before the call.
func (k *call) setLevelLocked(l *later) {
	ses, level := k.ses, k.client.level
	text := append([]byte(`{"jsonrpc":"2.0","id":`), ses.nextIDLocked()...)
	text = append(text, `,"method":"logging/setLevel","params":{"level":"`+level.String()+`"}}`...)
	conn := ses.conn
	l.do(func() {
		ses.ask(conn, k.client, text, func(done bool, l *later) {
			if done {
				ses.level = level
			}
			if !k.over && ses.phase != over {
				k.startLocked(l)
			}
		})
	})
}

// ask sends a request of Signalbox itself. then is called once, under the lock:
// done tells whether the server answered with a result.
func (ses *session) ask(conn upstream.Conn, c *client, text []byte, then func(done bool, l *later)) {
	req, err := c.request(text)
	if err == nil {
		_, err = conn.Start(req, &own{ses: ses, then: then})
	}
	if err != nil {
		ses.srv.cfg.Log.Debug("request of signalbox not sent", "method", req.Method.String(), "err", err)
		ses.srv.locked(func(l *later) { then(false, l) })
	}
}

// own is the sink of a request of Signalbox itself.
type own struct {
	ses  *session
	then func(done bool, l *later)
	done bool // by whoever delivers
}

func (o *own) Deliver(f upstream.Frame) upstream.Verdict {
	if f.Relation != upstream.Reply {
		return events{o.ses}.Deliver(f)
	}
	m, err := wire.Parse(f.Data)
	o.done = err == nil && m.Result.Present()
	return upstream.Taken
}

func (o *own) End(err error) {
	o.ses.srv.locked(func(l *later) { o.then(o.done && err == nil, l) })
}
