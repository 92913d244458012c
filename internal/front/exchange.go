package front

import (
	"errors"
	"net/http"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/live"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
)

// decideWait is how long an answer may take before the event stream opens, so
// that no intermediary waits for a first byte.
const decideWait = 100 * time.Millisecond

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
