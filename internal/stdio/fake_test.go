package stdio

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// fakeServer opens fakeConns. What it answers to initialize is the test's to
// say; everything else it answers with the method's name, but for "hang".
type fakeServer struct {
	init    string // result of initialize; "" refuses it by an error reply
	refuse  error  // Open returns it
	fail    error  // the call ends with it, before Open returns
	listens bool

	mu    sync.Mutex
	conns []*fakeConn
}

type fakeConn struct {
	srv    *fakeServer
	events upstream.Sink

	mu        sync.Mutex
	ended     bool
	endReason error
	calls     map[*fakeCall]bool
	got       []string // what came by Start and Send
	listening []bool
}

type fakeCall struct {
	c    *fakeConn
	id   []byte
	sink upstream.Sink
}

func (s *fakeServer) Close() {}

func (s *fakeServer) Open(req upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		return nil, s.refuse
	}
	c := &fakeConn{srv: s, events: events, calls: make(map[*fakeCall]bool)}
	s.conns = append(s.conns, c)
	id := req.Msg.Bytes(req.Msg.ID)
	switch {
	case s.fail != nil:
		reply.End(s.fail)
	case s.init == "":
		deliver(reply, wire.AppendError(nil, id, -32602, "no", nil))
	default:
		deliver(reply, wire.AppendResult(nil, id, []byte(s.init)))
	}
	if s.listens {
		return listeningConn{c}, nil
	}
	return c, nil
}

type listeningConn struct{ *fakeConn }

func (c listeningConn) Listen(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listening = append(c.listening, on)
}

func deliver(s upstream.Sink, reply []byte) {
	s.Deliver(upstream.Frame{Data: reply, Relation: upstream.Reply})
	s.End(nil)
}

func (c *fakeConn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return nil, upstream.ErrClosed
	}
	c.got = append(c.got, string(req.Msg.Raw))
	k := &fakeCall{c, bytes.Clone(req.Msg.Bytes(req.Msg.ID)), sink}
	name := string(req.Msg.MethodName())
	if name == "hang" {
		c.calls[k] = true
	}
	c.mu.Unlock()
	if name != "hang" {
		sink.Deliver(upstream.Frame{Data: []byte("{\"jsonrpc\":\"2.0\",\r\n\"method\":\"notifications/progress\"}"), Relation: upstream.Own})
		deliver(sink, wire.AppendResult(nil, k.id, wire.AppendQuote(nil, name)))
	}
	return k, nil
}

func (k *fakeCall) Cancel(error) {}

func (c *fakeConn) Send(req upstream.Request) error {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return upstream.ErrClosed
	}
	c.got = append(c.got, string(req.Msg.Raw))
	var hit *fakeCall
	if req.Method == mcp.NotifCancelled {
		for k := range c.calls {
			if bytes.Equal(k.id, req.Msg.Bytes(req.Msg.P.RequestID)) {
				hit = k
				delete(c.calls, k)
			}
		}
	}
	c.mu.Unlock()
	if hit != nil {
		hit.sink.End(upstream.ErrCancelled)
	}
	return nil
}

func (c *fakeConn) End(reason error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended, c.endReason = true, reason
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for k := range calls {
		k.sink.End(reason)
	}
	c.events.End(reason)
}

// answer ends the calls that hang.
func (c *fakeConn) answer() {
	c.mu.Lock()
	calls := c.calls
	c.calls = make(map[*fakeCall]bool)
	c.mu.Unlock()
	for k := range calls {
		deliver(k.sink, wire.AppendResult(nil, k.id, []byte(`"late"`)))
	}
}

func (s *fakeServer) conn(i int) *fakeConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conns[i]
}

// run is one Serve with its client.
type run struct {
	t      *testing.T
	srv    *fakeServer
	in     *io.PipeWriter
	out    *io.PipeReader
	lines  chan string
	done   chan error
	cancel context.CancelFunc
}

// serve runs a test with a client; it ends by the end of its input.
func serve(t *testing.T, srv *fakeServer, test func(r *run)) {
	t.Helper()
	serveOn(t, srv, srv, test)
}

// serveOn serves server, of which srv is a part.
func serveOn(t *testing.T, server upstream.Server, srv *fakeServer, test func(r *run)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := startOn(t, server, srv)
		go r.read()
		test(r)
		must(t, r.close())
	})
}

func start(t *testing.T, srv *fakeServer) *run { return startOn(t, srv, srv) }

func startOn(t *testing.T, server upstream.Server, srv *fakeServer) *run {
	r := &run{t: t, srv: srv, lines: make(chan string, 10000), done: make(chan error, 1)}
	var inR *io.PipeReader
	var outW *io.PipeWriter
	inR, r.in = io.Pipe()
	r.out, outW = io.Pipe()
	var ctx context.Context
	ctx, r.cancel = context.WithCancel(t.Context())
	go func() {
		r.done <- Serve(ctx, inR, outW, Options{Server: server, MaxMessage: 1 << 10, Log: slog.New(slog.DiscardHandler)})
		_ = outW.Close()
		_ = inR.Close()
	}()
	return r
}

// read checks that every line is one JSON text.
func (r *run) read() {
	in := bufio.NewScanner(r.out)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if !json.Valid(in.Bytes()) || strings.ContainsRune(in.Text(), '\r') {
			r.t.Errorf("a line that is no message: %q", in.Text())
		}
		r.lines <- in.Text()
	}
	close(r.lines)
}

func (r *run) write(lines ...string) {
	r.t.Helper()
	_, err := io.WriteString(r.in, strings.Join(lines, "\n")+"\n")
	must(r.t, err)
}

// wants reads one line and checks that all parts stand in it.
func (r *run) wants(parts ...string) {
	r.t.Helper()
	select {
	case line := <-r.lines:
		for _, p := range parts {
			if !strings.Contains(line, p) {
				r.t.Errorf("got %s, want %s in it", line, p)
			}
		}
	case <-time.After(time.Hour):
		r.t.Fatalf("no line came; want %v", parts)
	}
}

func (r *run) nothing() {
	r.t.Helper()
	synctest.Wait()
	if len(r.lines) > 0 {
		r.t.Errorf("a line came: %s", <-r.lines)
	}
}

// close ends the input and waits for Serve.
func (r *run) close() error {
	r.cancelAtEnd()
	_ = r.in.Close()
	return <-r.done
}

func (r *run) cancelAtEnd() { r.t.Cleanup(r.cancel) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	version     = `{"protocolVersion":"2025-06-18"}`
	initLine    = `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18"}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ping        = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	hang        = `{"jsonrpc":"2.0","id":7,"method":"hang"}`
)

var errGone = errors.New("gone for good")
