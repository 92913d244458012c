package policy

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/signalbox-mcp/signalbox/internal/upstream"
	"github.com/signalbox-mcp/signalbox/internal/wire"
)

// fakeServer notes what reaches it; a test answers by the sinks that it got.
type fakeServer struct {
	make func(*fakeConn) upstream.Conn // its optional methods; nil: none
	err  error

	conns  []*fakeConn
	closed bool
}

type fakeConn struct {
	reply, events upstream.Sink
	got           []string // messages of Start and Send
	sinks         []upstream.Sink
	ended         error
}

func (s *fakeServer) Open(_ upstream.Request, reply, events upstream.Sink) (upstream.Conn, error) {
	if s.err != nil {
		return nil, s.err
	}
	c := &fakeConn{reply: reply, events: events}
	s.conns = append(s.conns, c)
	if s.make == nil {
		return c, nil
	}
	return s.make(c), nil
}

func (s *fakeServer) Close() { s.closed = true }

func (c *fakeConn) Start(req upstream.Request, sink upstream.Sink) (upstream.Call, error) {
	c.got, c.sinks = append(c.got, string(req.Msg.Raw)), append(c.sinks, sink)
	clear(req.Msg.Raw) // it is the receiver's
	return fakeCall{}, nil
}

func (c *fakeConn) Send(req upstream.Request) error {
	c.got = append(c.got, string(req.Msg.Raw))
	return nil
}

func (c *fakeConn) End(reason error) { c.ended = reason }

type fakeCall struct{}

func (fakeCall) Cancel(error) {}

// client is a sink that keeps what it is given.
type client struct {
	verdict upstream.Verdict
	frames  []upstream.Frame
	ends    []error
}

func (c *client) Deliver(f upstream.Frame) upstream.Verdict {
	c.frames = append(c.frames, f)
	return c.verdict
}

func (c *client) End(reason error) { c.ends = append(c.ends, reason) }

func (c *client) data() (all []string) {
	for _, f := range c.frames {
		all = append(all, string(f.Data))
	}
	return all
}

// rig is one session under rules.
type rig struct {
	t       *testing.T
	server  *fakeServer
	metrics *Metrics
	log     bytes.Buffer
	wrapped upstream.Server
	conn    upstream.Conn
	inner   *fakeConn
	init    client
	events  client
}

func newRig(t *testing.T, r *Rules, server *fakeServer) *rig {
	t.Helper()
	x := &rig{t: t, server: server, metrics: NewMetrics()}
	x.init.verdict, x.events.verdict = upstream.Taken, upstream.Taken
	x.wrapped = Wrap(server, Config{
		Name: "srv", Rules: func(upstream.Request) (*Rules, error) { return r, nil },
		Log: slog.New(slog.NewTextHandler(&x.log, nil)), Metrics: x.metrics,
	})
	conn, err := x.wrapped.Open(request(t, `{"jsonrpc":"2.0","id":0,"method":"initialize"}`), &x.init, &x.events)
	if err != nil {
		t.Fatal(err)
	}
	x.conn, x.inner = conn, server.conns[len(server.conns)-1]
	return x
}

func request(t *testing.T, raw string) upstream.Request {
	t.Helper()
	msg, err := wire.Parse([]byte(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return upstream.NewRequest(msg)
}

// call starts a call and returns the sink of its client, and the error under
// which it was refused.
func (x *rig) call(raw string) (*client, *upstream.Error) {
	x.t.Helper()
	to := &client{verdict: upstream.Taken}
	before := len(x.inner.got)
	call, err := x.conn.Start(request(x.t, raw), to)
	var refused *upstream.Error
	switch {
	case errors.As(err, &refused):
		if len(x.inner.got) != before || call != nil {
			x.t.Errorf("refused, and sent: %s", raw)
		}
	case err != nil || !slices.Equal(x.inner.got[before:], []string{raw}):
		x.t.Errorf("%s: %v, reached the server as %q", raw, err, x.inner.got[before:])
	}
	return to, refused
}

// refusals is the count of one kind.
func (x *rig) refusals(k kind) int {
	x.t.Helper()
	reg := prometheus.NewRegistry()
	reg.MustRegister(x.metrics)
	families, err := reg.Gather()
	if err != nil {
		x.t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "signalbox_policy_refusals_total" && labels["server"] == "srv" && labels["kind"] == string(k) {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	return 0
}
