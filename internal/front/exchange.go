package front

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
)

// decideWait is how long an answer may take before the event stream opens, so
// that no intermediary waits for a first byte.
const decideWait = 100 * time.Millisecond

// retryHint is what a client is asked to wait before it comes back to a stream
// that was closed on purpose.
const retryHint = time.Second

// writePart bounds the bytes under one write deadline: a slow client that still
// reads is not cut off in the middle of a large message.
const writePart = 256 << 10

// firstBytes is room for the first events of a stream.
const firstBytes = 1 << 10

// exchange is one HTTP request on its way to an answer with events.
type exchange struct {
	f          *Front
	w          http.ResponseWriter
	r          *http.Request
	b          *live.Backend
	sess       *live.Session
	id         []byte // of the request; nil for a batch
	takes      live.Takes
	revision   mcp.Revision
	batch      bool
	until      time.Time // a call may run in this goroutine; decideWait after the body was read
	arrived    time.Time // see upstream.Request
	opening    bool      // the answer to initialize is outstanding
	perRequest bool      // the message is of the per-request era
	control    *http.ResponseController
}

// run answers a POST: with JSON where the responses are all there before
// anything else and by x.until, or where the client takes nothing else;
// with an event stream in all other cases.
func (x *exchange) run(reader *live.Reader) {
	defer reader.Close()
	var wait <-chan time.Time
	var buf [4]live.Event
	events := buf[:0]
	for {
		var over bool
		var err error
		events, over, err = reader.Take(events)
		switch {
		case errors.Is(err, live.ErrNotFound): // the server has lost the session
			x.f.fail(x.w, x.id, err)
			return
		case err != nil || x.mustStream(events):
			x.stream(reader, events)
			return
		case x.complete(events, over):
			if wait := reader.RetryAfter(); wait != "" {
				x.w.Header().Set("Retry-After", wait)
			}
			x.json(events)
			if !x.opening { // the answer to initialize may be kept for others
				x.f.cfg.Buffers.Put(reader.Spent())
			}
			return
		case over:
			x.stream(reader, events)
			return
		}
		if reader.Run(x.until) {
			continue
		}
		if wait == nil && x.takes != live.TakesJSON {
			t := time.NewTimer(time.Until(x.until))
			defer t.Stop()
			wait = t.C
		}
		select {
		case <-reader.Wake():
		case <-wait:
			x.stream(reader, events)
			return
		case <-x.r.Context().Done():
			if x.opening {
				x.sess.Abandon()
			}
			// It may have closed its side only: no status must tell it that all is
			// done. Nothing else aborts an exchange.
			panic(http.ErrAbortHandler)
		}
	}
}

// mustStream: something else than responses came, or a client that takes no
// JSON has something to read.
func (x *exchange) mustStream(events []live.Event) bool {
	if x.takes == live.TakesSSE {
		return len(events) > 0
	}
	for _, e := range events {
		if !e.Reply {
			return x.takes == live.TakesBoth
		}
	}
	return false
}

func (x *exchange) complete(events []live.Event, over bool) bool {
	if x.takes == live.TakesSSE {
		return false
	}
	if x.batch {
		return over && (len(events) > 0 || x.takes == live.TakesJSON)
	}
	return len(events) > 0
}

// enter puts the session id of an initialize into the headers, where the
// server has accepted it or the stream cannot wait for that.
func (x *exchange) enter(early bool) error {
	if !x.opening || !early && !x.sess.Accepted() {
		return nil
	}
	if err := x.sess.Register(x.r.Context()); err != nil {
		return err
	}
	x.w.Header().Set(mcp.HeaderSession, x.sess.ID())
	return nil
}

// json writes the one response, or the array of a batch.
func (x *exchange) json(events []live.Event) {
	if err := x.enter(false); err != nil {
		x.f.fail(x.w, x.id, err)
		return
	}
	if !x.batch {
		x.f.writeJSON(x.w, x.statusOf(events[0].Data), events[0].Data)
		return
	}
	body := []byte{'['}
	for i, e := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, e.Data...)
	}
	x.f.writeJSON(x.w, http.StatusOK, append(body, ']'))
}

// stream writes an event stream: first events, which are taken already, then
// what follows, until the stream is over or the client leaves.
func (x *exchange) stream(reader *live.Reader, events []live.Event) {
	if err := x.enter(!slices.ContainsFunc(events, func(e live.Event) bool { return e.Reply })); err != nil {
		x.f.fail(x.w, x.id, err)
		return
	}
	out := x.openStream(reader, events)
	gauge := x.f.cfg.Metrics.streams(x.b.Name, x.perRequest)
	gauge.Inc()
	defer gauge.Dec()
	id := func(e live.Event) string { return reader.EventID(e.Seq) }
	if x.perRequest { // nothing is resumed there
		id = func(live.Event) string { return "" }
	}
	_ = follow(x, reader, events, out, id)
}

