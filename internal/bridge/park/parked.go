package park

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/bridge/state"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// A call is parked from the moment its client gets an input_required result until
// that client comes back with the requestState of that round, which is good once:
//
//	running -> gathering -> parked (round n) -> running -> ... -> over
//
// A retry whose inputResponses cannot be read does not consume the round. One that
// leaves answers out does, and is asked for the rest at once, in the next round.

// gatherTime is how long a first question waits for others that the server asks
// at the same time.
const gatherTime = 25 * time.Millisecond

// maxAsks bounds the questions of one call that wait for answers.
const maxAsks = 64

// parkID names a parked call. It is unguessable, and known to the client only
// sealed.
type parkID [16]byte

// ticket is what a requestState of kind state.Parked holds.
type ticket struct {
	id      parkID
	round   uint64
	replica string
}

func (t *ticket) bytes() []byte {
	return append(binary.AppendUvarint(t.id[:], t.round), t.replica...)
}

func readTicket(b []byte) (t ticket, ok bool) {
	if len(b) < len(t.id) {
		return t, false
	}
	rest := b[copy(t.id[:], b):]
	round, n := binary.Uvarint(rest)
	if n <= 0 {
		return t, false
	}
	t.round, t.replica = round, string(rest[n:])
	return t, true
}

// questionLocked takes a request of the server that came for the call.
func (k *call) questionLocked(m *wire.Message, l *later) {
	q := newQuestion(m)
	ses := k.ses
	switch {
	case q == nil || !k.asking || k.over || !ses.exclusive:
		ses.outsideLocked(mcp.MethodOf(m.MethodName()), m, l)
	case !k.can.has(q.needs):
		k.srv.count.questions(refused, 1)
		ses.answerLocked(k.client, upstream.ErrorReply(q.id, errUndeclared(q.needs)), l)
	case len(k.asks) >= maxAsks || !k.pinLocked():
		k.srv.count.questions(refused, 1)
		ses.answerLocked(k.client, refusal(q.method, q.id, errManyParked), l)
	default:
		k.asks = append(k.asks, q)
		if k.ex != nil && k.gather == nil {
			k.gather = time.AfterFunc(gatherTime, k.gathered)
		}
	}
}

// withdrawLocked: the server takes a question back (notifications/cancelled).
func (k *call) withdrawLocked(id []byte) {
	k.asks = slices.DeleteFunc(k.asks, func(q *question) bool {
		gone := bytes.Equal(q.id, id)
		if gone {
			k.srv.count.questions(withdrawn, 1)
		}
		return gone
	})
}

// pinLocked counts the call among those that hold a session while their client
// thinks. false: there are as many as may be.
func (k *call) pinLocked() bool {
	s, who := k.srv, k.client.who()
	switch {
	case k.pinned:
		return true
	case s.pinned >= s.cfg.MaxParked, who != "" && !k.client.alone && s.pinnedBy[who] >= s.cfg.MaxParkedPerPrincipal:
		return false
	}
	k.pinned = true
	s.pinned++
	s.pinnedBy[who]++
	return true
}

func (k *call) unpinLocked() {
	if !k.pinned {
		return
	}
	k.pinned = false
	s, who := k.srv, k.client.who()
	s.pinned--
	if s.pinnedBy[who]--; s.pinnedBy[who] == 0 {
		delete(s.pinnedBy, who)
	}
}

// gathered puts to the client what the server has asked until now.
func (k *call) gathered() {
	k.srv.locked(func(l *later) {
		k.gather = nil
		if !k.over && k.ex != nil && len(k.asks) > 0 {
			k.parkLocked(l)
		}
	})
}

// parkLocked ends the exchange with all open questions. From now on nothing but
// the record holds the call.
func (k *call) parkLocked(l *later) {
	s := k.srv
	if k.round++; k.round == 1 {
		rand.Read(k.pid[:]) // never fails (crypto/rand, Go 1.24)
	}
	t := ticket{k.pid, k.round, s.cfg.Replica}
	token := s.cfg.Ring.Seal(k.binding, state.Parked, t.bytes(), s.cfg.Question+time.Minute) // the record decides
	for _, q := range k.asks {
		if !q.shown {
			q.shown = true
			s.count.questions(asked, 1)
		}
	}
	ex := k.ex
	k.ex = nil
	k.parked = true
	s.parked[k.pid] = k
	s.count.parked.Inc()
	k.expiry = time.AfterFunc(s.cfg.Question, func() { k.expire(t.round) })
	data := inputRequired(ex.id, k.asks, token, k.ses.offers.info)
	l.do(func() {
		ex.sink.Deliver(upstream.Frame{Data: data, Method: k.method, Relation: upstream.Reply})
		ex.sink.End(nil)
	})
	k.group.dispatchLocked(l) // who waits for this session may have to be refused
}

// unparkLocked consumes the round.
func (k *call) unparkLocked() {
	k.parked = false
	k.expiry.Stop()
	delete(k.srv.parked, k.pid)
	k.srv.count.parked.Dec()
}

// resume attaches the client that came back, and passes its answers on.
func (s *Server) resume(t ticket, answers map[string][]byte, c *client, req *upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	var ex *exchange
	err := error(state.ErrState)
	s.locked(func(l *later) {
		k := s.parked[t.id]
		if s.closed {
			err = errShutdown
			return
		}
		if k == nil || k.round != t.round {
			return
		}
		k.unparkLocked()
		ex = newExchange(k, c, req, sink)
		if held := k.held; held != nil {
			k.unpinLocked()
			l.do(func() { ex.settle(*held) })
			return
		}
		k.ex, k.can = ex, &c.can
		k.answeredLocked(answers, c, l)
		if len(k.asks) > 0 {
			k.parkLocked(l)
		}
	})
	if ex == nil {
		return nil, err
	}
	return ex, nil
}

// answeredLocked sends the server the answers that the client brings. What it
// does not say any more that it can answer is refused; the rest stays in asks.
func (k *call) answeredLocked(answers map[string][]byte, c *client, l *later) {
	var rest []*question
	for _, q := range k.asks {
		answer := answers[q.key]
		switch {
		case answer != nil && q.shown:
			k.srv.count.questions(answered, 1)
			if q.method == mcp.RootsList {
				k.ses.pool.roots = bytes.Clone(answer)
			}
			k.ses.answerLocked(c, wire.AppendResult(nil, q.id, answer), l)
		case !c.can.has(q.needs):
			k.srv.count.questions(refused, 1)
			k.ses.answerLocked(c, upstream.ErrorReply(q.id, errUndeclared(q.needs)), l)
		default:
			rest = append(rest, q)
		}
	}
	k.asks = rest
}

// expire ends a call whose client did not come back in time.
func (k *call) expire(round uint64) {
	s := k.srv
	s.locked(func(l *later) {
		if !k.parked || k.round != round {
			return
		}
		k.unparkLocked()
		k.unpinLocked()
		if k.over {
			return // with what was held
		}
		k.over = true
		ses := k.ses
		s.count.questions(expired, len(k.asks))
		for _, q := range k.asks {
			ses.answerLocked(k.client, refusal(q.method, q.id, errNoAnswer), l)
		}
		k.asks = nil
		if conn := k.conn; conn != nil {
			ses.out.put(func() { conn.Cancel(errNoAnswer) }, true, l)
		}
		delete(ses.calls, k)
		ses.endLocked(errNoAnswer, l)
	})
}
