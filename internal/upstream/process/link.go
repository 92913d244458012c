package process

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// link is one life of a process. Its methods are called by the goroutine that
// reads the process's output, which serves every session and never blocks.
type link struct {
	hub      *hub
	launched chan struct{} // closed when pipe is set, or never will be

	// owned by the reader goroutine
	noise noise

	// guarded by hub.mu
	pipe     Pipe // nil until started
	up       bool // has answered initialize
	exited   bool
	exitErr  error
	timedOut bool // stopped because it did not answer initialize
	batches  bool // negotiated 2025-03-26, where an array is a batch
}

func newLink(h *hub) *link { return &link{hub: h, launched: make(chan struct{})} }

// Line takes one line of stdout.
func (l *link) Line(line []byte) {
	l.hub.srv.count.out.Add(float64(len(line) + 1))
	if wire.IsBatch(line) {
		l.batch(line)
		return
	}
	msg, err := wire.Parse(line)
	if err != nil && !utf8.Valid(line) {
		l.hub.log.Warn("the server wrote invalid UTF-8; bad bytes become U+FFFD")
		line = bytes.ToValidUTF8(line, []byte("\uFFFD"))
		msg, err = wire.Parse(line)
	}
	if err != nil {
		l.skip(line)
		return
	}
	l.message(msg)
}

// batch takes an array: a batch from a server that speaks 2025-03-26, else
// noise.
func (l *link) batch(line []byte) {
	l.hub.mu.Lock()
	batches := l.batches
	l.hub.mu.Unlock()
	elems, err := wire.SplitBatch(line)
	if !batches || err != nil {
		l.skip(line)
		return
	}
	for _, e := range elems {
		msg, err := wire.Parse(bytes.Clone(e)) // own bytes: a sink keeps them, and replies move them
		if err != nil {
			l.skip(e)
			continue
		}
		l.message(msg)
	}
}

func (l *link) message(msg wire.Message) {
	switch msg.Kind {
	case wire.Response:
		l.hub.response(l, &msg)
	case wire.Request:
		l.hub.request(&msg)
	case wire.Notification:
		l.hub.notification(&msg)
	}
}

func (l *link) skip(line []byte) {
	l.hub.srv.drops.count.WithLabelValues(l.hub.srv.cfg.Name, string(DropNoise)).Inc()
	l.noise.add(line, l.hub.log)
}

// Oversize takes what is known of a line above the limit: the call that it
// would have answered fails, and the process lives on.
func (l *link) Oversize(head, tail []byte, size int64) {
	h := l.hub
	h.srv.drops.add(DropOversize, "")
	id, ok := wire.FindID(head, tail)
	if !ok {
		return
	}
	h.mu.Lock()
	k := h.findLocked(id)
	if k != nil {
		delete(k.conn.calls, k.n)
	}
	h.mu.Unlock()
	if k != nil {
		k.fail(upstream.Errorf(mcp.CodeInternal, "oversize",
			"the server's answer has %d bytes, more than the limit of %d (--max-message)", size, h.srv.cfg.MaxMessage))
	}
}

// Exit takes the end of the process, or of its output.
func (l *link) Exit(info child.ExitInfo) {
	<-l.launched // so that the error can quote the process's last words
	h := l.hub
	h.mu.Lock()
	l.exited = true
	if h.link == l {
		h.link = nil
	}
	var err error = upstream.ErrClosed
	asked := h.closed || l.timedOut
	switch {
	case asked:
	case l.up:
		err = h.exitError(l, info.String())
	default:
		err = h.startError(l, info.String()+" before it answered initialize")
	}
	l.exitErr = err
	var calls []*call
	var conns []*conn
	if h.shared {
		calls = h.deathLocked()
	} else {
		h.closed = true
		h.stopTimersLocked()
		conns = slices.Collect(maps.Values(h.conns))
		for _, c := range conns {
			calls = append(calls, c.removeLocked()...)
		}
	}
	h.mu.Unlock()
	if !asked {
		h.srv.count.crashes.Inc()
		h.log.Warn("server process ended", "how", info.String(), "open_calls", len(calls))
	}
	for _, k := range calls {
		k.fail(err)
	}
	for _, c := range conns {
		c.events.End(err)
	}
	h.srv.forget(h)
}

// exitError is what the callers of a process that ended are told. The last
// stderr lines stand in it only where nobody else's data can be in them.
func (h *hub) exitError(l *link, how string) *upstream.Error {
	e := upstream.Errorf(mcp.CodeInternal, "process_exited", "server process %s", how)
	h.explain(l, e, !h.shared)
	return e
}

// startError is what callers are told of a process that never got ready.
// Failures of its own making count for the backoff.
func (h *hub) startError(l *link, how string) *upstream.Error {
	e := upstream.Errorf(mcp.CodeInternal, "start_failed", "server process %s", how)
	if hint := l.noise.hint(l.pipe); hint != "" {
		e.Message += "; " + hint
	}
	h.explain(l, e, true)
	if !l.timedOut {
		h.srv.failedStart(e)
	}
	return e
}

func (h *hub) explain(l *link, e *upstream.Error, private bool) {
	if l.pipe == nil {
		return
	}
	tail := l.pipe.Tail()
	if tail == "" {
		return
	}
	if private && h.srv.cfg.ShowStderr {
		e.Message += "; its last output: " + lastBytes(tail, 2048)
		return
	}
	ref := newConnPart()[:8]
	e.Message += fmt.Sprintf("; the log has its last output under reference %s", ref)
	h.log.Warn("last output of a server process", "reference", ref, "output", lastBytes(tail, 8192))
}

func lastBytes(s string, n int) string {
	if len(s) > n {
		s = s[len(s)-n:]
		for len(s) > 0 && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return s
}
