package remote

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// letter is one message on its way to an HTTP+SSE server.
type letter struct{ req upstream.Request }

func (l letter) isRequest() bool { return l.req.Msg.Kind == wire.Request }

// mayRepeat: the server may get it twice.
func (l letter) mayRepeat() bool {
	if l.isRequest() {
		return l.req.Method == mcp.Initialize || repeatable(l.req.Method)
	}
	return harmless(&l.req)
}

// endpoint is the request line for POSTs, and what follows it: same origin
// only, or credentials would go wherever the server says.
func (s *Server) endpoint(ref string) (string, error) {
	u, err := s.cfg.URL.Parse(ref)
	if err != nil {
		return "", errors.New("its endpoint event holds no URL")
	}
	if !sameOrigin(s.cfg.URL, u) {
		return "", fmt.Errorf("its endpoint event names another origin, %s://%s, which is refused", cut(u.Scheme), cut(u.Host))
	}
	target, ok := requestTarget(u)
	if !ok {
		return "", errors.New("its endpoint event holds no URL")
	}
	return "POST " + target + " HTTP/1.1\r\n" + commonLines(&s.cfg) + postLines, nil
}

const (
	// writeWait is how long a message may hold up those behind it.
	writeWait = time.Second
	// answerWait is how long a notification waits for the answers to what went
	// before it: a cancel must not come before its request.
	answerWait = 100 * time.Millisecond
)

// way is how far a message has come.
type way struct {
	written  chan struct{} // closed when it is, or will not be
	answered chan struct{} // closed when the POST is over
}

// write posts what is queued, each message when the one before it is written, or
// answered if that was a notification: so they arrive in order, and none waits
// for the answer to a slow POST.
func (p *EventPipe) write(post string) {
	defer p.s.wg.Done()
	var under []way // what may be unanswered
	for {
		l, ok := p.next()
		if !ok {
			return
		}
		under = slices.DeleteFunc(under, func(w way) bool { return isOver(w.answered) })
		w := way{make(chan struct{}), make(chan struct{})}
		next := w.written
		if l.req.Msg.Kind == wire.Notification {
			p.await(answerWait, under...)
			next = w.answered
		}
		p.s.wg.Add(1)
		go p.send(post, l, w)
		p.await(writeWait, way{answered: next})
		under = append(under, w)
	}
}

// await waits until all are answered, within bounds.
func (p *EventPipe) await(most time.Duration, under ...way) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for _, w := range under {
		select {
		case <-w.answered:
		case <-timer.C:
			return
		case <-p.stream.gone:
			return
		}
	}
}

func isOver(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// next waits for something to send; false: the pipe was stopped.
func (p *EventPipe) next() (letter, bool) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 {
			l := p.queue[0]
			p.queue[0] = letter{}
			p.queue = p.queue[1:]
			p.mu.Unlock()
			return l, true
		}
		p.mu.Unlock()
		select {
		case <-p.wake:
		case <-p.stream.gone:
			return letter{}, false
		}
	}
}

// send posts one message. A request that the server did not take is answered
// here.
func (p *EventPipe) send(post string, l letter, w way) {
	defer p.s.wg.Done()
	defer close(w.answered)
	o := options{deadline: time.Now().Add(postTimeout), hold: newHold(), sent: sync.OnceFunc(func() { close(w.written) })}
	defer o.sent()
	if l.isRequest() {
		// The hub knows when the time of a call is over.
		o.deadline = time.Now().Add(p.s.cfg.CallLimit)
	}
	if !p.enter(o.hold) {
		return
	}
	err := p.post(post, l, o)
	p.mu.Lock()
	delete(p.posts, o.hold)
	p.countLocked(l, -1)
	p.mu.Unlock()
	switch {
	case err == nil || p.stream.aborted():
	case l.isRequest():
		p.line(upstream.ErrorReply(l.req.Msg.Bytes(l.req.Msg.ID), err))
	default:
		p.s.cfg.Log.Warn("a message did not reach the server", "err", err)
	}
}

// enter makes Stop give up what is being sent; false: it has been called.
func (p *EventPipe) enter(o *hold) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.posts[o] = struct{}{}
	return true
}

func (p *EventPipe) post(post string, l letter, o options) error {
	raw := l.req.Msg.Raw
	head := appendLength(p.s.heads.appendForwarded([]byte(post), l.req.Header), len(raw))
	h, resp, state, err := p.s.roundTrip(p.addr, head, raw, o)
	if isStale(err) && l.mayRepeat() {
		o.fresh = true
		h, resp, state, err = p.s.roundTrip(p.addr, head, raw, o)
	}
	switch {
	case err != nil && state == notSent:
		return unreachable(err)
	case err != nil:
		return upstream.Errorf(mcp.CodeInternal, "outcome_unknown",
			"the connection to the server broke before it took the message (%v); outcome unknown: the request may have run", rootCause(err))
	}
	defer o.hold.put(p.addr.pool, h)
	if resp.Status >= 200 && resp.Status < 300 {
		if resp.Length != 0 {
			discard(h, resp)
		}
		return nil
	}
	body, _ := readAll(resp, maxErrorBody, nil)
	return statusError(target{}, resp, body)
}
