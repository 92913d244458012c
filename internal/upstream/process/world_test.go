package process

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/child"
	"github.com/signalbox-mcp/signalbox/internal/mcp"
	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// world is a Server whose processes are fake.
type world struct {
	t testing.TB
	*Server

	mu    sync.Mutex
	procs []*fakeProcess // all that were started
	setup func(*fakeProcess) error
}

func newWorld(t testing.TB, shared bool, adjust ...func(*Config)) *world {
	w := &world{t: t}
	cfg := Config{
		Name: "fake", Shared: shared, Start: w.start, ShowStderr: true, Version: "1.0",
		StartTimeout: 2 * time.Minute, CallTimeout: 10 * time.Minute, CallLimit: 2 * time.Hour,
		MaxMessage: 64 << 20, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Metrics: NewMetrics(),
	}
	for _, f := range adjust {
		f(&cfg)
	}
	w.Server = New(cfg)
	return w
}

func (w *world) start(h child.Handler, _ upstream.Request) (Pipe, error) {
	p := &fakeProcess{handler: h, done: make(chan struct{})}
	p.news.L = &p.mu
	w.mu.Lock()
	setup := w.setup
	w.mu.Unlock()
	var err error
	if setup != nil {
		err = setup(p)
	}
	if err != nil && err != errStarted {
		return nil, err
	}
	w.mu.Lock()
	w.procs = append(w.procs, p)
	w.mu.Unlock()
	if err == nil {
		go p.run()
	}
	return p, nil
}

// errStarted says that the process runs already.
var errStarted = errors.New("started")

var errNoSuchCommand = errors.New(`server "fake": start "nope": executable not found in /bin`)

// starts says how processes are from now on: f prepares each before it is
// started; its error is that of the start.
func (w *world) starts(f func(*fakeProcess) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.setup = f
}

// proc is the newest process.
func (w *world) proc() *fakeProcess {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.procs) == 0 {
		w.t.Fatal("no process was started")
	}
	return w.procs[len(w.procs)-1]
}

func (w *world) spawned() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.procs)
}

// dropped is the number of drops by reason, without zeros.
func (w *world) dropped() map[DropReason]int {
	reg := prometheus.NewRegistry()
	reg.MustRegister(w.cfg.Metrics.Drops)
	families, err := reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	counts := make(map[DropReason]int)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "reason" {
					counts[DropReason(l.GetValue())] = int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return counts
}

// idOf is the raw id token in a line.
func idOf(line string) string {
	span, _ := wire.Lookup([]byte(line), "id")
	return string(span.Of([]byte(line)))
}

func methodOf(line string) mcp.Method {
	span, _ := wire.Lookup([]byte(line), "method")
	name, _ := wire.Unquote(span.Of([]byte(line)))
	return mcp.MethodOf(name)
}

func (p *fakeProcess) answers(line, result string) {
	p.handler.Line(wire.AppendResult(nil, []byte(idOf(line)), []byte(result)))
}

const initResult = `{"protocolVersion":"2025-11-25","capabilities":{}}`

// handshake is a server that answers initialize and nothing else.
func handshake(p *fakeProcess, line string) {
	if methodOf(line) == mcp.Initialize {
		p.answers(line, initResult)
	}
}

// echo is a server that answers every request with its params.
func echo(p *fakeProcess, line string) {
	msg, err := wire.Parse([]byte(line))
	switch {
	case err != nil:
		panic(err)
	case methodOf(line) == mcp.Initialize:
		p.answers(line, initResult)
	case msg.Kind == wire.Request:
		result := string(msg.Bytes(msg.Params))
		if result == "" {
			result = "{}"
		}
		p.answers(line, result)
	}
}

// client is a session that a test drives by hand.
type client struct {
	t            testing.TB
	conn         upstream.Conn
	init, events *checkingSink
	err          error // of Open
	table        atomic.Pointer[hub]
}

func request(line string) upstream.Request {
	msg, err := wire.Parse([]byte(line))
	if err != nil {
		panic(err)
	}
	return upstream.NewRequest(msg)
}

func (c *client) hub() *hub { return c.table.Load() }

func (w *world) open() *client {
	c := &client{t: w.t}
	c.table.Store(w.Server.shared) // else it is known after Open
	c.init, c.events = newCallSink(w.t, "initialize", c.hub), newEventsSink(w.t, "events", c.hub)
	c.conn, c.err = w.Open(request(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`), c.init, c.events)
	if c.err == nil {
		c.table.Store(c.conn.(*conn).hub)
	}
	return c
}

// call starts a request. The sink of one that was refused has ended with that.
func (c *client) call(id, method, params string) (upstream.Call, *checkingSink) {
	sink := newCallSink(c.t, method+" "+id, c.hub)
	call, err := c.conn.Start(request(`{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+`}`), sink)
	if err != nil {
		sink.End(err)
	}
	return call, sink
}

func (c *client) send(line string) error { return c.conn.Send(request(line)) }

const initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

// demand checks how a call ended: with a reply that contains want, or with an
// error whose reason or message contains it. "open" is no end.
func demand(t testing.TB, s *checkingSink, want string) {
	t.Helper()
	ends, reply, err := s.state()
	got := reply
	switch {
	case ends == 0:
		got = "open"
	case err != nil:
		e := upstream.RPCError(err)
		got = e.Reason + ": " + e.Message
	}
	if !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", s.name, got, want)
	}
}
