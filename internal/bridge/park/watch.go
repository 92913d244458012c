package park

import (
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// sub is one resource that a session watches at the server for its listens. All
// of it is guarded by Server.mu.
type sub struct {
	uri     string
	members map[*listen]bool // true: it has been told the server's answer
	on      bool             // the server has it
	asking  bool             // a request about it is open
	by      *client          // who asked for it last
}

// watchLocked counts a listen in; it is told the server's answer by
// watchedLocked.
func (ses *session) watchLocked(n *listen, uri string, l *later) {
	b := ses.subs[uri]
	if b == nil {
		b = &sub{uri: uri, members: make(map[*listen]bool)}
		ses.subs[uri] = b
	}
	b.by = n.client
	if b.on && !b.asking {
		b.members[n] = true
		n.watchedLocked(uri, true, l)
		return
	}
	b.members[n] = false
	ses.nextLocked(b, l)
}

// unwatchLocked counts a listen out. The last one's end ends the subscription.
func (ses *session) unwatchLocked(n *listen, l *later) {
	for _, r := range n.uris {
		if b := ses.subs[r.uri]; b != nil {
			delete(b.members, n)
			ses.nextLocked(b, l)
		}
	}
}

// nextLocked does what a subscription needs now. One request about it is open at
// a time; its answer leads here again.
func (ses *session) nextLocked(b *sub, l *later) {
	wanted := len(b.members) > 0
	switch {
	case b.asking:
	case wanted && !b.on:
		ses.askAboutLocked(b, mcp.ResourcesSubscribe, l)
	case !wanted && b.on:
		ses.askAboutLocked(b, mcp.ResourcesUnsubscribe, l)
	case !wanted:
		delete(ses.subs, b.uri)
	default: // on, and some may have come since it was asked for
		for n, told := range b.members {
			if !told {
				b.members[n] = true
				n.watchedLocked(b.uri, true, l)
			}
		}
	}
}

func (ses *session) askAboutLocked(b *sub, m mcp.Method, l *later) {
	b.asking = true
	text := append([]byte(`{"jsonrpc":"2.0","id":`), ses.nextIDLocked()...)
	text = append(text, `,"method":"`+m.String()+`","params":{"uri":`...)
	text = append(wire.AppendQuote(text, b.uri), "}}"...)
	conn, by := ses.conn, b.by
	l.do(func() {
		ses.ask(conn, by, text, func(err error, l *later) {
			if err == nil || err == errNo {
				ses.toldLocked(b, m, err == nil, l)
				return
			}
			// The session may be about to end, and the next one shall try again.
			time.AfterFunc(failWait, func() {
				ses.srv.locked(func(l *later) { ses.toldLocked(b, m, false, l) })
			})
		})
	})
}

// failWait is how long after a failed request a session must live on for the
// failure to be that of the request alone.
const failWait = 100 * time.Millisecond

// toldLocked takes the server's answer about a subscription.
func (ses *session) toldLocked(b *sub, m mcp.Method, done bool, l *later) {
	b.asking = false
	if ses.phase == over {
		return
	}
	b.on = m == mcp.ResourcesSubscribe && done
	if m == mcp.ResourcesSubscribe && !done {
		for n := range b.members {
			delete(b.members, n)
			n.watchedLocked(b.uri, false, l)
		}
	}
	ses.nextLocked(b, l)
}

// followLocked has a server that sends what it sends unasked only to those who
// listen be listened to where that matters: to a listen, or to a call that has the
// session for itself.
func (ses *session) followLocked(l *later) {
	conn, ok := ses.conn.(upstream.Listener)
	on := ses.exclusive || len(ses.listens) > 0
	if !ok || ses.following == on {
		return
	}
	ses.following = on
	ses.out.put(func() { conn.Listen(on) }, true, l)
}
