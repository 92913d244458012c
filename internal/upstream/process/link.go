package process

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// link is one life of a process. Its methods are called by the goroutine that
// reads the process's output, which serves every session and never blocks.
type link struct {
	hub   *hub
	noise noise
	// begun is closed when the table is ready for what the process says. Starting
	// a process waits for nobody, so that the reader may wait for it.
	begun chan struct{}

	line []byte // what is being taken, if it is one message; owned by the reader

	// guarded by hub.mu
	pipe    Pipe  // nil until started
	up      bool  // has answered initialize
	doomed  error // why it is being stopped without ever having been up; else nil
	batches bool  // negotiated 2025-03-26, where an array is a batch
}

// write queues a line, with the headers where the pipe takes them.
func (l *link) write(line []byte, header http.Header) (*child.Ticket, error) {
	if p, ok := l.pipe.(HeaderPipe); ok {
		return p.WriteWith(line, header)
	}
	return l.pipe.Write(line)
}

func newLink(h *hub) *link { return &link{hub: h, begun: make(chan struct{})} }

// Line takes one line of stdout.
func (l *link) Line(line []byte) {
	<-l.begun
	l.hub.srv.count.out.Add(float64(len(line) + 1))
	if !wire.IsBatch(line) {
		l.line = line
		l.single(line)
		l.line = nil
		return
	}
	l.hub.mu.Lock()
	batches := l.batches
	l.hub.mu.Unlock()
	if !batches { // of no other revision, so it is noise
		l.skip(line)
		return
	}
	elems, err := wire.SplitBatch(line)
	if err != nil && !utf8.Valid(line) {
		elems, err = wire.SplitBatch(l.repair(line))
	}
	if err != nil {
		l.skip(line)
		return
	}
	for _, e := range elems {
		l.single(bytes.Clone(e)) // own bytes: a sink keeps them, and replies move them
	}
}

// single takes what should be one message.
func (l *link) single(line []byte) {
	msg, err := wire.Parse(line)
	if err != nil && !utf8.Valid(line) {
		line = l.repair(line)
		l.line = nil
		msg, err = wire.Parse(line)
	}
	if err == nil {
		l.message(&msg, msg.Bytes(msg.ID))
		return
	}
	if msg, echo, ok := longEcho(line); ok {
		l.message(&msg, echo)
		return
	}
	if bad := new(wire.Error); errors.As(err, &bad) && l.hub.spoilt(bad) {
		return
	}
	l.skip(line)
}

func (l *link) repair(line []byte) []byte {
	l.noise.warn(l.hub.log, "the server wrote invalid UTF-8; bad bytes become U+FFFD", line)
	return bytes.ToValidUTF8(line, []byte("\uFFFD"))
}

// longEcho reads a response whose id is longer than wire lets an id be: the
// ROUTE comes on top of a client's id of up to 1 KiB, and a server may escape
// what the client did not. The message has another id in that place.
func longEcho(line []byte) (msg wire.Message, echo []byte, ok bool) {
	span, found := wire.Lookup(line, "id")
	echo = span.Of(line)
	if !found || len(echo) <= wire.MaxIDLen {
		return msg, nil, false
	}
	msg, err := wire.Parse(wire.Splice(nil, line, wire.Edit{Span: span, New: []byte("0")}))
	return msg, echo, err == nil && msg.Kind == wire.Response
}

func (l *link) message(msg *wire.Message, echo []byte) {
	switch msg.Kind {
	case wire.Response:
		l.hub.response(l, msg, echo)
	case wire.Request:
		l.hub.request(msg)
	case wire.Notification:
		l.hub.notification(msg)
	}
}

func (l *link) skip(line []byte) {
	l.hub.srv.drops.note(DropNoise, "")
	l.noise.add(line, l.hub.log)
}

// Oversize takes what is known of a line above the limit: the call that it
// would have answered fails, and the process lives on.
func (l *link) Oversize(head, tail []byte, size int64) {
	<-l.begun
	h := l.hub
	h.srv.drops.add(DropOversize, "")
	id, ok := wire.FindID(head, tail)
	if !ok {
		return
	}
	h.mu.Lock()
	k := h.findLocked(id)
	if k != nil {
		h.takeLocked(k)
	}
	h.mu.Unlock()
	if k != nil {
		k.fail(upstream.Errorf(mcp.CodeInternal, "oversize",
			"the server's answer has %d bytes, more than the limit of %d (--max-message)", size, h.srv.cfg.MaxMessage))
	}
}

// Exit takes the end of the process, or of its output.
func (l *link) Exit(info child.ExitInfo) {
	<-l.begun // so that the error can quote the process's last words
	h := l.hub
	h.mu.Lock()
	unasked := !h.closed && l.doomed == nil
	err := h.endErrorLocked(l, info)
	h.link = nil
	var ended []over
	var events upstream.Sink
	if h.shared {
		ended = h.deathLocked(err)
	} else {
		h.closed = true
		h.stopTimersLocked()
		if c := h.onlyLocked(); c != nil {
			ended, events = c.removeLocked(err), c.events
		}
	}
	h.mu.Unlock()
	if unasked {
		h.srv.count.crashes.Inc()
		h.log.Warn("server process ended", "reason", info.String(), "count", len(ended))
	}
	failAll(ended)
	if events != nil {
		events.End(err)
	}
	h.srv.forget(h)
}

// endErrorLocked is what those are told who had to do with a process that
// ended. One that ends by itself before it is up counts for the backoff.
func (h *hub) endErrorLocked(l *link, info child.ExitInfo) error {
	switch {
	case l.doomed != nil:
		return l.doomed
	case h.closed:
		return upstream.ErrClosed
	case l.up:
		return h.exitError(l, info.String())
	}
	err := h.startError(l, info.String()+" before it answered "+h.greeting().String())
	if h.shared {
		h.srv.failedStart(err)
	}
	return err
}

// exitError is what the callers of a process that ended are told. The last
// stderr lines stand in it only where nobody else's data can be in them.
func (h *hub) exitError(l *link, how string) *upstream.Error {
	e := upstream.Errorf(mcp.CodeInternal, "process_exited", "%s %s", h.srv.cfg.What, how)
	h.explain(l, e, !h.shared)
	return e
}

// startError is what callers are told of a process that never got ready.
func (h *hub) startError(l *link, how string) *upstream.Error {
	e := upstream.Errorf(mcp.CodeInternal, "start_failed", "%s %s", h.srv.cfg.What, how)
	if hint := l.noise.hint(l.pipe); hint != "" {
		e.Message += "; " + hint
	}
	h.explain(l, e, true)
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
