package front

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
)

// retryHint is what a client is asked to wait before it comes back to a stream
// that was closed on purpose.
const retryHint = time.Second

// firstBytes is room for the first events of a stream.
const firstBytes = 1 << 10

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
