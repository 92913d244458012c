package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"sync"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/sse"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// noStream: GET brought no event stream of HTTP+SSE.
type noStream struct{ error }

func (n *noStream) Unwrap() error { return n.error }

// eventStream is a way to an HTTP+SSE server.
type eventStream struct {
	s      *site
	post   *url.URL // where messages go
	end    context.CancelFunc
	reader sync.WaitGroup
	events chan sse.Event // closed when the stream has ended
	ctx    context.Context
}

// openStream opens the stream and waits for its first event. Its error is a
// noStream where it seems not to be one.
func (s *site) openStream() (*eventStream, error) {
	ctx, end := context.WithCancel(s.x.ctx)
	limit, cancel := s.x.wait("endpoint", s.x.server.StartTimeout)
	defer cancel()
	stop := context.AfterFunc(limit, end)
	defer stop()
	resp, err := s.do(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		end()
		return nil, s.x.inTime(err, limit)
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		defer end()
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return nil, &noStream{s.x.wrongStatus(s.url, resp)}
		}
		return nil, &noStream{s.x.wrongContent(kind, resp)}
	}
	st := &eventStream{s: s, end: end, events: make(chan sse.Event), ctx: ctx}
	st.reader.Go(func() { st.read(resp.Body) })
	if err := st.begin(limit); err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

// inTime is err, or that nothing came in time.
func (x *exam) inTime(err error, limit context.Context) error {
	if limit.Err() != nil && x.ctx.Err() == nil {
		return x.noAnswer()
	}
	return err
}

func (x *exam) noAnswer() *Finding {
	return &Finding{"http-silent", "it takes the request and does not answer within " + x.server.StartTimeout.String() + "; look into the server's log, or raise --start-timeout if it is slow to start"}
}

// read is the goroutine that reads the stream.
func (st *eventStream) read(body io.ReadCloser) {
	defer close(st.events)
	defer body.Close()
	r := sse.NewReader(body, st.s.x.server.MaxMessage)
	defer r.Release()
	for {
		e, err := r.Next()
		if err != nil {
			return
		}
		e.Data = bytes.Clone(e.Data)
		select {
		case st.events <- e:
		case <-st.ctx.Done():
			return
		}
	}
}

// begin waits for the endpoint event.
func (st *eventStream) begin(limit context.Context) error {
	for {
		e, err := st.event(limit)
		switch {
		case errors.Is(err, errNoAnswer):
			return &noStream{&Finding{"no-endpoint", "its event stream brings no endpoint event, with which HTTP+SSE begins; give the URL of its MCP endpoint"}}
		case err != nil:
			return err
		case e.Type != "endpoint":
			continue
		}
		to, err := st.s.url.Parse(string(e.Data))
		if err != nil || !sameOrigin(st.s.url, to) && !sameOrigin(st.s.x.server.URL, to) {
			return &Finding{"endpoint-foreign", "its event stream leads messages to another origin, " + st.s.x.quote(string(e.Data)) + ", which is refused; let the server, or the proxy before it, name its public address there"}
		}
		to.Scheme, to.Host = st.s.url.Scheme, st.s.url.Host
		st.post = to
		return nil
	}
}

// event waits for the next event. errNoAnswer: none came in time.
func (st *eventStream) event(ctx context.Context) (sse.Event, error) {
	select {
	case e, ok := <-st.events:
		if !ok && ctx.Err() != nil {
			return sse.Event{}, errNoAnswer
		}
		if !ok {
			return sse.Event{}, &Finding{"stream-ended", "its event stream ends before the answer; the server has to be mended, or a proxy before it cuts streams off"}
		}
		return e, nil
	case <-ctx.Done():
		return sse.Event{}, errNoAnswer
	}
}

// ask implements asker.
func (st *eventStream) ask(ctx context.Context, method, params string) (wire.Message, error) {
	st.s.next++
	id := fmt.Sprintf(`"signalbox-%d"`, st.s.next)
	err := st.s.send(ctx, st.post, []byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+"}"))
	for err == nil {
		var e sse.Event
		if e, err = st.event(ctx); err != nil || len(e.Data) == 0 || !e.IsMessage() {
			continue
		}
		msg, wrong := wire.Parse(e.Data)
		switch {
		case wrong != nil:
			err = &Finding{"bad-json", "an event of its stream is no JSON-RPC message (" + faultOf(wrong) + ", in " + st.s.x.quote(string(e.Data)) + "); the server has to be mended"}
		case msg.Kind == wire.Request:
			err = st.s.send(ctx, st.post, ownAnswer(&msg))
		case msg.Kind == wire.Response:
			return msg, st.s.matches(id, &msg)
		}
	}
	if errors.Is(err, errNoAnswer) {
		err = st.s.x.noAnswer()
	}
	return wire.Message{}, err
}

// tell implements way.
func (st *eventStream) tell(ctx context.Context, method string) error {
	return st.s.send(ctx, st.post, []byte(`{"jsonrpc":"2.0","method":"`+method+`"}`))
}

// negotiated implements way: HTTP+SSE has no header for it.
func (st *eventStream) negotiated(mcp.Revision) {}

// close ends the stream, and with it the session.
func (st *eventStream) close() {
	st.end()
	st.reader.Wait()
}
