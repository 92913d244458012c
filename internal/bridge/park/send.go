package park

import (
	"errors"
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
		ses.ask(conn, k.client, text, func(err error, l *later) {
			if err == nil {
				ses.level = level
			}
			if !k.over && ses.phase != over {
				k.startLocked(l)
			}
		})
	})
}

// ask sends a request of Signalbox itself. then is called once, under the lock, with
// nil for a result, errNo for an error of the server, or with what went wrong on
// the way.
func (ses *session) ask(conn upstream.Conn, c *client, text []byte, then func(err error, l *later)) {
	req, err := c.request(text)
	if err == nil {
		_, err = conn.Start(req, &own{ses: ses, then: then})
	}
	if err != nil {
		ses.srv.cfg.Log.Debug("request of signalbox not sent", "method", req.Method.String(), "err", err)
		ses.srv.locked(func(l *later) { then(err, l) })
	}
}

var errNo = errors.New("the server refused a request of signalbox")

// own is the sink of a request of Signalbox itself.
type own struct {
	ses  *session
	then func(err error, l *later)
	yes  bool // by whoever delivers
}

// Deliver leaves what names no call to those that a client waits for.
func (o *own) Deliver(f upstream.Frame) upstream.Verdict {
	switch f.Relation {
	case upstream.Reply:
		m, err := wire.Parse(f.Data)
		o.yes = err == nil && m.Result.Present()
		return upstream.Taken
	case upstream.Own:
		return events{o.ses}.Deliver(f)
	}
	return upstream.NoTaker
}

func (o *own) End(err error) {
	if err == nil && !o.yes {
		err = errNo
	}
	o.ses.srv.locked(func(l *later) { o.then(err, l) })
}