// openStream sends the headers and returns the first bytes of the body. A
// client of 2025-11-25 gets an event id at once (SEP-1699); older clients
// cannot read an event without data and get a comment.
func (x *exchange) openStream(reader *live.Reader, taken []live.Event) []byte {
	reader.Keep()
	streamHeaders(x.w)
	if x.revision.AtLeast(mcp.R20251125) {
		at := reader.Position()
		if len(taken) > 0 {
			at = taken[0].Seq - 1
		}
		return sse.AppendPriming(make([]byte, 0, firstBytes), reader.EventID(at))
	}
	return sse.AppendComment(make([]byte, 0, firstBytes), "open")
}

func streamHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
}

// follow writes what a reader fetches to a client, and comments while there is
// nothing. It returns why it stopped; nil: the stream is over.
func follow(x *exchange, reader *live.Reader, events []live.Event, out []byte, id func(live.Event) string) error {
	x.control = http.NewResponseController(x.w)
	quiet := quietTimer{after: x.f.cfg.Keepalive}
	defer quiet.stop()
	var over, last bool
	var cut error
	for {
		for _, e := range events {
			var err error
			if out, err = x.event(out, id(e), e.Data); err != nil {
				return err
			}
		}
		if cut != nil && (errors.Is(cut, live.ErrDraining) || errors.Is(cut, live.ErrTooSlow)) {
			out = sse.AppendRetry(out, retryHint)
		}
		if len(out) > 0 {
			if err := x.write(out); err != nil {
				return err
			}
			if last { // the end of the body goes with it
				if cut == nil {
					_, _, _ = reader.Take(events[:0]) // what was taken counts as written
				}
				return cut
			}
			if err := x.control.Flush(); err != nil {
				return err
			}
			if x.r.ProtoMajor > 1 { // there, a deadline that passes while nothing is written ends the stream
				_ = x.control.SetWriteDeadline(time.Time{})
			}
			quiet.reset()
		}
		if over || cut != nil {
			return cut
		}
		if cap(out) > writePart {
			out = nil
		}
		out = out[:0]
		clear(events)
		events, over, cut = reader.Take(events[:0])
		last = over || cut != nil
		if over = over && len(events) == 0; len(events) > 0 || over || cut != nil || reader.Run(x.until) {
			continue
		}
		select {
		case <-reader.Wake():
		case <-quiet.wait():
			out = sse.AppendComment(out, "keepalive")
		case <-x.r.Context().Done():
			return errClientGone
		}
	}
}

// quietTimer is a timer that is made when somebody waits for it.
type quietTimer struct {
	after time.Duration
	timer *time.Timer
}

func (k *quietTimer) wait() <-chan time.Time {
	if k.timer == nil {
		k.timer = time.NewTimer(k.after)
	}
	return k.timer.C
}

// reset starts the time anew.
func (k *quietTimer) reset() {
	if k.timer != nil {
		k.timer.Reset(k.after)
	}
}

func (k *quietTimer) stop() {
	if k.timer != nil {
		k.timer.Stop()
	}
}

// event adds an event to out, and writes out when it is large. Large data is
// written from where it lies.
func (x *exchange) event(out []byte, id string, data []byte) ([]byte, error) {
	if len(data) < writePart || bytes.ContainsAny(data, "\r\n") {
		out = sse.AppendEvent(out, id, "message", data)
		if len(out) < writePart {
			return out, nil
		}
		return out[:0], x.write(out)
	}
	for _, part := range [][]byte{sse.AppendStart(out, id, "message"), data, []byte(sse.End)} {
		if err := x.write(part); err != nil {
			return nil, err
		}
	}
	return out[:0], nil
}

// write sends b in parts, each with its own deadline.
func (x *exchange) write(b []byte) error { return x.f.writeParts(x.w, x.control, b) }

func (f *Front) writeParts(w http.ResponseWriter, control *http.ResponseController, b []byte) error {
	f.cfg.Metrics.out.Add(float64(len(b)))
	for len(b) > 0 {
		n := min(len(b), writePart)
		_ = control.SetWriteDeadline(time.Now().Add(f.cfg.WriteTimeout)) // not every writer has deadlines
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// writeStatus answers without a body.
func (f *Front) writeStatus(w http.ResponseWriter, status int) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(f.cfg.WriteTimeout))
	w.WriteHeader(status)
}

// writeJSON answers with one JSON body. A client that is gone needs no report.
func (f *Front) writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_ = f.writeParts(w, http.NewResponseController(w), body)
}
